"""The runtime driven from Python, without ranks; and what its books ought to say of each element.

Phases -> what the C keeps; the same phases -> what a dense model keeps, sharing no code with it.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import floor

import numpy as np

from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.runtime.native.loader import digest, load_program
from avial_lab.runtime.native.ownership import Ownership
from tests.runtime.native.ownership.programs import PRELUDE, compiled

TOUCHES = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))

REPLICATE, TASK, EVERYWHERE = range(3)
READ, WRITE, UPDATE, REDUCE = "read", "write", "update", "reduce"
NOT_COMBINED = 5
"""A sum of f16, which the runtime has no arithmetic for."""

Range = tuple[int, int, int, int]


@dataclass(frozen=True)
class Access:
    """`place` makes the box that a range touches; it may stick out of the array."""

    array: int
    use: str
    place: Callable[[Range], Box]
    op: int = 0


@dataclass(frozen=True)
class Space:
    """One loop that is split: iteration values, and which of `extent` slots each lies in."""

    lb: int
    ub: int
    step: int = 1
    offset: int = 0
    extent: int = 0


@dataclass(frozen=True)
class Phase:
    number: int
    kind: int
    accesses: tuple[Access, ...]
    space: Space
    across: Space = Space(0, 1)
    block: int = 0
    grid: int = 0
    members: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()


def words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


@dataclass
class Books:
    """A plan of phases that Python makes up."""

    storages: tuple[Storage, ...]
    ranks: int
    temporary: frozenset[str] = frozenset()
    flags: tuple[str, ...] = ()
    source: str = PRELUDE + "void _mlir_ciface_main(void) {}"
    ownership: Ownership = field(init=False)

    def __post_init__(self) -> None:
        shared_object = compiled(self.source, self.flags)
        program = load_program(shared_object, digest(shared_object), entry="main")
        self.ownership = Ownership(program, self.storages, self.temporary)
        self.library = program.library
        self.ownership.setup(self.ranks, None)

    def run(self, phase: Phase) -> None:
        if phase.block or phase.grid or phase.members:
            self.library.avial_layout(
                ctypes.c_int64(phase.block), ctypes.c_int64(phase.grid),
                ctypes.c_int64(len(phase.members)), words(phase.members),
            )  # fmt: skip
        if phase.weights:
            self.library.avial_cost(ctypes.c_int64(len(phase.weights)), words(phase.weights))

        def touches(_: int, found: ctypes.Array[ctypes.c_int64]) -> None:
            part = (found[0], found[1], found[2], found[3])
            for access in phase.accesses:
                self._touch(access, access.place(part))

        space = words([
            word
            for s in (phase.space, phase.across)
            for word in (s.lb, s.ub, s.step, s.offset, s.extent)
        ])  # fmt: skip
        self.library.avial_begin(
            ctypes.c_int64(phase.number), ctypes.c_int64(phase.kind), TOUCHES(touches), None, space
        )
        self.library.avial_end()

    def _touch(self, access: Access, box: Box) -> None:
        array, ends = ctypes.c_int64(access.array), words((*box.start, *box.stop))
        if access.use == READ:
            self.library.avial_read(array, ends)
        elif access.use == REDUCE:
            self.library.avial_reduce(array, ends, ctypes.c_int64(access.op))
        else:
            self.library.avial_write(array, ends, ctypes.c_int64(access.use == WRITE))


# The model ----------------------------------------------------------------------------------------


def parts_of(space: Space, parts: int, block: int, weights: Sequence[int]) -> list[list[range]]:
    """The iteration values of each part, one range for each block of them."""
    extent, offset = space.extent, space.offset
    if extent <= 0:
        extent, offset = space.ub - space.lb, -space.lb
    values = range(space.lb, space.ub, space.step)
    found: list[list[range]] = [[] for _ in range(parts)]
    if extent <= 0:
        return found
    if block:
        last = (extent - 1) // block
        of = [(v + offset) // block for v in values]
        of = [min(max(b, 0), last) for b in of]
        for b in range(last + 1):
            inside = [v for v, which in zip(values, of, strict=True) if which == b]
            if inside:
                found[b % parts].append(range(inside[0], inside[-1] + 1, space.step))
        return found
    bounds = [bound(k, parts, extent, weights) for k in range(parts + 1)]
    for k in range(parts):
        low = -(10**9) if k == 0 else bounds[k]
        high = 10**9 if k == parts - 1 else bounds[k + 1]
        inside = [v for v in values if low <= v + offset < high]
        if inside:
            found[k].append(range(inside[0], inside[-1] + 1, space.step))
    return found


def bound(k: int, parts: int, extent: int, weights: Sequence[int]) -> int:
    """Where part k begins: the slot below which k/parts of the work lies."""
    total = sum(weights)
    if total <= 0:
        return k * extent // parts
    below = 0
    for s, weight in enumerate(weights):
        start, stop = (floor(e * extent / len(weights)) for e in (s, s + 1))
        if weight and (below + weight) * parts > k * total:
            inside = (k * total - below * parts) * (stop - start) // (weight * parts)
            return start + inside
        below += weight
    return extent


@dataclass
class Model:
    """Who wrote each element last, and who holds it; what moved and was needed for that."""

    storages: tuple[Storage, ...]
    ranks: int
    temporary: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        shapes = [storage.shape for storage in self.storages]
        self.writer = [np.full(shape, -1) for shape in shapes]
        self.holds = [np.zeros((*shape, self.ranks), bool) for shape in shapes]
        self.needed = [np.zeros((*shape, self.ranks), bool) for shape in shapes]
        self.ever = [np.zeros((*shape, self.ranks), bool) for shape in shapes]
        self.moved: Counter[tuple[int, int, int]] = Counter()
        self.whole: Counter[int] = Counter()

    def run(self, phase: Phase) -> None:
        touched, split = self._touched(phase)
        before = [writer.copy() for writer in self.writer]
        held = [holds.copy() for holds in self.holds]
        reduced = self._reduced(touched) if split else {}
        for rank, access, box in touched:
            if access.use in (READ, UPDATE) or (access.use == REDUCE and not reduced):
                self._need(phase.number, access.array, box, rank, held, before)
        for array, contributors in reduced.items():
            first = np.where(contributors.any(-1), contributors.argmax(-1), -1)
            for rank in range(self.ranks):
                self._need_where(phase.number, array, first == rank, rank, held, before)
        writes = [t for t in touched if t[1].use != READ]
        if phase.kind == EVERYWHERE:
            for _, access, box in writes:
                self._own(access.array, box, None)
        else:
            for rank, access, box in writes:
                if access.use != REDUCE or not reduced:
                    self._own(access.array, box, rank)
        for array, contributors in reduced.items():
            self._combine(phase.number, array, contributors)

    def book(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return list(zip(self.writer, self.holds, strict=True))

    # -- what is touched ---------------------------------------------------------------------------

    def _touched(self, phase: Phase) -> tuple[list[tuple[int, Access, Box]], bool]:
        """(rank, access, box inside the array) of every rank, and whether the phase was split."""
        if phase.kind != REPLICATE:
            return self._as_one(phase, everywhere=phase.kind == EVERYWHERE), False
        found = [
            (rank, access, box)
            for rank, part in self._ranges(phase)
            for access, box in self._boxes(phase, part)
        ]
        if self._clashes(found):
            self.whole[phase.number] += 1
            return self._as_one(phase, everywhere=False), False
        return found, True

    def _ranges(self, phase: Phase) -> Iterator[tuple[int, Range]]:
        members = phase.members or tuple(range(self.ranks))
        columns = max(min(phase.grid, len(members)), 1)
        rows = len(members) // columns
        down = parts_of(phase.space, rows, phase.block, phase.weights)
        across = parts_of(phase.across, columns, 0, ())
        for k in range(rows * columns):
            for one in down[k // columns]:
                for other in across[k % columns]:
                    yield members[k], (one.start, one.stop, other.start, other.stop)

    def _as_one(self, phase: Phase, *, everywhere: bool) -> list[tuple[int, Access, Box]]:
        space, across = phase.space, phase.across
        down, over = range(space.lb, space.ub, space.step), range(across.lb, across.ub, across.step)
        if not down or not over:
            return []
        boxes = self._boxes(phase, (down[0], down[-1] + 1, over[0], over[-1] + 1))
        if everywhere:
            return [(rank, *touched) for touched in boxes for rank in range(self.ranks)]
        rank = self._richest(boxes, phase.members or range(self.ranks))
        return [(rank, *touched) for touched in boxes]

    def _richest(self, boxes: Sequence[tuple[Access, Box]], members: Sequence[int]) -> int:
        """The member with most bytes of what is read, the first of several."""
        held = np.zeros(self.ranks, np.int64)
        for access, box in boxes:
            if access.use != WRITE:
                size = self.storages[access.array].itemsize
                inside = self.holds[access.array][box.slices].reshape(-1, self.ranks)
                held += inside.sum(0) * size
        return max(members, key=held.__getitem__)

    def _boxes(self, phase: Phase, part: Range) -> list[tuple[Access, Box]]:
        found: list[tuple[Access, Box]] = []
        for access in phase.accesses:
            shape = self.storages[access.array].shape
            box = access.place(part).intersection(Box.whole(shape))
            if box is None or box.empty:
                continue
            known = any(
                (other.array, other.use, other.op) == (access.array, access.use, access.op)
                and held.contains(box)
                for other, held in found
            )
            if not known:
                found.append((access, box))
        return found

    def _clashes(self, touched: Sequence[tuple[int, Access, Box]]) -> bool:
        for k, (rank, one, box) in enumerate(touched):
            if one.use == REDUCE and one.op == NOT_COMBINED:
                return True
            for other_rank, other, other_box in touched[k + 1 :]:
                if one.array != other.array:
                    continue
                both = {one.use, other.use}
                if both == {REDUCE} and one.op != other.op:
                    return True
                apart = both == {REDUCE} or (REDUCE not in both and rank == other_rank)
                if not apart and (REDUCE in both or READ not in both) and box.overlaps(other_box):
                    return True
        return False

    # -- what moves --------------------------------------------------------------------------------

    def _need(self, number, array, box, rank, held, before) -> None:
        where = np.zeros(self.storages[array].shape, bool)
        where[box.slices] = True
        self._need_where(number, array, where, rank, held, before)

    def _need_where(self, number, array, where, rank, held, before) -> None:
        self.ever[array][..., rank] |= where
        lacking = where & ~self.holds[array][..., rank]
        sources, counts = np.unique(before[array][lacking], return_counts=True)
        for source, count in zip(sources.tolist(), counts.tolist(), strict=True):
            if source < 0:
                continue
            from_there = lacking & (before[array] == source)
            assert held[array][..., source][from_there].all(), "sent by a rank that has it"
            self.moved[number, source, rank] += count * self.storages[array].itemsize
        if self.storages[array].name not in self.temporary:
            self.needed[array][..., rank] |= lacking & (before[array] < 0)
        self.holds[array][..., rank] |= where

    def _own(self, array: int, box: Box, rank: int | None) -> None:
        self.writer[array][box.slices] = rank or 0
        self.holds[array][box.slices] = rank is None
        if rank is not None:
            self.holds[array][(*box.slices, rank)] = True
        self.ever[array][box.slices] |= self.holds[array][box.slices]

    # -- reductions --------------------------------------------------------------------------------

    def _reduced(self, touched: Sequence[tuple[int, Access, Box]]) -> dict[int, np.ndarray]:
        """By array, who contributes to each element; none where one rank or all do everything."""
        reduced: dict[int, np.ndarray] = {}
        for rank, access, box in touched:
            if access.use == REDUCE:
                shape = (*self.storages[access.array].shape, self.ranks)
                contributors = reduced.setdefault(access.array, np.zeros(shape, bool))
                contributors[(*box.slices, rank)] = True
        return reduced

    def _combine(self, number: int, array: int, contributors: np.ndarray) -> None:
        """For results of up to 4096 elements: every rank gets what every other one has."""
        size = self.storages[array].itemsize
        count = contributors.sum(-1)
        alone = count == 1
        first = contributors.argmax(-1)
        for rank in range(self.ranks):
            mine = alone & (first == rank)
            self.writer[array][mine] = rank
            self.holds[array][mine] = np.arange(self.ranks) == rank
            several = int((contributors[..., rank] & (count > 1)).sum())
            for dest in range(self.ranks):
                if several and dest != rank:
                    self.moved[number, rank, dest] += several * size
        self.writer[array][count > 1] = 0
        self.holds[array][count > 1] = True
        self.ever[array] |= self.holds[array] & (count > 0)[..., None]


def dense(books: Books) -> list[tuple[np.ndarray, np.ndarray]]:
    """Writer and holders of every element, as the C has them; every element is in one piece."""
    shapes = {storage.name: storage.shape for storage in books.storages}
    writer = {name: np.full(shape, -2) for name, shape in shapes.items()}
    holds = {name: np.zeros((*shape, books.ranks), bool) for name, shape in shapes.items()}
    for piece in books.ownership.directory(books.ranks):
        assert (writer[piece.storage][piece.box.slices] == -2).all(), "pieces do not overlap"
        writer[piece.storage][piece.box.slices] = piece.writer
        for rank in piece.holders:
            holds[piece.storage][(*piece.box.slices, rank)] = True
    assert all((w > -2).all() for w in writer.values()), "pieces leave nothing out"
    return [(writer[name], holds[name]) for name in shapes]

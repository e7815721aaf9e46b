"""Who holds what of arrays that stay with ranks, and what has to move before each has what it
wants.

Resident, boxes that are wanted -> boxes to send and to receive, by rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from avial_lab.core.buffers import Storage
from avial_lab.core.errors import ClusterError
from avial_lab.core.regions import Box
from avial_lab.core.words import brief
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.rank.engine import NOTHING, StepAnswer, StepOperand
from avial_lab.runtime.rank.exchange import holders_of

_NUMBERS = count(1)

Wanted = Callable[[Sequence[int], int, int], Box]
"""(shape of an array, rank, number of ranks) -> the box of it that the rank is to have."""


@dataclass(eq=False)
class Resident:
    """An array's memory on the engines; forgotten there when nobody here has it any more.

    pieces: who holds what, each rank's by itself; elements that nobody holds are undefined. home:
    the engines that have it, and no others. asked: the layout that somebody wanted it to have;
    layout: what one is called that has these pieces. again: makes it where its engines have died,
    if it hangs on nothing else that they had; line: where it was made, for people.
    """

    number: int
    storage: Storage
    pieces: tuple[Piece, ...] = ()
    home: object = None
    again: Callable[[], Resident] | None = None
    line: str = ""
    _stead: Resident | None = None
    asked: str = ""
    layout: tuple[tuple[Piece, ...], str] | None = None

    def renew(self) -> None:
        """Make it again, on other engines."""
        assert self.again is not None
        made = self.again()
        self.number, self.storage = made.number, made.storage
        self.pieces, self.home = made.pieces, made.home
        self._stead = made  # whose number it has, and which is forgotten with it

    @property
    def held_bytes(self) -> dict[int, int]:
        """By rank, what it holds, borrowed copies too."""
        held: dict[int, int] = {}
        for piece in self.pieces:
            held[piece.rank] = held.get(piece.rank, 0) + piece.box.size * self.storage.itemsize
        return held

    def __repr__(self) -> str:
        return brief(self, f"number {self.number}, {self.storage.nbytes} bytes")


class LostArray(ClusterError):
    """What an array held is gone, with the ranks that had it."""

    def __init__(self, why: str = "", line: str = "") -> None:
        why = why or "the engines of this cluster are not those that had it"
        made = f" that was made at {line}" if line else ""
        super().__init__(f"the array{made} is gone: {why}", hint="make it again")
        self.why = why


@dataclass(frozen=True)
class StepDone:
    """What library code made, and what the ranks sent each other for it."""

    results: tuple[tuple[Resident, np.dtype], ...]
    messages: int
    nbytes: int
    read: np.ndarray | None = None


def joined(
    box: Box, dtype: np.dtype, parts: Iterable[tuple[Box, np.ndarray | bytes]]
) -> np.ndarray | None:
    """The box of an array, of boxes of it and their flat bytes, which become it where they are all;
    None unless that is each of its elements once.
    """
    given = list(parts)
    if len(given) == 1 and given[0][0] == box and isinstance(given[0][1], np.ndarray):
        return given[0][1].view(dtype).reshape(box.shape)
    made = np.empty(box.shape, dtype)
    count = 0
    for part, data in given:
        place = tuple(
            slice(a - start, b - start)
            for a, b, start in zip(part.start, part.stop, box.start, strict=True)
        )
        made[place] = np.frombuffer(data, dtype).reshape(part.shape)
        count += part.size
    return made if count == made.size else None


def read_of(
    read: tuple[int, Box] | None,
    made: Sequence[tuple[Resident, np.dtype]],
    answers: Iterable[StepAnswer],
) -> np.ndarray | None:
    """What was to come along of a step."""
    if read is None:
        return None
    return joined(read[1], made[read[0]][1], (part for answer in answers for part in answer.read))


def parts_of(pieces: Sequence[Piece], box: Box) -> dict[int, tuple[Box, ...]]:
    """By rank, which parts of a box it has to give, so that each element is given once."""
    chosen: dict[int, tuple[Box, ...]] = {}
    for rank, boxes in holders_of(pieces).items():
        common = tuple(part for each in boxes if (part := each.intersection(box)) is not None)
        if common:
            chosen[rank] = common
    return chosen


MOST_READ_BYTES = 1 << 16
"""Of an array, that come with the answer of what makes it."""


def step_operands(
    resident: Resident, dtype: np.dtype, wanted: Wanted, ranks: int
) -> list[StepOperand]:
    """By rank: the box that it is to have, what it lacks of it, and what it sends to others; each
    element that is lacking comes from the first that holds it.
    """
    storage = resident.storage
    boxes = [wanted(storage.shape, rank, ranks) for rank in range(ranks)]
    sends: dict[int, list[tuple[int, Box]]] = {rank: [] for rank in range(ranks)}
    receives: dict[int, list[tuple[int, Box]]] = {rank: [] for rank in range(ranks)}
    holders = [(rank, box) for rank, boxes in holders_of(resident.pieces).items() for box in boxes]
    for rank, box in enumerate(boxes):
        held = [piece.box for piece in resident.pieces if piece.rank == rank]
        for holder, part in holders:
            common = part.intersection(box)
            if holder == rank or common is None or any(each.contains(common) for each in held):
                continue
            sends[holder].append((rank, common))
            receives[rank].append((holder, common))
    return [
        StepOperand(
            resident.number, storage, dtype.str, boxes[r], tuple(sends[r]), tuple(receives[r])
        )
        for r in range(ranks)
    ]


def new_resident(shape: Sequence[int], itemsize: int, number: int | None = None) -> Resident:
    """An array of a number that no other has."""
    number = new_number() if number is None else number
    name = f"resident{number}"
    return Resident(number, Storage(name, tuple(shape), itemsize, (name,)))


def rows(shape: Sequence[int], rank: int, ranks: int) -> Box:
    """The rank's block of rows: from rank * n // ranks, as loops are divided. An array without
    dimensions is rank 0's.
    """
    if not shape and rank:
        return NOTHING
    return blocks(0)(shape, rank, ranks)


def blocks(dim: int) -> Wanted:
    """The rank's block along that dimension; all of an array that has none."""

    def box(shape: Sequence[int], rank: int, ranks: int) -> Box:
        if not shape:
            return Box.whole(shape)
        low, high = (shape[dim] * r // ranks for r in (rank, rank + 1))
        start, stop = [0] * len(shape), list(shape)
        start[dim], stop[dim] = low, high
        return Box(tuple(start), tuple(stop))

    return box


def rows_of_chunks(extent: int) -> Wanted:
    """The rank's block of rows, which begins where a chunk of so many rows does."""

    def box(shape: Sequence[int], rank: int, ranks: int) -> Box:
        low, high = (shape[0] * r // ranks // extent * extent for r in (rank, rank + 1))
        high = shape[0] if rank == ranks - 1 else high
        return Box((low, *(0,) * (len(shape) - 1)), (high, *shape[1:]))

    return box


def everywhere(shape: Sequence[int], rank: int, ranks: int) -> Box:
    """All of it."""
    del rank, ranks
    return Box.whole(shape)


def on_one(shape: Sequence[int], rank: int, ranks: int) -> Box:
    """All of it for rank 0, and nothing for the others."""
    return Box.whole(shape if rank == 0 else (0,) * len(shape))


def as_told(boxes: Sequence[Box | None]) -> Wanted:
    """By rank: this box, or nothing."""

    def box(shape: Sequence[int], rank: int, ranks: int) -> Box:
        del ranks
        found = boxes[rank]
        return found if found is not None else Box.whole((0,) * len(shape))

    return box


def boxes_of(resident: Resident | None, shape: Sequence[int], ranks: int) -> list[Box]:
    """Each rank's own part: as the array lies, if every rank has one box of it and nobody else has;
    else its rows.
    """
    chosen = holders_of(resident.pieces) if resident is not None else {}
    if resident is not None and shape and all(len(boxes) == 1 for boxes in chosen.values()):
        nothing = Box.whole((0,) * len(shape))
        boxes = [chosen[rank][0] if rank in chosen else nothing for rank in range(ranks)]
        if sum(box.size for box in boxes) == Box.whole(shape).size:
            return boxes
    return [rows(shape, rank, ranks) for rank in range(ranks)]


def new_number() -> int:
    """That no other array of this process has."""
    return next(_NUMBERS)


def given_pieces(arrays: Mapping[str, Resident]) -> tuple[Piece, ...]:
    """Who holds what of them, by the storages that they are for."""
    return tuple(
        Piece(piece.rank, storage, piece.box)
        for storage, resident in arrays.items()
        for piece in resident.pieces
    )


def asked_for(
    arrays: Mapping[str, Resident], pieces: Sequence[Piece], ranks: int
) -> list[tuple[Resident, np.dtype, Wanted]]:
    """Operands of a step that brings these pieces to the ranks that they are for."""
    hulls: dict[str, dict[int, Box]] = {name: {} for name in arrays}
    for piece in pieces:
        if piece.storage in arrays:
            hull = hulls[piece.storage].get(piece.rank, piece.box)
            hulls[piece.storage][piece.rank] = hull.hull(piece.box)
    told = {
        name: as_told([boxes.get(rank) for rank in range(ranks)]) for name, boxes in hulls.items()
    }
    return [
        (resident, np.dtype((np.void, resident.storage.itemsize)), told[name])
        for name, resident in arrays.items()
        if resident.pieces
    ]


def keep_layouts(arrays: Mapping[str, Resident], held: Sequence[Piece], *, known: bool) -> None:
    """After a run: who holds what of them. known: of a program whose messages are, which says
    nothing of elements that it leaves as they are.
    """
    for storage, resident in arrays.items():
        pieces = tuple(
            Piece(piece.rank, resident.storage.name, piece.box)
            for piece in held
            if piece.storage == storage
        )
        resident.pieces = _after(resident.pieces, pieces) if known else pieces


def _after(old: tuple[Piece, ...], new: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """The old pieces, once each of the new ones is nobody's but its own rank's."""
    for piece in new:
        within = any(each.rank == piece.rank and each.box.contains(piece.box) for each in old)
        left = [
            Piece(each.rank, each.storage, box)
            for each in old
            for box in (
                (each.box,)
                if within and each.rank == piece.rank
                else each.box.difference(piece.box)
            )
        ]
        old = tuple(left) if within else (*left, piece)
    return old


def operands_to(
    resident: Resident, boxes: Sequence[Sequence[Box]], ranks: int
) -> list[tuple[Resident, np.dtype, Wanted]]:
    """Operands of a step after which each rank has these boxes of the array."""
    opaque = np.dtype((np.void, resident.storage.itemsize))
    most = max((len(those) for those in boxes), default=0)
    return [
        (
            resident,
            opaque,
            as_told([those[k] if k < len(those) else None for those in boxes[:ranks]]),
        )
        for k in range(most)
    ]


def sent_for(operands: Sequence[tuple[Resident, np.dtype, Wanted]], ranks: int) -> tuple[int, int]:
    """Messages and bytes that the ranks send each other for these."""
    sends = [
        (box, operand.storage.itemsize)
        for resident, dtype, wanted in operands
        for operand in step_operands(resident, dtype, wanted, ranks)
        for _, box in operand.sends
    ]
    return len(sends), sum(box.size * itemsize for box, itemsize in sends)

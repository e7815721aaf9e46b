"""The ownership runtime of a structured program, seen from Python: what a run is told and tells.

A loaded shared object -> its ownership directory as plain facts; a program and a number of ranks
-> Plan. The runtime itself is in `native/ownership`, and is linked into the program. The phases of
a plan run without bodies, without memory and without MPI: only the control flow and what every rank
touches.

    phase S1   rank 0 ──► rank 1   1 message of 800 bytes        Plan.moves
    A[0:50]    rank 0                                            Plan.inputs, Plan.results
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from avial_lab.artifact.plan_facts import moves_summary, plan_text
from avial_lab.core.buffers import Number, Storage
from avial_lab.core.errors import InternalError
from avial_lab.core.regions import Box, union
from avial_lab.core.runtime_constants import MAX_DIMS, ErrorCode, Table, Use
from avial_lab.core.table import PRINTED_ROWS
from avial_lab.core.words import MOST_ROWS, brief, count, format_bytes, rank_words
from avial_lab.planning.schedule import PhaseRun, Piece
from avial_lab.runtime.native.loader import LoadedProgram, descriptor, digest, load_program
from avial_lab.trace import Move

BEGIN = "avial_begin"
"""What a structured program calls, and no other."""

_OWN_ERRORS: dict[int, str] = {
    ErrorCode.NO_MEMORY: "out of memory for the bookkeeping of a phase",
    ErrorCode.TOO_MANY_DIMS: f"an array has more than {MAX_DIMS} dimensions",
    ErrorCode.NOT_GIVEN: "the program reads elements that no rank was given",
    ErrorCode.NO_SCRATCH: "a reduction has no memory to accumulate in",
}


@dataclass(frozen=True)
class Footprint:
    """What a rank (-1: every rank alike) touches in a phase, the first time it touches anything."""

    phase: str
    rank: int
    storage: str
    use: Use
    box: Box

    def __repr__(self) -> str:
        who = "every rank" if self.rank < 0 else f"rank {self.rank}"
        return brief(self, f"in {self.phase}: {who} {self.use.verb} {self.storage}{self.box}")


@dataclass(frozen=True)
class PhaseCount:
    """How often a phase was begun, what moved for it, how often it could not be split, and the
    barriers right after it.
    """

    phase: str
    begun: int
    nbytes: int
    whole: int
    barriers: int = 0

    def __repr__(self) -> str:
        words = (
            f"{self.phase}: begun {count(self.begun, 'time')}, {format_bytes(self.nbytes)} moved"
        )
        whole = f", {count(self.whole, 'time')} not divided" if self.whole else ""
        return brief(self, words + whole)


@dataclass(frozen=True)
class EventTotal:
    """All events of one kind (a `RunEvent`) for one phase, on this rank.

    The copies, before sending and after receiving, are part of them.
    """

    phase: str
    kind: int
    events: int
    ns: int
    nbytes: int
    copies: int
    copies_ns: int
    copies_nbytes: int


@dataclass(frozen=True)
class Owned:
    """A piece of the directory: `writer` is -1 where the caller's version still holds."""

    storage: str
    box: Box
    writer: int
    holders: frozenset[int]

    def __repr__(self) -> str:
        who = "the caller's" if self.writer < 0 else f"written by rank {self.writer}"
        held = f"held by {rank_words(self.holders)}" if self.holders else "held by no rank"
        return brief(self, f"{self.storage}{self.box}: {who}, {held}")


@dataclass(frozen=True)
class Plan:
    """What a program will do on a number of ranks, before it runs.

    inputs: what each rank has to be given. results: the last version of all that is written.
    held_bytes[r]: what rank r ever holds, each element once. Where the plan is not `complete`,
    control depends on data: everything was then given to somebody, and moves are a sample.
    footprints: of the first 64 phases, and only for up to 16 ranks. carried: for each of `moves`
    the arrays whose elements it brings; the 64th stands for all from there on.
    """

    ranks: int
    inputs: tuple[Piece, ...]
    results: tuple[Piece, ...]
    moves: tuple[Move, ...]
    held_bytes: tuple[int, ...]
    phases: tuple[PhaseCount, ...]
    complete: bool
    footprints: tuple[Footprint, ...] = ()
    storages: tuple[Storage, ...] = ()
    carried: tuple[tuple[str, ...], ...] = ()

    @property
    def bytes_moved(self) -> int:
        """Bytes that cross between ranks."""
        return sum(move.nbytes for move in self.moves)

    @property
    def runs(self) -> tuple[PhaseRun, ...]:
        """What a schedule knows of the phases."""
        return tuple(
            PhaseRun(count.phase, count.begun, count.barriers)
            if self.complete
            else PhaseRun(count.phase, 0, min(count.barriers, 1))
            for count in self.phases
        )

    def __str__(self) -> str:
        return plan_text(self, storages=self.storages, most=PRINTED_ROWS)

    def __repr__(self) -> str:
        """A line for each of the first phases: how often it is begun, and what moves for it."""
        rows = (
            f"{phase.phase}: begun {count(phase.begun, 'time')}, {format_bytes(phase.nbytes)} moved"
            for phase in self.phases[:MOST_ROWS]
        )
        return brief(self, f"of {moves_summary(self)}", rows, len(self.phases))


@dataclass(frozen=True)
class Ownership:
    """The runtime in `program`, for arrays that are `storages`, phases that are called `phases`.

    `temporary` are the storages with no array of the caller's behind them.
    """

    program: LoadedProgram
    storages: tuple[Storage, ...]
    temporary: frozenset[str] = frozenset()
    phases: tuple[str, ...] = ()

    def setup(self, ranks: int, rank: int | None, addresses: Sequence[int] = ()) -> None:
        """Begin a run as `rank` on memory at `addresses`; as None, a plan."""
        shapes = [size for storage in self.storages for size in storage.shape]
        self.program.library.avial_setup(
            ctypes.c_int64(ranks),
            ctypes.c_int64(-1 if rank is None else rank),
            ctypes.c_int64(len(self.storages)),
            _words([len(storage.shape) for storage in self.storages]),
            _words(shapes),
            _words([storage.itemsize for storage in self.storages]),
            _words(addresses) if rank is not None else None,
        )
        for number, storage in enumerate(self.storages):
            if storage.name in self.temporary:
                self._input(-1, number, Box.whole(storage.shape))

    def give(self, pieces: Iterable[Piece]) -> None:
        """Every rank is told what each holds of the caller's arrays."""
        number = {storage.name: k for k, storage in enumerate(self.storages)}
        for piece in pieces:
            self._input(piece.rank, number[piece.storage], piece.box)

    def finish(self) -> None:
        """Wait until everything is sent."""
        self.program.library.avial_finish()

    @property
    def error(self) -> int:
        """The first error code; 0 for none."""
        return self.program.get_global("avial_error")

    def inputs(self) -> tuple[Piece, ...]:
        """What each rank was given, or in a plan needs, of the caller's arrays."""
        return tuple(self._pieces(Table.INPUTS))

    def results(self) -> tuple[Piece, ...]:
        """The last version of every element that was written and is not a temporary's, once."""
        pieces = self._pieces(Table.RESULTS)
        return tuple(piece for piece in pieces if piece.storage not in self.temporary)

    def moves(self) -> tuple[Move, ...]:
        """In a plan all messages; in a run those this rank has sent."""
        return tuple(
            Move(self._phase(phase), source, dest, messages, nbytes)
            for phase, source, dest, messages, nbytes in _rows(self._table(Table.MOVES), 5)
        )

    def carried(self) -> tuple[tuple[str, ...], ...]:
        """For each of `moves` the arrays that it brings; of a plan alone."""
        names = [storage.name for storage in self.storages[:64]]
        return tuple(
            tuple(name for k, name in enumerate(names) if word >> k & 1)
            for word in self._table(Table.CARRIED)
        )

    def held_bytes(self) -> tuple[int, ...]:
        """By rank; of a plan alone."""
        return tuple(nbytes for _, nbytes in _rows(self._table(Table.HELD), 2))

    def totals(self) -> tuple[EventTotal, ...]:
        """Of the events of a traced run, those dropped among them."""
        rows = _rows(self._table(Table.TOTALS), 8)
        return tuple(EventTotal(self._phase(phase), *sums) for phase, *sums in rows)

    def counts(self) -> tuple[PhaseCount, ...]:
        rows = _rows(self._table(Table.PHASES), 5)
        return tuple(PhaseCount(self._phase(phase), *counts) for phase, *counts in rows)

    @property
    def complete(self) -> bool:
        return self._table(Table.INCOMPLETE) == [0]

    def directory(self, ranks: int) -> tuple[Owned, ...]:
        """Who holds what now, by array and place."""
        words = iter(self._table(Table.DIRECTORY))
        pieces: list[Owned] = []
        for number in words:
            storage = self.storages[number]
            box, writer = _take_box(words, len(storage.shape)), next(words)
            sets = [next(words) for _ in range((ranks + 63) // 64)]
            holders = {r for r in range(ranks) if sets[r // 64] >> (r % 64) & 1}
            pieces.append(Owned(storage.name, box, writer, frozenset(holders)))
        return tuple(pieces)

    def footprints(self) -> Iterator[Footprint]:
        """Of a plan alone."""
        words = iter(self._table(Table.FOOTPRINTS))
        for phase in words:
            rank, storage = next(words), self.storages[next(words)]
            use = Use(next(words))
            box = _take_box(words, len(storage.shape))
            yield Footprint(self._phase(phase), rank, storage.name, use, box)

    def _input(self, rank: int, number: int, box: Box) -> None:
        self.program.library.avial_input(
            ctypes.c_int64(rank), ctypes.c_int64(number), _words((*box.start, *box.stop))
        )

    def _phase(self, number: int) -> str:
        return self.phases[number] if number < len(self.phases) else str(number)

    def _pieces(self, what: Table) -> Iterator[Piece]:
        words = iter(self._table(what))
        for rank in words:
            storage = self.storages[next(words)]
            yield Piece(rank, storage.name, _take_box(words, len(storage.shape)))

    def _table(self, what: Table) -> list[int]:
        function = self.program.library.avial_table
        function.restype = ctypes.c_int64
        needed = function(ctypes.c_int64(what), None, ctypes.c_int64(0))
        words = (ctypes.c_int64 * needed)()
        function(ctypes.c_int64(what), words, ctypes.c_int64(needed))
        return list(words)


def plan_run(
    shared_object: bytes,
    storages: Sequence[Storage],
    ranks: int,
    *,
    temporary: Iterable[str] = (),
    phases: Sequence[str] = (),
    entry: str = "main",
    numbers: Sequence[Number] = (),
) -> Plan:
    """What the program does on `ranks` ranks, found by running its control flow in this process.

    Raises InternalError where the runtime failed.
    """
    program = load_program(shared_object, digest(shared_object), entry=entry)
    ownership = Ownership(program, tuple(storages), frozenset(temporary), tuple(phases))
    ownership.setup(ranks, None)
    program.prepared_with((descriptor(0, storage.shape) for storage in storages), numbers)()
    if ownership.error:
        raise InternalError(f"the run could not be planned: {own_error(ownership.error)}")
    complete = ownership.complete
    inputs = ownership.inputs()
    return Plan(
        ranks=ranks,
        inputs=inputs if complete else _and_the_rest(inputs, ownership, ranks),
        results=ownership.results(),
        moves=ownership.moves(),
        held_bytes=ownership.held_bytes(),
        phases=tuple(count for count in ownership.counts() if count.begun),
        complete=complete,
        footprints=tuple(ownership.footprints()),
        storages=ownership.storages,
        carried=ownership.carried(),
    )


def own_error(error: int) -> str | None:
    """What the code in `avial_error` means; None where it is one of MPI's."""
    return _OWN_ERRORS.get(error & 0xFFFFFFFF)


def default_blocks(storage: Storage, ranks: int) -> tuple[Piece, ...]:
    """Every element at one rank: the rows that a phase over all of them has there.

    >>> [str(piece.box) for piece in default_blocks(Storage("a", (5,), 8, ("a",)), 2)]
    ['[0:2]', '[2:5]']
    """
    if not storage.shape:
        return (Piece(0, storage.name, Box((), ())),)
    bounds = [r * storage.shape[0] // ranks for r in range(ranks + 1)]
    zeros, rest = (0,) * (len(storage.shape) - 1), storage.shape[1:]
    boxes = [Box((a, *zeros), (b, *rest)) for a, b in pairwise(bounds)]
    return tuple(Piece(r, storage.name, box) for r, box in enumerate(boxes) if not box.empty)


def _and_the_rest(inputs: Sequence[Piece], ownership: Ownership, ranks: int) -> tuple[Piece, ...]:
    """`inputs`, and every other element of the caller's at its default rank."""
    boxes: dict[tuple[int, str], list[Box]] = {}
    given = [
        piece
        for storage in ownership.storages
        if storage.name not in ownership.temporary
        for piece in default_blocks(storage, ranks)
    ]
    for piece in (*inputs, *given):
        boxes.setdefault((piece.rank, piece.storage), []).append(piece.box)
    return tuple(
        Piece(rank, storage, box)
        for (rank, storage), found in sorted(boxes.items(), key=lambda item: item[0])
        for box in union(found)
    )


def _words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def _rows(words: Sequence[int], width: int) -> Iterator[tuple[int, ...]]:
    return (tuple(words[k : k + width]) for k in range(0, len(words), width))


def _take_box(words: Iterator[int], dimensions: int) -> Box:
    ends = [next(words) for _ in range(2 * dimensions)]
    return Box(tuple(ends[:dimensions]), tuple(ends[dimensions:]))

"""The ownership runtime of a structured program, seen from Python: what a run is given and reports.

A loaded shared object -> its ownership directory as plain facts; a program and a number of ranks
-> Plan. The runtime itself is in `native/ownership`, and is linked into the program. The phases of
a plan run without bodies, without memory and without MPI: only the control flow and what every rank
touches.

    phase S1   rank 0 ──► rank 1   1 message of 800 bytes        Plan.moves
    A[0:50]    rank 0                                            Plan.inputs, Plan.results
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from avial_lab.artifact.device_memory import Runs, Stay
from avial_lab.artifact.plan import EventTotal, Footprint, PhaseCount
from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.core.runtime_constants import MAX_DIMS, ErrorCode, Table, Use
from avial_lab.core.words import brief, rank_words
from avial_lab.machine.devices import devices_between, place_name
from avial_lab.planning.schedule import Piece
from avial_lab.planning.turns import Turns
from avial_lab.runtime.native.loader import LoadedProgram
from avial_lab.runtime.native.places import device_failure
from avial_lab.trace import Copy, Move

BEGIN = "avial_begin"
"""What a structured program calls, and no other."""

LAUNCH = "avial_launch"
"""What it calls where a device has something to run."""

_OWN_ERRORS: dict[int, str] = {
    ErrorCode.NO_MEMORY: "out of memory for a phase's ownership directory",
    ErrorCode.TOO_MANY_DIMS: f"an array has more than {MAX_DIMS} dimensions",
    ErrorCode.NOT_GIVEN: "the program reads elements that no rank holds",
    ErrorCode.NO_SCRATCH: "a reduction has no memory for its partial results",
    ErrorCode.DEVICE: "a device failed",
}


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
class Ownership:
    """The runtime in `program`, for arrays that are `storages`, phases that are called `phases`.

    `temporary` are the storages with no array of the caller's behind them; `drivers` the ranks that
    drive each device.
    """

    program: LoadedProgram
    storages: tuple[Storage, ...]
    temporary: frozenset[str] = frozenset()
    phases: tuple[str, ...] = ()
    drivers: tuple[int, ...] = ()

    def setup(self, ranks: int, rank: int | None, addresses: Sequence[int] = ()) -> None:
        """Begin a run as `rank` on memory at `addresses`; as None, a plan."""
        self.program.library.avial_devices(ctypes.c_int64(len(self.drivers)), _words(self.drivers))
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
        """Every rank learns what each holds of the caller's arrays."""
        number = {storage.name: k for k, storage in enumerate(self.storages)}
        for piece in pieces:
            self._input(piece.rank, number[piece.storage], piece.box)

    def keep_at(self, homes: Mapping[str, int]) -> None:
        """The caller has these arrays on devices, by their places, and wants them there."""
        for number, storage in enumerate(self.storages):
            if storage.name in homes:
                place = ctypes.c_int64(homes[storage.name])
                self.program.library.avial_home(ctypes.c_int64(number), place)

    def bring_back(self) -> None:
        """What devices wrote last to the memory of their ranks."""
        self.program.library.avial_bring_back()

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

    def moves(self, ranks: int) -> tuple[Move, ...]:
        """In a plan all messages; in a run those this rank has sent."""
        driver = (*range(ranks), *self.drivers)
        return tuple(
            Move(
                self._phase(phase),
                driver[source],
                driver[dest],
                messages,
                nbytes,
                devices_between(source, dest, ranks),
            )
            for phase, source, dest, messages, nbytes in _rows(self._table(Table.MOVES), 5)
        )

    def copies(self, ranks: int) -> tuple[Copy, ...]:
        """In a plan all copies to and from devices; in a run those of this rank."""
        return tuple(
            Copy(
                self._phase(phase) if phase >= 0 else "",
                place_name(source, ranks),
                place_name(dest, ranks),
                copies,
                nbytes,
            )
            for phase, source, dest, copies, nbytes in _rows(self._table(Table.COPIES), 5)
        )

    def device_error(self, ranks: int) -> tuple[str, str | None, str]:
        """What a device said when it failed, what may help, and its name."""
        return device_failure(self.program, self.storages, ranks)

    def carried(self) -> tuple[tuple[str, ...], ...]:
        """For each of `moves` the arrays that it brings; of a plan alone."""
        names = [storage.name for storage in self.storages[:64]]
        return tuple(
            tuple(name for k, name in enumerate(names) if word >> k & 1)
            for word in self._table(Table.CARRIED)
        )

    def held_bytes(self) -> tuple[int, ...]:
        """By place, the ranks' own memories first; of a plan alone."""
        return tuple(nbytes for _, nbytes, _ in _rows(self._table(Table.HELD), 3))

    def paged_bytes(self) -> tuple[int, ...]:
        """The same in whole pages, which are touched; of a plan for few places alone."""
        return tuple(nbytes for _, _, nbytes in _rows(self._table(Table.HELD), 3))

    def stays(self) -> tuple[Stay, ...]:
        """Of a plan alone."""
        granules: dict[tuple[int, int], Runs] = {}
        for place, number, start, stop in _rows(self._table(Table.GRANULES), 4):
            granules[place, number] = (*granules.get((place, number), ()), (start, stop))
        return tuple(
            Stay.of(place, self.storages[number], first, last, granules.get((place, number), ()))
            for place, number, first, last in _rows(self._table(Table.STAYS), 4)
        )

    def totals(self) -> tuple[EventTotal, ...]:
        """Of the events of a traced run, those dropped among them."""
        rows = _rows(self._table(Table.TOTALS), 8)
        return tuple(EventTotal(self._phase(phase), *sums) for phase, *sums in rows)

    def turns(self, ranks: int, trips: int) -> Turns:
        """Of a plan that keeps them (`keep_turns`)."""
        phases = (*self.phases, "") if self.drivers else self.phases
        turns = self._array(Table.TURNS).reshape(-1, 4)
        turns[turns[:, 0] < 0, 0] = len(phases) - 1
        return Turns(
            ranks,
            phases,
            self.storages,
            turns,
            self._array(Table.PATTERNS),
            self.complete,
            trips,
            self.drivers,
        )

    def keep_turns(self, trips: int) -> None:
        """The next plan keeps its turns; loops whose end depends on data take so many."""
        self.program.set_globals({"avial_keep_turns": 1, "avial_trips": trips})

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
            places = ranks + len(self.drivers)
            sets = [next(words) for _ in range((places + 63) // 64)]
            holders = {r for r in range(places) if sets[r // 64] >> (r % 64) & 1}
            pieces.append(Owned(storage.name, box, writer, frozenset(holders)))
        return tuple(pieces)

    def held(self, ranks: int) -> tuple[Piece, ...]:
        """Who holds what now, a piece for each rank; without temporaries. What nobody has written
        is with those it was given to, and those that have read it since.
        """
        given: dict[tuple[str, Box], set[int]] = {}
        for piece in self.inputs():
            given.setdefault((piece.storage, piece.box), set()).add(piece.rank)
        found: list[Piece] = []
        for owned in self.directory(ranks):
            if owned.storage in self.temporary:
                continue
            parts = [(owned.box, owned.holders)]
            if owned.writer < 0 and len(owned.holders) < ranks:
                parts = [
                    (common, owned.holders | holders)
                    for (storage, box), holders in given.items()
                    if storage == owned.storage and (common := owned.box.intersection(box))
                ]
            found += [
                Piece(rank, owned.storage, box)
                for box, holders in parts
                for rank in sorted(holders)
            ]
        return tuple(found)

    def footprints(self, ranks: int) -> Iterator[Footprint]:
        """Of a plan alone, by ranks."""
        for each in self._footprints_at():
            yield replace(each, rank=self._rank_at(each.rank, ranks))

    def launched(self, ranks: int) -> dict[str, tuple[int, ...]]:
        """Of a plan alone: the places of the devices that phases are launched on, as far as it
        keeps footprints.
        """
        found: dict[str, set[int]] = {}
        for each in self._footprints_at():
            if each.rank >= ranks:
                found.setdefault(each.phase, set()).add(each.rank)
        return {phase: tuple(sorted(places)) for phase, places in found.items()}

    def _footprints_at(self) -> Iterator[Footprint]:
        """By places."""
        words = iter(self._table(Table.FOOTPRINTS))
        for phase in words:
            place, storage = next(words), self.storages[next(words)]
            use = Use(next(words))
            box = _take_box(words, len(storage.shape))
            yield Footprint(self._phase(phase), place, storage.name, use, box)

    def _rank_at(self, place: int, ranks: int) -> int:
        return self.drivers[place - ranks] if place >= ranks else place

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
        return self._array(what).tolist()

    def _array(self, what: Table) -> np.ndarray:
        function = self.program.library.avial_table
        function.restype = ctypes.c_int64
        needed = function(ctypes.c_int64(what), None, ctypes.c_int64(0))
        words = np.zeros(needed, np.int64)
        function(ctypes.c_int64(what), ctypes.c_void_p(words.ctypes.data), ctypes.c_int64(needed))
        return words


def own_error(error: int) -> str | None:
    """What the code in `avial_error` means; None where it is one of MPI's."""
    return _OWN_ERRORS.get(error & 0xFFFFFFFF)


def _words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def _rows(words: Sequence[int], width: int) -> Iterator[tuple[int, ...]]:
    return (tuple(words[k : k + width]) for k in range(0, len(words), width))


def _take_box(words: Iterator[int], dimensions: int) -> Box:
    ends = [next(words) for _ in range(2 * dimensions)]
    return Box(tuple(ends[:dimensions]), tuple(ends[dimensions:]))

"""A run on one rank: what compiled code is given before, and what it reports after.

A loaded program and its manifest -> Session. There is one for each type of manifest; the engine
treats both alike.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Protocol

import numpy as np

from avial_lab.artifact.device_memory import Stay
from avial_lab.artifact.manifest import DerivedMessages, KnownMessages, Manifest
from avial_lab.core.device_arrays import DeviceArray
from avial_lab.core.runtime_constants import ASSERTED, ErrorCode
from avial_lab.planning.schedule import Piece, StepKind
from avial_lab.runtime.native.loader import LoadedProgram
from avial_lab.runtime.native.ownership import Ownership, own_error
from avial_lab.runtime.native.places import (
    Devices,
    Places,
    check_room,
    choose,
    device_failure,
    taken_bytes,
)
from avial_lab.runtime.rank.clock import ClockRecorder, Times
from avial_lab.runtime.rank.journal import MOST_PHASES, Journal
from avial_lab.runtime.rank.outcome import Failure, asserted
from avial_lab.trace import Copy, Move


@dataclass(frozen=True)
class Seat:
    """What a rank runs a program with. memory: flat bytes by storage, in the manifest's order.
    held: what each rank holds of the caller's arrays. stays: what devices are foreseen to hold.
    room: memory for so many events. given: the
    caller's arrays on devices, and their places, by storage.
    """

    program: LoadedProgram
    rank: int
    memory: Mapping[str, np.ndarray]
    held: tuple[Piece, ...]
    stays: tuple[Stay, ...]
    journal: Journal
    recorder: ClockRecorder
    room: Callable[[int], np.ndarray]
    devices: Devices = field(default_factory=Devices)
    given: Mapping[str, tuple[DeviceArray, int]] = field(
        default_factory=dict[str, "tuple[DeviceArray, int]"]
    )


class Session(Protocol):
    """In this order: `set_up`, `run`, `failure`, and where there was none the rest."""

    def set_up(self) -> None: ...

    def run(self) -> None: ...

    def failure(self) -> Failure | None: ...

    def pieces(self) -> tuple[Piece, ...]:
        """Where results are, on any rank."""
        ...

    def held(self) -> tuple[Piece, ...]:
        """Who holds what now of every array that is no temporary, each rank's by itself."""
        ...

    def times(self) -> Times: ...

    def moves(self) -> tuple[Move, ...]:
        """What this rank has sent, as it counted."""
        ...

    def copies(self) -> tuple[Copy, ...]:
        """What it has copied to its devices and from them."""
        ...

    def taken_bytes(self) -> tuple[tuple[str, int], ...]:
        """The most bytes that it has taken on each of its devices at once."""
        ...


@singledispatch
def session_of(manifest: Manifest, seat: Seat) -> Session:
    """The run of a program of that type."""
    raise TypeError(f"no rank can run a {type(manifest).__name__}")


@dataclass
class StepSession:
    """The steps are in the code, which stamps the slot of each."""

    manifest: KnownMessages
    seat: Seat

    def __post_init__(self) -> None:
        manifest, seat = self.manifest, self.seat
        steps = len(manifest.programs[seat.rank])
        self._stamps = 2 * steps + 2
        launches = steps if manifest.drivers else 0
        self._rows = np.zeros((self._stamps + launches, 2), np.int64)
        self._places = Places(seat.program, manifest.ranks, seat.rank, manifest.drivers)
        self._copies: tuple[Copy, ...] = ()

    def set_up(self) -> None:
        traced = self.seat.recorder.traced
        self.seat.program.set_globals({"avial_trace": address(self._rows) if traced else 0})
        if self.manifest.uses_mpi or self.seat.program.exports(ERROR):
            self.seat.program.set_globals({ERROR: 0})
        if self.manifest.drivers:
            addresses = [data.ctypes.data for data in self.seat.memory.values()]
            ran = address(self._rows[self._stamps :]) if traced else 0
            self._given = given_rows(self.manifest, self.seat, complete=True)
            tell_given(self.seat.program, self._given)
            self._places.begin(
                self.manifest.storages,
                addresses,
                devices=self.seat.devices,
                stays=self.seat.stays,
                ran=ran,
            )

    def run(self) -> None:
        self.seat.program.call(self.manifest.storages, list(self.seat.memory.values()))
        if self.manifest.drivers:
            self._copies = self._places.end()

    def failure(self) -> Failure | None:
        """The first MPI call that failed; `avial_error` is its code, and 32 bits up its step."""
        if self.manifest.drivers and self._places.failed:
            program, manifest = self.seat.program, self.manifest
            why, hint, device = device_failure(program, manifest.storages, manifest.ranks)
            step = program.get_global("avial_device_step")
            return Failure(why, step=step, hint=hint, device=device)
        return _failure(self.seat.program)

    def pieces(self) -> tuple[Piece, ...]:
        return self.manifest.results

    def held(self) -> tuple[Piece, ...]:
        return self.manifest.results

    def times(self) -> Times:
        return self.seat.recorder.times(self._rows)

    def moves(self) -> tuple[Move, ...]:
        """Of the steps that were run: those up to where the program says that it is."""
        sums: dict[tuple[str, int, str], tuple[int, int]] = {}
        steps = self.manifest.programs[self.seat.rank]
        for step in steps[: self.seat.journal.step + 1]:
            if step.kind is StepKind.SEND:
                sent = self.manifest.transfers[step.transfer]
                key = sent.consumer, sent.dest, sent.devices(self.manifest.ranks)
                messages, nbytes = sums.get(key, (0, 0))
                sums[key] = messages + 1, nbytes + sent.nbytes
        rank = self.seat.rank
        return tuple(
            Move(task, rank, dest, *sent, devices) for (task, dest, devices), sent in sums.items()
        )

    def copies(self) -> tuple[Copy, ...]:
        return self._copies

    def taken_bytes(self) -> tuple[tuple[str, int], ...]:
        manifest = self.manifest
        if not manifest.drivers:
            return ()
        return taken_bytes(self.seat.program, manifest.ranks, manifest.drivers)


@dataclass
class OwnedSession:
    """The ownership runtime in the program tracks which rank holds what, and logs events."""

    manifest: DerivedMessages
    seat: Seat
    done_ns: int = 0
    events: np.ndarray = field(init=False)
    _came_to_an_end: bool = False

    def __post_init__(self) -> None:
        manifest, recorder = self.manifest, self.seat.recorder
        temporary = frozenset(b.storage for b in manifest.buffers if b.temporary)
        self._ownership = Ownership(
            self.seat.program, manifest.storages, temporary, manifest.phases, manifest.drivers
        )
        most = -(-recorder.most_events // manifest.ranks) if recorder.traced else 0
        self.events = self.seat.room(most)

    def set_up(self) -> None:
        seat, events = self.seat, self.events
        seat.program.set_globals(
            {
                "avial_events": address(events),
                "avial_events_capacity": len(events),
                "avial_counts": seat.journal.counts_address,
                "avial_counts_capacity": MOST_PHASES,
            }
        )
        manifest = self.manifest
        rows = given_rows(manifest, seat, complete=bool(manifest.rounds))
        if manifest.drivers:
            self._told = choose(
                seat.program, seat.devices, manifest.storages, manifest.ranks, manifest.drivers,
                seat.stays,
            )  # fmt: skip
            tell_given(seat.program, rows)
        addresses = [data.ctypes.data for data in seat.memory.values()]
        self._ownership.setup(self.manifest.ranks, seat.rank, addresses)
        if manifest.drivers and not self._ownership.error:
            check_room(seat.program, manifest.ranks, seat.rank, manifest.drivers, seat.stays)
        self._ownership.keep_at(dict(self.manifest.homes))
        self._ownership.give(seat.held)

    def run(self) -> None:
        if not self._ownership.error:
            manifest, memory = self.manifest, list(self.seat.memory.values())
            self.seat.program.call(manifest.storages, memory, manifest.numbers)
            self._came_to_an_end = not self._ownership.error
            self._ownership.bring_back()
            self._ownership.finish()
        self.done_ns = time.monotonic_ns()

    def failure(self) -> Failure | None:
        """As of steps, where the code may be one of the ownership runtime; up is the phase."""
        if self._ownership.error & 0xFFFFFFFF == ErrorCode.DEVICE:
            why, hint, device = self._ownership.device_error(self.manifest.ranks)
            step = self._ownership.error >> 32
            if self._came_to_an_end:  # of what a device does late, the last phase is the likeliest
                step, why = self.seat.journal.step, f"{why}; found when the results came back"
            return Failure(why, step=step, hint=hint, device=device)
        return _failure(self.seat.program)

    def pieces(self) -> tuple[Piece, ...]:
        return self._ownership.results()

    def held(self) -> tuple[Piece, ...]:
        """By ranks alone: what is on a device is gone with the run, and its results are back."""
        ranks = self.manifest.ranks
        return tuple(piece for piece in self._ownership.held(ranks) if piece.rank < ranks)

    def times(self) -> Times:
        program, ownership = self.seat.program, self._ownership
        return self.seat.recorder.times(
            self.events[: program.get_global("avial_events_count")].copy(),
            totals=ownership.totals(),
            turns=tuple((count.phase, count.begun) for count in ownership.counts() if count.begun),
            dropped=program.get_global("avial_events_dropped"),
            done_ns=self.done_ns,
        )

    def moves(self) -> tuple[Move, ...]:
        return self._ownership.moves(self.manifest.ranks)

    def copies(self) -> tuple[Copy, ...]:
        return self._ownership.copies(self.manifest.ranks)

    def taken_bytes(self) -> tuple[tuple[str, int], ...]:
        manifest = self.manifest
        if not manifest.drivers:
            return ()
        return taken_bytes(self.seat.program, manifest.ranks, manifest.drivers)


def given_rows(manifest: Manifest, seat: Seat, *, complete: bool) -> np.ndarray:
    """`GivenArray` of devices/places.h, a row for each. What is there is saved where the program is
    foreseen to write it, or where nobody knows (not `complete`).
    """
    given = seat.given
    written = {(stay.storage, stay.place) for stay in seat.stays}
    rows = [
        (
            number,
            place,
            array.address,
            array.stream,
            not complete or (storage.name, place) in written,
        )
        for number, storage in enumerate(manifest.storages)
        if storage.name in given
        for array, place in (given[storage.name],)
    ]
    return np.array(rows, np.uint64).reshape(-1, 5).view(np.int64)


def tell_given(program: LoadedProgram, rows: np.ndarray) -> None:
    """The rows have to live as long as the run."""
    program.set_globals({"avial_given": address(rows), "avial_given_count": len(rows)})


session_of.register(KnownMessages, StepSession)
session_of.register(DerivedMessages, OwnedSession)


def address(array: np.ndarray) -> int:
    """Where it begins; 0 where there is nothing."""
    return array.ctypes.data if array.size else 0


ERROR = "avial_error"
"""The global that keeps the first error."""


def _failure(program: LoadedProgram) -> Failure | None:
    """The first error; up are 32 bits with its step or phase."""
    error = program.get_global(ERROR) if program.exports(ERROR) else 0
    if not error:
        return None
    if error & 0xFFFFFFFF == ErrorCode.OUTSIDE:
        return _outside(program, error >> 32)
    return Failure(own_error(error) or _mpi_words(error), step=error >> 32)


def _outside(program: LoadedProgram, step: int) -> Failure:
    """An access that would have left its array, or an assertion, as compiled code reported it."""
    words = (ctypes.c_int64 * 6).in_dll(program.library, "avial_outside_words")
    text, dimension, index, size, line, column = words
    access = ctypes.string_at(text).decode(errors="replace")
    if dimension == ASSERTED:
        return asserted(access, line, column, step)
    return Failure(
        f"{access} reaches index {index} of dimension {dimension}, which has size {size}",
        step=step,
        hint="make the array longer, or the loop shorter; nothing of it was run",
        place=(line, column) if line else None,
    )


def _mpi_words(error: int) -> str:
    from avial_lab.runtime.rank import world

    return world.error_string(error & 0xFFFFFFFF)

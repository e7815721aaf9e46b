"""What a rank records of its own run: when each step was, by its own clock, and how it relates
to rank 0's.

A rank -> Times, which travel to the caller. What the caller makes of them is in `traces.py`.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from avial_lab.artifact.plan import EventTotal

if TYPE_CHECKING:  # imports mpi4py, which starts MPI
    from avial_lab.runtime.rank.world import Communicator


@dataclass(frozen=True)
class Reading:
    """At `at_ns` by a rank's clock, rank 0's said `offset_ns` more, give or take `error_ns`."""

    at_ns: int = 0
    offset_ns: float = 0.0
    error_ns: float = 0.0


@dataclass(frozen=True)
class Aside:
    """A step before the run or after it, by the rank's clock."""

    name: str
    start_ns: int
    end_ns: int
    nbytes: int


@dataclass(frozen=True)
class Times:
    """By the rank's own monotonic clock, in nanoseconds where nothing else is said.

    rows: int64 (2 * steps + 2, 2), seconds and nanoseconds: of step k row 2k is its start and
    2k + 1 where a copy and its message meet (0 for no copy); after the last step its end. Of a
    program of loops int64 (events, EVENT_WORDS), the `EVENT_FIELDS` of each, with its sums, how
    often each phase was begun, and when the rank was done.
    """

    rows: np.ndarray
    readings: tuple[Reading, ...] = (Reading(),)
    around: tuple[Aside, ...] = ()
    totals: tuple[EventTotal, ...] = ()
    turns: tuple[tuple[str, int], ...] = ()
    dropped: int = 0
    done_ns: int = 0
    machine: str = ""


@dataclass
class ClockRecorder:
    """What is recorded while a rank runs; nothing where `traced` is false."""

    traced: bool
    most_events: int
    readings: list[Reading] = field(default_factory=list[Reading])
    around: list[Aside] = field(default_factory=list[Aside])

    @contextmanager
    def aside(self, name: str, nbytes: int = 0) -> Generator[None]:
        start = time.monotonic_ns()
        yield
        if self.traced:
            self.around.append(Aside(name, start, time.monotonic_ns(), nbytes))

    def read_clock(self, communicator: Communicator | None) -> None:
        """Compare the clocks; all ranks do it together."""
        if self.traced and communicator is not None:
            self.readings.append(communicator.read_clock())

    def times(self, rows: np.ndarray, **more: object) -> Times:
        if not self.traced:
            return Times(rows[:0])
        readings = tuple(self.readings) or (Reading(),)
        return Times(rows, readings, tuple(self.around), machine=_machine(), **more)  # type: ignore[arg-type]


def aligned(ns: np.ndarray, readings: tuple[Reading, ...]) -> np.ndarray:
    """Times of a rank by rank 0's clock.

    Between two readings the clocks drift evenly: they are seconds apart, not hours.
    """
    first, last = readings[0], readings[-1]
    if last.at_ns == first.at_ns:
        return ns + round(first.offset_ns)
    share = (ns - first.at_ns) / (last.at_ns - first.at_ns)
    return ns + np.rint(first.offset_ns + share * (last.offset_ns - first.offset_ns)).astype(
        np.int64
    )


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}"

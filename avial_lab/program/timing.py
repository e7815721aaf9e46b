"""How long a program takes: a few runs of one or several programs, in turn.

Programs, a cluster -> Timing for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from avial_lab.core.errors import RunError
from avial_lab.core.words import brief, count, format_seconds
from avial_lab.program.program import Program
from avial_lab.program.reference_run import OneProcess

if TYPE_CHECKING:
    from avial_lab.runtime.launch.cluster import Cluster

_MOST = 10  # times as many runs as were asked for, at the most


@dataclass(frozen=True)
class Timing:
    """`seconds` of every run, in order; none where no rank ran, and `label` says why. threads: of
    each rank; `note` says why they were fewer than asked for.
    """

    seconds: tuple[float, ...]
    label: str = ""
    threads: tuple[int, ...] = ()
    note: str = ""

    @property
    def best_s(self) -> float | None:
        """The shortest: whatever else the machine does can only make a run longer."""
        return min(self.seconds, default=None)

    def __str__(self) -> str:
        if not self.seconds:
            return f"no time: {self.label}"
        least, most = (format_seconds(f(self.seconds)) for f in (min, max))
        words = f"{least}, the best of {count(len(self.seconds), 'run')} (the longest: {most})"
        words += f", {count(max(self.threads), 'thread')}" if self.threads else ""
        return f"{words}; {self.note}" if self.note else words

    def __repr__(self) -> str:
        return brief(self, str(self))


def timed(
    *programs: Program,
    on: Cluster | OneProcess | None = None,
    runs: int = 5,
    enough_s: float = 0.1,
    threads: int | None = None,
) -> tuple[Timing, ...]:
    """Run every program `runs` times, in turn, and take the times; those that are still below
    `enough_s` seconds in all run on, up to ten times as often.

    A time is a run's makespan: from when the first rank begins its first task until the last rank
    has ended its last one, messages between them included. Not in it: to compile, to start ranks,
    to give them the arrays and to take the results.

    Each run finds the arrays as they are now; afterwards they hold what the last run left. The
    programs take turns, so that other work on the machine disturbs all of them alike. `threads` as
    in `program.run`.

    Where there are no ranks (`on` is a OneProcess), each program runs once, as its reference, and
    there are no times: those would be of other code.
    """
    if runs < 1:
        raise RunError(
            f"{runs} runs cannot be timed", hint="for example runs=5; the fastest run counts"
        )
    before = [{name: array.copy() for name, array in p.arrays.items()} for p in programs]
    times: list[list[float]] = [[] for _ in programs]
    for turn in range(1 if isinstance(on, OneProcess) else _MOST * runs):
        for program, arrays, seconds in zip(programs, before, times, strict=True):
            if turn >= runs and sum(seconds) >= enough_s:
                continue
            _put_back(program, arrays)
            trace = program.run(on, threads=threads)
            if trace.ranks:
                seconds.append(trace.makespan_s)
    return tuple(
        Timing(tuple(seconds), program.trace.label, program.trace.threads, program.trace.note)
        for program, seconds in zip(programs, times, strict=True)
        if program.trace is not None
    )


def _put_back(program: Program, arrays: Mapping[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if program.arrays[name].flags.writeable:
            np.copyto(program.arrays[name], array)

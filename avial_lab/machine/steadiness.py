"""Whether a machine is steady while times are taken: a neighbour on its cores, a clock that drops.

Nothing -> Probe, some milliseconds of each core; several of them -> what to doubt, in words.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from avial_lab.machine.cpu import allowed

PROBE_S = 0.012
"""Of each core: longer than what a scheduler gives to one process in a row."""

MOST_CORES = 8
"""That are probed."""

LEAST_SHARE, LEAST_PACE = 0.9, 0.92
"""Of a core's time, and of the pace before or when the machine was measured: below, it is told."""

_CHUNK = 2_000
"""Additions, one after the other, between two looks at the clock: some 100 µs."""


@dataclass(frozen=True)
class Probe:
    """pace: chunks of a fixed chain of additions in a second of a core's own time, the median of
    the cores: its clock. share: how much of their time the cores gave us.
    """

    pace: float
    share: float


def probe(seconds: float = PROBE_S) -> Probe:
    """Of this machine as it is now; nothing of ours may compute meanwhile."""
    found = [_of_core(seconds) for _ in _each_core()]
    wall, ours = sum(w for w, _, _ in found), sum(cpu for _, cpu, _ in found)
    return Probe(median(chunks / cpu for _, cpu, chunks in found), ours / wall)


def _each_core() -> Iterator[int]:
    """On the first cores in turn, where a thread can be kept on one; else where it is."""
    if not hasattr(os, "sched_setaffinity"):
        yield 0
        return
    before = os.sched_getaffinity(0)
    try:
        for core in allowed()[:MOST_CORES]:
            os.sched_setaffinity(0, {core})
            yield core
    finally:
        os.sched_setaffinity(0, before)


def _of_core(seconds: float) -> tuple[float, float, int]:
    """Seconds by the clock on the wall, those of ours, and chunks."""
    chunks, begun, ours = 0, time.perf_counter(), time.thread_time()
    while (wall := time.perf_counter() - begun) < seconds:
        sum(range(_CHUNK))
        chunks += 1
    return wall, max(time.thread_time() - ours, 1e-9), chunks


def doubts(probes: Sequence[Probe], usual: float = 0.0) -> tuple[str, ...]:
    """What was not steady around times; usual: the pace when the machine was measured, if it was.

    >>> doubts([Probe(100.0, 1.0), Probe(80.0, 0.5)], usual=101)
    ... # doctest: +NORMALIZE_WHITESPACE
    ("others had up to 50 % of the cores' time: these times are unreliable",
     'cores became 20 % slower: a clock that drops, or a neighbour on the same core')
    """
    if not probes:
        return ()
    found: list[str] = []
    share, pace = min(each.share for each in probes), [each.pace for each in probes]
    if share < LEAST_SHARE:
        lost = f"{100 * (1 - share):.0f} %"
        found.append(f"others had up to {lost} of the cores' time: these times are unreliable")
    if min(pace) < LEAST_PACE * pace[0]:
        lost = f"{100 * (1 - min(pace) / pace[0]):.0f} %"
        found.append(
            f"cores became {lost} slower: a clock that drops, or a neighbour on the same core"
        )
    elif usual and median(pace) < LEAST_PACE * usual:
        lost = f"{100 * (1 - median(pace) / usual):.0f} %"
        found.append(f"cores are {lost} slower than when this machine was measured")
    return tuple(found)


@dataclass
class Watch:
    """Probes while times are taken."""

    usual: float = 0.0
    probes: list[Probe] = field(default_factory=list[Probe])

    def look(self) -> None:
        self.probes.append(probe())

    @property
    def doubts(self) -> tuple[str, ...]:
        return doubts(self.probes, self.usual)


@contextmanager
def watched(usual: float = 0.0) -> Generator[Watch]:
    """Looked at before and after what is in it, and whenever it calls `look`."""
    watch = Watch(usual)
    watch.look()
    yield watch
    watch.look()

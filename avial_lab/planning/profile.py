"""What earlier runs of a program took: medians, so that one spike places nothing.

Traces of a program -> seconds by task and device, kept in the cache for that very program (its
text, sizes, passes, ranks, threads and machine) and never used for another.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from statistics import median
from typing import Any, cast

from avial_lab.core.cache import Cache
from avial_lab.core.files import cache_folder
from avial_lab.core.words import brief, count
from avial_lab.machine.devices import place_name
from avial_lab.trace import EventKind, Trace

KEPT = 16
"""Runs that are remembered of each task: the last ones."""


class Profile:
    """Seconds of tasks by (task, device). `key` names the program and all that its times depend
    on; what runs add is written by `save`, all of it or nothing.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._new: dict[tuple[str, str], list[float]] = defaultdict(list)

    def add(self, trace: Trace) -> None:
        """What each task took in that run; a phase of loops counts once for a rank, all its pieces
        together.
        """
        if trace.simulated:
            return
        taken: dict[tuple[str, str], float] = defaultdict(float)
        if trace.dropped:  # then the sums are known of each rank alone
            for total in trace.totals:
                if total.kind is EventKind.TASK:
                    taken[total.phase, place_name(total.rank, trace.ranks)] += total.seconds
        for event in trace.events if not trace.dropped else ():
            if event.kind is EventKind.TASK:
                taken[event.name, event.device] += event.duration_s
        for place, seconds in taken.items():
            self._new[place].append(seconds)

    @property
    def seconds(self) -> Mapping[tuple[str, str], float]:
        """The median of what is known of each task on each device."""
        return {place: median(times) for place, times in self._samples().items()}

    @property
    def runs(self) -> int:
        return max(map(len, self._samples().values()), default=0)

    def save(self) -> None:
        """Keep what was added; a cache that is full or read-only keeps what it had."""
        if not self._new:
            return
        rows = [[*place, *times] for place, times in self._samples().items()]
        self._store().put(self._key, json.dumps(rows).encode())
        self._new.clear()

    def _samples(self) -> dict[tuple[str, str], list[float]]:
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for name, device, *times in self._stored():
            found[name, device] += times
        for place, times in self._new.items():
            found[place] += times
        return {place: times[-KEPT:] for place, times in found.items()}

    def _stored(self) -> list[Any]:
        data = self._store().get(self._key)
        try:
            rows = cast("list[Any]", json.loads(data) if data is not None else [])
        except ValueError:
            return []
        return [row for row in rows if _is_row(row)]

    @staticmethod
    def _store() -> Cache:
        return Cache(cache_folder() / "profile")

    def __repr__(self) -> str:
        return brief(self, f"of {count(len(self._samples()), 'task')}, {count(self.runs, 'run')}")


def _is_row(row: object) -> bool:
    """What this version writes: a name, a device, seconds."""
    if not isinstance(row, list):
        return False
    name, device, *times = (
        cast("list[object]", row) if len(cast("list[object]", row)) > 2 else (0, 0)
    )
    return (
        isinstance(name, str)
        and isinstance(device, str)
        and bool(times)
        and all(isinstance(each, float) and each >= 0 for each in times)
    )

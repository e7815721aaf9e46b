"""Chrome traces as task graphs: what ran is run again, each for as long as it took.

Events of a trace -> Workflow. A task is a complete event (`X`, or a pair of `B` and `E`) that is
inside no other of its thread; it waits for the one before it there, and for those whose flow
(`s`, `f`) ends in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any, cast

from avial_lab.core.errors import AvialError
from avial_lab.planning.imports.workflow import Given, Workflow, workflow

Place = tuple[str, str]
"""Process and thread."""

Slice = tuple[float, float, str]
"""Begin and end in microseconds, and the name."""


def trace_graph(events: object, path: Path) -> Workflow:
    """Raises AvialError where there are no events with a duration."""
    if not isinstance(events, list):
        raise AvialError(f"{path} is no Chrome trace: its traceEvents are no list")
    try:
        return _graph(cast("list[dict[str, Any]]", events), path)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise AvialError(f"{path} is no Chrome trace: {type(error).__name__} {error}") from None


def _graph(events: list[dict[str, Any]], path: Path) -> Workflow:
    threads = {place: _outermost(slices) for place, slices in _slices(events).items()}
    seen: Counter[str] = Counter()
    names: dict[tuple[Place, int], str] = {}
    order = sorted((s[0], place, k) for place, row in threads.items() for k, s in enumerate(row))
    for _, place, k in order:
        name = threads[place][k][2] or "event"
        seen[name] += 1
        names[place, k] = name if seen[name] == 1 else f"{name} #{seen[name]}"
    after: dict[str, list[str]] = {name: [] for name in names.values()}
    for (place, k), name in names.items():
        if k:
            after[name].append(names[place, k - 1])
    for before, then in _flows(events, threads, names):
        if before != then and before not in after[then]:
            after[then].append(before)
    tasks = [
        Given(
            names[place, k],
            (threads[place][k][1] - threads[place][k][0]) / 1e6,
            after=tuple(after[names[place, k]]),
        )
        for _, place, k in order
    ]
    return workflow(path, tasks, {})


def _slices(events: list[dict[str, Any]]) -> dict[Place, list[Slice]]:
    found: dict[Place, list[Slice]] = {}
    open_: dict[Place, list[tuple[float, str]]] = {}
    for event in events:
        phase, place = event.get("ph"), _place(event)
        if phase == "X":
            begin = float(event["ts"])
            end = begin + float(event.get("dur", 0))
            found.setdefault(place, []).append((begin, end, str(event.get("name", ""))))
        elif phase == "B":
            begun = float(event["ts"]), str(event.get("name", ""))
            open_.setdefault(place, []).append(begun)
        elif phase == "E" and open_.get(place):
            begin, name = open_[place].pop()
            found.setdefault(place, []).append((begin, float(event["ts"]), name))
    return found


def _outermost(slices: list[Slice]) -> list[Slice]:
    kept: list[Slice] = []
    for each in sorted(slices, key=lambda s: (s[0], -s[1])):
        if not kept or each[0] >= kept[-1][1]:
            kept.append(each)
    return kept


def _flows(
    events: list[dict[str, Any]],
    threads: dict[Place, list[Slice]],
    names: dict[tuple[Place, int], str],
) -> list[tuple[str, str]]:
    starts: dict[object, str] = {}
    found: list[tuple[str, str]] = []
    flows = [event for event in events if event.get("ph") in ("s", "t", "f")]
    for event in sorted(flows, key=lambda each: float(each["ts"])):
        place, time = _place(event), float(event["ts"])
        row = threads.get(place, [])
        k = bisect_right([s[0] for s in row], time) - 1
        if k < 0 or time > row[k][1]:
            continue
        key = event.get("cat"), event.get("id")
        if event["ph"] != "s" and key in starts:
            found.append((starts[key], names[place, k]))
        starts[key] = names[place, k]
    return found


def _place(event: dict[str, Any]) -> Place:
    return str(event.get("pid", "")), str(event.get("tid", ""))

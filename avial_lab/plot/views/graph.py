"""What the view of the task graph draws: tasks and edges in columns, with all that is shown.

TaskGraph (Schedule, Trace) -> JSON for `graph.js`. One form for three tasks and for a hundred
thousand: columns, with words that recur in a table of their own; large ones are packed.

    title, summary, machine, alt    words
    totals   {tasks, edges, levels}, also of what is not carried
    path     {words, unit: "s" | "B", measured, tasks: [index, …]}
    looks    [{name, letter, colour, ink, dash, cut, after_rank}]: how devices of each kind look
    devices  [{name, rank, look}]: the lanes; `look` is a number of `looks`
    groups   [{name, words, loop, around}]: loops around tasks, outer before inner
    runs     where not all tasks are carried, {step, rows: [[…], …]}: how many of each look there
             are in every `step` levels
    hidden   what `columns` leave out, in words; "" where nothing is
    columns  {strings, tasks: {column: […]}, edges: {column: […]}}, or `packed`: that, as base64 of
             zlib's compressed JSON; a name begins like the one before it, `shared` characters long
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any

from avial_lab.core.words import count
from avial_lab.machine.devices import KINDS
from avial_lab.planning import graph_facts
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import Access, Dependency, Task, TaskGraph, TaskKind
from avial_lab.plot.palette import LOOKS, ink_on, look_of
from avial_lab.trace import Trace

MOST_RUNS = 400
PLAIN_BYTES = 60_000
"""Columns of more are packed."""

MOST_TOLD = 20_000
"""Tasks and edges up to which regions and reasons are carried: of more they would be megabytes."""


def graph_data(
    graph: TaskGraph,
    schedule: Schedule | None = None,
    trace: Trace | None = None,
    *,
    title: str = "Task graph",
    most_bytes: int = 280_000,
) -> dict[str, Any]:
    """All tasks and edges where they take no more than `most_bytes`; else without the words of
    each; else the tasks that matter and those around them. `hidden` says which.
    """
    critical = graph_facts.critical_of(graph, trace)
    position = {task.name: k for k, task in enumerate(graph.tasks)}
    path = [position[name] for name in critical.path]
    everything, hidden = range(len(graph.tasks)), ""
    told = len(graph.tasks) + len(graph.dependencies) <= MOST_TOLD
    form = _form(_columns(graph, schedule, trace, everything, told=True)) if told else {}
    if not told or _size(form) > most_bytes:
        form = _form(_columns(graph, schedule, trace, everything, told=False))
        hidden = "regions and the reasons of placements are left out to limit the size"
    runs = None
    if _size(form) > most_bytes:
        runs = _runs(graph, schedule)
        kept = _what_matters(graph, path, most=1500)
        form = _form(_columns(graph, schedule, trace, kept, told=True))
        at = {k: n for n, k in enumerate(kept)}
        path = [at[k] for k in path if k in at]
        hidden = (
            f"of {count(len(graph.tasks), 'task')} the {len(kept):,} on and around "
            "the critical path are carried here; the rest is counted by level"
        )
    summary = graph_facts.graph_summary(graph, schedule)
    return {
        "title": title,
        "summary": summary,
        "machine": "" if schedule is None else schedule.topology.summary,
        "alt": f"{summary}. {graph_facts.critical_summary(critical)}",
        "totals": {
            "tasks": len(graph.tasks),
            "edges": len(graph.dependencies),
            "levels": len(graph.levels),
        },
        "path": {
            "words": graph_facts.critical_summary(critical),
            "unit": "s" if critical.measured else "B",
            "measured": critical.measured,
            "tasks": path,
        },
        "looks": _all_looks(),
        "devices": [] if schedule is None else _devices(schedule),
        "groups": [
            {
                "name": group.name,
                "words": group.words,
                "loop": group.loop,
                "around": list(group.around),
            }
            for group in graph.groups
        ],
        "runs": runs,
        "hidden": hidden,
        **form,
    }


def _form(columns: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(columns, ensure_ascii=False, separators=(",", ":"))
    if len(text) <= PLAIN_BYTES:
        return {"columns": columns}
    return {"packed": base64.b64encode(zlib.compress(text.encode(), 6)).decode("ascii")}


def _size(form: Mapping[str, Any]) -> int:
    return len(form.get("packed", ""))


class _Strings:
    """Each string once, by number."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}

    def column(self, words: Iterable[str]) -> list[int]:
        number = self._number
        return [number.setdefault(each, len(number)) for each in words]

    @property
    def listed(self) -> list[str]:
        return list(self._number)


def _columns(
    graph: TaskGraph,
    schedule: Schedule | None,
    trace: Trace | None,
    kept: Sequence[int],
    *,
    told: bool,
) -> dict[str, Any]:
    """Of the tasks `kept` (in program order), and the edges between them; `told`: with regions
    and reasons.
    """
    words = _Strings()
    tasks = [graph.tasks[k] for k in kept]
    at = {task.name: k for k, task in enumerate(tasks)}
    within = [e for e in graph.dependencies if e.before in at and e.after in at]
    later = [e for e in graph.carried if e.before in at and e.after in at]
    return {
        "tasks": _task_columns(tasks, graph, schedule, trace, words, told=told),
        "edges": _edge_columns(within, later, at, schedule, words, told=told),
        "strings": words.listed,
    }


def _task_columns(
    tasks: Sequence[Task],
    graph: TaskGraph,
    schedule: Schedule | None,
    trace: Trace | None,
    words: _Strings,
    *,
    told: bool,
) -> dict[str, list[Any]]:
    critical = graph_facts.critical_of(graph, trace)
    places = {} if schedule is None else schedule.placement_of
    group: dict[tuple[str, ...], int] = {
        (*each.around, each.name): k for k, each in enumerate(graph.groups)
    }
    level = graph.level_of
    names = [task.name for task in tasks]
    shared = [_shared(*pair) for pair in pairwise(["", *names])]
    columns: dict[str, list[Any]] = {
        "shared": shared,
        "name": [name[n:] for n, name in zip(shared, names, strict=True)],
        "level": [level[task.name] for task in tasks],
        "look": _looks(tasks, schedule),
        "target": words.column(str(task.target) for task in tasks),
        "kind": words.column(task.kind.value for task in tasks),
        "lanes": _lanes(tasks, schedule),
        "group": [group.get(task.group, -1) for task in tasks],
        "line": [0 if task.span is None else task.span.line for task in tasks],
        "cost": [_short(critical.cost[task.name]) for task in tasks],
        "slack": [_short(critical.slack[task.name]) for task in tasks],
        "summary": words.column(task.summary for task in tasks),
        "reads": words.column(_touched(task.reads, told=told) for task in tasks),
        "writes": words.column(_touched(task.writes, told=told) for task in tasks),
    }
    if told and places:
        columns["why"] = words.column(places[task.name].reason for task in tasks)
    return columns


def _shared(first: str, then: str) -> int:
    """How many characters two names begin with alike."""
    number = 0
    for a, b in zip(first, then, strict=False):
        if a != b:
            break
        number += 1
    return number


def _all_looks() -> list[dict[str, Any]]:
    return [
        {
            "name": kind.look.name,
            "letter": kind.look.letter,
            "colour": kind.look.colour,
            "ink": ink_on(kind.look.colour),
            "dash": kind.look.dash,
            "cut": kind.look.cut_corners,
            "after_rank": ", emulated" * kind.emulated,
        }
        for kind in KINDS
    ]


def _looks(tasks: Sequence[Task], schedule: Schedule | None) -> list[int]:
    """Of the device each task is placed on, or of its target, as numbers of LOOKS."""
    if schedule is None:
        of_target = {target: LOOKS.index(look_of(target)) for target in {t.target for t in tasks}}
        return [of_target[task.target] for task in tasks]
    of_device = {device.name: LOOKS.index(look_of(device)) for device in schedule.topology.devices}
    places = schedule.placement_of
    return [of_device[places[task.name].device] for task in tasks]


def _lanes(tasks: Sequence[Task], schedule: Schedule | None) -> list[int | list[int]]:
    """The number of the device each task is on, -1 where it is on none yet; of a divided one all
    of them.
    """
    if schedule is None:
        return [-1] * len(tasks)
    lane = {device.name: k for k, device in enumerate(schedule.topology.devices)}
    divided = [task for task in tasks if task.kind is TaskKind.REPLICATE]
    several = graph_facts.placements_of(schedule, divided)
    places = schedule.placement_of
    return [
        [lane[place.device] for place in several[task.name]]
        if task.name in several
        else lane[places[task.name].device]
        for task in tasks
    ]


def _touched(accesses: Sequence[Access], *, told: bool) -> str:
    if told:
        return graph_facts.access_words(accesses)
    return accesses[0].buffer if len(accesses) == 1 else graph_facts.buffer_words(accesses)


def _edge_columns(
    within: Sequence[Dependency],
    later: Sequence[Dependency],
    at: Mapping[str, int],
    schedule: Schedule | None,
    words: _Strings,
    *,
    told: bool,
) -> dict[str, list[Any]]:
    """Edges are sorted by where they go to; `before` counts back from there, `after` on from the
    edge before. Both are small then, and small numbers pack well. `carried`: to a later iteration.
    """
    edges = (*within, *later)
    heads = [at[edge.after] for edge in edges]
    columns: dict[str, list[Any]] = {
        "before": [head - at[edge.before] for head, edge in zip(heads, edges, strict=True)],
        "after": [head - before for before, head in pairwise([0, *heads])],
        "hazard": words.column(edge.hazard.value for edge in edges),
        "buffer": words.column(edge.buffer for edge in edges),
        "bytes": [edge.nbytes for edge in edges],
        "carried": [0] * len(within) + [1] * len(later),
    }
    if told:
        columns["region"] = words.column(graph_facts.region_words(edge.region) for edge in edges)
    if schedule is not None:
        sent = {(transfer.producer, transfer.consumer) for transfer in schedule.transfers}
        columns["message"] = [int((edge.before, edge.after) in sent) for edge in edges]
    return columns


def _short(value: float) -> float:
    """As many digits as anyone reads."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _devices(schedule: Schedule) -> list[dict[str, Any]]:
    return [
        {"name": device.name, "rank": device.rank, "look": LOOKS.index(look_of(device))}
        for device in schedule.topology.devices
    ]


def _runs(graph: TaskGraph, schedule: Schedule | None) -> dict[str, Any]:
    """How many tasks of each look there are, by level or by some levels."""
    step = max(1, ceil(len(graph.levels) / MOST_RUNS))
    rows = [[0] * len(LOOKS) for _ in range(0, len(graph.levels), step)]
    level = graph.level_of
    for task, look in zip(graph.tasks, _looks(graph.tasks, schedule), strict=True):
        rows[level[task.name] // step][look] += 1
    return {"step": step, "rows": rows}


def _what_matters(graph: TaskGraph, path: Sequence[int], *, most: int) -> list[int]:
    """The critical path, as much as there is room for, and its neighbours."""
    kept = set(path[: most // 2])
    position = {task.name: k for k, task in enumerate(graph.tasks)}
    for edge in graph.dependencies:
        ends = position[edge.before], position[edge.after]
        if len(kept) < most and not kept.isdisjoint(ends):
            kept.update(ends)
    return sorted(kept)[:most]

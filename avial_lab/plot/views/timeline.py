"""What the interactive timeline draws: every event in few bytes, and the facts beside it.

Trace -> JSON for timeline.js. At most `LIMIT` bytes: where that is too little, events shorter than
some time are put together by kind, each kind as long as its events were, and it says so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from avial_lab.core.table import Table
from avial_lab.core.words import count, format_seconds
from avial_lab.machine import devices
from avial_lab.planning.schedule import Schedule
from avial_lab.plot.palette import ink_on, task_colours
from avial_lab.trace import Event, EventKind, Trace, run_facts
from avial_lab.trace.analysis import Link, Segment, critical_path, links, shares

LIMIT = 300_000
"""Bytes of the JSON."""

MOST_ROWS = 64
MOST_STRETCHES = 1000
KINDS = tuple(kind.value for kind in EventKind)

Json = dict[str, Any]


@dataclass
class _Bar:
    """One event, or (`merged` > 1) neighbours of one kind; times in nanoseconds."""

    kind: EventKind
    name: str
    start: int
    length: int
    nbytes: int = 0
    turn: int = 0
    what: str = ""
    merged: int = 1
    events: list[Event] = field(default_factory=list[Event])


@dataclass(frozen=True)
class _Row:
    rank: int
    device: str
    bars: Sequence[_Bar]
    around: bool = False
    predicted: bool = False


def timeline_data(
    trace: Trace, schedule: Schedule | None = None, *, predicted: Trace | None = None
) -> Json:
    """A row for each rank and device; below it the `predicted` one, where there is a model's
    trace.
    """
    rows = _rows(trace, predicted)
    shown = rows[:MOST_ROWS]
    hidden = [count(len(rows) - len(shown), "more row") + " hidden."] if rows[MOST_ROWS:] else []
    facts = _facts(trace, schedule, shown)
    path, ends = facts.pop("path"), links(trace.events)
    # Twelve bytes a bar: most that could fit, so that the first try is near.
    width = 0 if len(trace.events) < LIMIT // 12 else max(1, _ns(trace.makespan_s) // 8000)
    while True:
        data = facts | _bar_columns([_thinned(row, width) for row in shown], path, ends)
        data["notes"] = [*hidden, *facts["notes"], *_merged_words(data, width)]
        if len(json.dumps(data, separators=(",", ":"), ensure_ascii=False)) <= LIMIT:
            return data
        width = 2 * width or max(1, _ns(trace.makespan_s) // 8000)


def _rows(trace: Trace, predicted: Trace | None) -> list[_Row]:
    """By rank; an event of no device is in the rank's first row."""
    rows: list[_Row] = []
    measured, modelled = _by_device(trace, trace.events), {}
    if predicted is not None:
        modelled = _by_device(predicted, predicted.events)
    aside = _by_device(trace, trace.around)
    for rank in range(trace.ranks):
        devices = sorted({device for of, device in (*measured, *modelled) if of == rank})
        for device in devices or [""]:
            rows.append(_Row(rank, device, measured.get((rank, device), [])))
            if (rank, device) in modelled:
                rows.append(_Row(rank, device, modelled[rank, device], predicted=True))
        bars = [bar for (of, _), listed in aside.items() if of == rank for bar in listed]
        if bars:
            rows.append(_Row(rank, "", bars, around=True))
    return rows


def _by_device(trace: Trace, events: Iterable[Event]) -> dict[tuple[int, str], list[_Bar]]:
    listed = sorted(events, key=lambda event: (event.start_s, event.end_s))
    first: dict[int, str] = {}
    for event in listed:
        if event.device:
            first[event.rank] = min(first.get(event.rank, event.device), event.device)
    found: dict[tuple[int, str], list[_Bar]] = defaultdict(list)
    begin = _ns(trace.begin_s)
    for event in listed:
        start, end = _ns(event.start_s) - begin, _ns(event.end_s) - begin
        bar = _Bar(
            event.kind, event.name, start, max(0, end - start), event.nbytes, event.turn,
            event.what, events=[event],
        )  # fmt: skip
        found[event.rank, event.device or first.get(event.rank, "")].append(bar)
    return found


def _thinned(row: _Row, width: int) -> _Row:
    """Bars that lie together within `width` nanoseconds are put together by kind, one kind after
    the other from where the first began.
    """
    if width == 0:
        return row
    bars: list[_Bar] = []
    group: list[_Bar] = []
    for bar in row.bars:
        if group and bar.start + bar.length > group[0].start + width:
            bars += _together(group)
            group = []
        group.append(bar)
    bars += _together(group)
    return _Row(row.rank, row.device, bars, row.around, row.predicted)


def _together(group: list[_Bar]) -> list[_Bar]:
    if len(group) < 2:
        return group
    by_kind: dict[EventKind, list[_Bar]] = defaultdict(list)
    for bar in group:
        by_kind[bar.kind].append(bar)
    made: list[_Bar] = []
    at = group[0].start
    for kind, bars in by_kind.items():
        names = {bar.name for bar in bars}
        length = sum(bar.length for bar in bars)
        nbytes = sum(bar.nbytes for bar in bars)
        merged = sum(bar.merged for bar in bars)
        turn, what = (bars[0].turn, bars[0].what) if merged == 1 else (0, "")
        events = [event for bar in bars for event in bar.events]
        made.append(
            _Bar(kind, bars[0].name if len(names) == 1 else "", at, length, nbytes, turn, what,
                 merged, events)
        )  # fmt: skip
        at += length
    return made


def _facts(trace: Trace, schedule: Schedule | None, rows: Sequence[_Row]) -> Json:
    """All that is the same however many bars are drawn."""
    path = critical_path(trace)
    tables = (
        run_facts.rank_table(trace, schedule),
        run_facts.task_table(trace, schedule),
        run_facts.path_table(trace, path),
        run_facts.event_table(trace, schedule),
    )
    said = (
        run_facts.overlap_words(trace),
        run_facts.clock_words(trace),
        run_facts.dropped_words(trace),
    )
    colours = task_colours(run_facts.task_names(trace, schedule))
    return {
        "tasks": {name: [colour, ink_on(colour)] for name, colour in colours.items()},
        "summary": run_facts.trace_summary(trace, schedule),
        "span": _ns(trace.makespan_s),
        "clock_error": _ns(trace.clock_error_s),
        "kinds": list(KINDS),
        "words": [run_facts.KIND_WORDS[kind] for kind in EventKind],
        "devices": _device_kinds(),
        "rows": [_head(row, trace, schedule) for row in rows],
        "path": _path(trace, path),
        "shares": [
            {"rank": share.rank, "parts": run_facts.percentages(share.parts)}
            for share in shares(trace)[:MOST_ROWS]
        ],
        "share_names": list(run_facts.SHARES),
        "tables": [_table(table) for table in tables if table.rows],
        "notes": [words for words in said if words],
    }


def _bar_columns(
    rows: Sequence[_Row], path: Sequence[tuple[int, int, int, str, str]], ends: Sequence[Link]
) -> Json:
    """Columns; starts are stored as the gap to the end of the bar before, so that numbers are
    short.
    """
    names: dict[str, int] = {"": 0}
    columns: dict[str, list[int]] = {
        name: [] for name in ("kind", "name", "gap", "length", "bytes", "turn", "what", "merged")
    }
    number: dict[int, int] = {}
    for row in rows:
        at = 0
        for bar in row.bars:
            if bar.merged == 1:
                number[id(bar.events[0])] = len(columns["kind"])
            columns["kind"].append(KINDS.index(bar.kind.value))
            columns["name"].append(names.setdefault(bar.name, len(names)))
            columns["gap"].append(bar.start - at)
            columns["length"].append(bar.length)
            columns["bytes"].append(bar.nbytes)
            columns["turn"].append(bar.turn)
            columns["what"].append(names.setdefault(bar.what, len(names)))
            columns["merged"].append(bar.merged)
            at = bar.start + bar.length
    plain = {"bytes": 0, "turn": 0, "what": 0, "merged": 1}
    messages = [
        (number[id(sent)], number[id(received)])
        for sent, received in ends
        if id(sent) in number and id(received) in number
    ]
    return {
        "counts": [len(row.bars) for row in rows],
        # A column of which every value is the usual one is left out.
        "events": {
            name: None if name in plain and set(values) <= {plain[name]} else values
            for name, values in columns.items()
        },
        "messages": [end for pair in messages for end in pair],
        "path": [[*where, names.setdefault(name, len(names))] for *where, name in path],
        "names": list(names),
    }


def _head(row: _Row, trace: Trace, schedule: Schedule | None) -> Json:
    return {
        "rank": row.rank,
        "device": row.device,
        "kind": _kind(row.device, trace, schedule),
        "around": row.around,
        "predicted": row.predicted,
    }


def _kind(device: str, trace: Trace, schedule: Schedule | None) -> int:
    """As a number of `devices.KINDS`: from the schedule or, without one, as the trace says."""
    if schedule is not None and device:
        return devices.KINDS.index(schedule.topology.device(device).kind)
    return devices.KINDS.index(trace.kind_of(device))


def _device_kinds() -> list[Json]:
    """How the devices of each kind look."""
    return [
        {
            "colour": kind.look.colour,
            "ink": ink_on(kind.look.colour),
            "dashed": bool(kind.look.dash),
            "after_name": " (emulated)" * kind.emulated,
        }
        for kind in devices.KINDS
    ]


def _path(trace: Trace, path: Sequence[Segment]) -> list[tuple[int, int, int, str, str]]:
    """The longest stretches by time: rank, start, length, kind, name."""
    longest = sorted(path, key=lambda segment: -segment.duration_s)[:MOST_STRETCHES]
    return [
        (
            segment.rank,
            _ns(segment.start_s - trace.begin_s),
            _ns(segment.duration_s),
            segment.kind,
            segment.name,
        )
        for segment in sorted(longest, key=lambda segment: (segment.start_s, segment.end_s))
    ]


def _merged_words(data: Json, width: int) -> list[str]:
    merged = sum(number for number in data["events"]["merged"] or () if number > 1)
    if not merged:
        return []
    return [
        f"{count(merged, 'event')} within {format_seconds(width * 1e-9)} of one another are drawn "
        "together by kind, and messages between them have no arrow; the file of "
        "program.trace.save has every one that was kept."
    ]


def _table(table: Table) -> Json:
    return {
        "title": table.title,
        "head": list(table.head),
        "rows": [list(row) for row in table.rows],
        "numbers": sorted(table.numbers),
        "note": table.note,
    }


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)

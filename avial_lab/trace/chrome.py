"""The file that Perfetto and chrome://tracing open: Trace <-> Chrome trace events, as JSON.

One process a rank (pid = rank + 1), one thread a device of it, the steps before and after the run
in a thread of their own; every message is a flow from its send to the end of the wait for it.
Times are microseconds, to the nanosecond. https://docs.perfetto.dev/getting-started/other-formats
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

from avial_lab.core.errors import AvialError
from avial_lab.core.files import written_whole
from avial_lab.trace.analysis import links
from avial_lab.trace.events import Copy, Event, EventKind, Move, Total, Trace

MOST_EVENTS = 500_000
"""About 100 MB: a browser cannot load a few hundred."""

AROUND = "before and after the run"

Json = dict[str, Any]


def save_trace(trace: Trace, path: Path, *, most: int = MOST_EVENTS) -> Path:
    """All of it or nothing; of more than `most` events the later ones are left out, and it says
    so.
    """
    try:
        with written_whole(path) as file:
            file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
            for number, event in enumerate(_rows(trace, most)):
                file.write(",\n" * (number > 0) + _text(event))
            file.write(f'\n],"otherData":{_text(_facts(trace, most))}}}\n')
    except OSError as error:
        raise AvialError(
            f"cannot write {path}: {error.strerror}", hint="save it in another folder"
        ) from None
    return path


def load_trace(path: Path) -> Trace:
    """The trace in a file that `save_trace` wrote; times are right to the nanosecond."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return _trace_of(document)
    except OSError as error:
        raise AvialError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise AvialError(
            f"{path} is not a trace of avial_lab", hint="`program.trace.save` writes them"
        ) from None


# Writing ------------------------------------------------------------------------------------------


def _rows(trace: Trace, most: int) -> Iterator[Json]:
    """Names first, then events and flows by time."""
    kept = sorted(trace.events, key=lambda event: event.start_s)[:most]
    threads = _threads(trace)
    begin_ns = _begin_ns(trace)
    yield from _names(threads)
    slices = heapq.merge(
        (_slice(event, threads, begin_ns) for event in kept),
        sorted((_slice(e, threads, begin_ns, around=True) for e in trace.around), key=_time),
        _flows(kept, threads, begin_ns),
        key=_time,
    )
    for row in slices:
        row["ts"] = _us(row["ts"])
        if "dur" in row:
            row["dur"] = _us(row["dur"])
        yield row


def _threads(trace: Trace) -> dict[tuple[int, str], int]:
    """A number for each device of each rank, from 1; steps of no device are its first device's."""
    devices: dict[int, set[str]] = {rank: set() for rank in range(trace.ranks)}
    for event in (*trace.events, *trace.around):
        devices[event.rank].add(event.device)
    threads: dict[tuple[int, str], int] = {}
    for rank, names in devices.items():
        ordered = sorted(names - {""}) or ["steps"]
        aside = [AROUND] if any(event.rank == rank for event in trace.around) else []
        for number, name in enumerate((*ordered, *aside)):
            threads[rank, name] = number + 1
    return threads


def _thread(threads: Mapping[tuple[int, str], int], event: Event, *, around: bool = False) -> int:
    return threads.get((event.rank, AROUND if around else event.device), 1)


def _names(threads: Mapping[tuple[int, str], int]) -> Iterator[Json]:
    def named(kind: str, rank: int, thread: int, **args: object) -> Json:
        return {"ph": "M", "name": kind, "pid": rank + 1, "tid": thread, "ts": 0, "args": args}

    for rank in dict.fromkeys(rank for rank, _ in threads):
        yield named("process_name", rank, 0, name=f"rank {rank}")
        yield named("process_sort_index", rank, 0, sort_index=rank)
    for (rank, name), thread in threads.items():
        yield named("thread_name", rank, thread, name=name)


def _slice(
    event: Event, threads: Mapping[tuple[int, str], int], begin_ns: int, *, around: bool = False
) -> Json:
    args: Json = {"bytes": event.nbytes} if event.nbytes else {}
    if event.peer is not None:
        args["peer"] = event.peer
    if event.message is not None:
        args["message"] = event.message
    if event.what:
        args["memory"] = event.what
    if event.turn:
        args["turn"] = event.turn
    if event.device:
        args["device"] = event.device
    start, end = _ns(event.start_s), _ns(event.end_s)
    return {
        "ph": "X",
        "name": event.name,
        "cat": event.kind.value,
        "pid": event.rank + 1,
        "tid": _thread(threads, event, around=around),
        "ts": start - begin_ns,
        "dur": max(0, end - start),
        "args": args,
    }


def _flows(
    events: Iterable[Event], threads: Mapping[tuple[int, str], int], begin_ns: int
) -> list[Json]:
    """An arrow for each message: from the start of its send to just before the end of the wait.

    One that seems to arrive before it left (by the clocks' error) has none: a flow goes forward.
    """
    rows: list[Json] = []
    for number, (sent, received) in enumerate(links(events)):
        start, end = _ns(sent.start_s), _ns(received.end_s)
        end = max(_ns(received.start_s), end - 1)
        if end < start:
            continue
        for phase, event, time in (("s", sent, start), ("f", received, end)):
            row = {
                "ph": phase,
                "id": number + 1,
                "name": "message",
                "cat": "message",
                "pid": event.rank + 1,
                "tid": _thread(threads, event),
                "ts": time - begin_ns,
            }
            rows.append(row | {"bp": "e"} if phase == "f" else row)
    rows.sort(key=_time)
    return rows


def _facts(trace: Trace, most: int) -> Json:
    """What is said of the whole run; with it a saved trace can be loaded again."""
    return {
        "made_by": "avial_lab",
        "label": trace.label,
        "machine": trace.machine,
        "kinds": dict(trace.kinds),
        "ranks": trace.ranks,
        "clock_error_us": trace.clock_error_s * 1e6,
        "begin_us": _begin_ns(trace) / 1e3,
        "ends_us": [end_s * 1e6 for end_s in trace.ends_s],
        "events_left_out": max(0, len(trace.events) - most),
        "events_dropped": list(trace.dropped),
        "turns": dict(trace.turns),
        "moves": [list(astuple(move)) for move in trace.moves],
        "copies": [[c.phase, c.source, c.dest, c.copies, c.nbytes] for c in trace.copies],
        "taken_bytes": dict(trace.taken_bytes),
        "held_bytes": list(trace.held_bytes),
        "totals": [
            [t.rank, t.phase, t.kind.value, t.events, t.seconds, t.nbytes] for t in trace.totals
        ],
    }


def _begin_ns(trace: Trace) -> int:
    """The first of all times: before 0 where inputs were given."""
    return min((_ns(event.start_s) for event in (*trace.around, *trace.events)), default=0)


def _time(row: Json) -> int:
    return row["ts"]


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1e3


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


# Reading ------------------------------------------------------------------------------------------


def _trace_of(document: Json) -> Trace:
    facts = document["otherData"]
    begin_us = facts["begin_us"]
    aside = {
        (row["pid"], row["tid"])
        for row in document["traceEvents"]
        if row["name"] == "thread_name" and row["args"]["name"] == AROUND
    }
    events: list[Event] = []
    around: list[Event] = []
    for row in document["traceEvents"]:
        if row["ph"] == "X":
            apart = (row["pid"], row["tid"]) in aside
            (around if apart else events).append(_event_of(row, begin_us))
    return Trace(
        ranks=facts["ranks"],
        events=tuple(events),
        label=facts["label"],
        moves=tuple(Move(*move) for move in facts["moves"]),
        clock_error_s=facts["clock_error_us"] / 1e6,
        around=tuple(around),
        totals=tuple(
            Total(rank, phase, EventKind(kind), *rest)
            for rank, phase, kind, *rest in facts["totals"]
        ),
        dropped=tuple(facts["events_dropped"]),
        turns=tuple(facts["turns"].items()),
        ends_s=tuple(end_us / 1e6 for end_us in facts["ends_us"]),
        machine=facts["machine"],
        kinds=tuple(facts.get("kinds", {}).items()),
        copies=tuple(Copy(*copy) for copy in facts.get("copies", ())),
        taken_bytes=tuple(facts.get("taken_bytes", {}).items()),
        held_bytes=tuple(facts.get("held_bytes", ())),
    )


def _event_of(row: Json, begin_us: float) -> Event:
    args = row["args"]
    # In whole nanoseconds first: a sum of two decimals is not the decimal sum.
    start_ns = round((row["ts"] + begin_us) * 1e3)
    end_ns = start_ns + round(row["dur"] * 1e3)
    return Event(
        EventKind(row["cat"]),
        row["name"],
        row["pid"] - 1,
        args.get("device", ""),
        start_ns / 1e9,
        end_ns / 1e9,
        args.get("bytes", 0),
        args.get("peer"),
        args.get("message"),
        args.get("memory", ""),
        args.get("turn", 0),
    )

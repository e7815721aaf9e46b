"""The facts of a run in words: what took how long, and what the ranks' time went into.

Trace -> sentences and `Table`s. What a trace prints as, the timeline, its alternative text and the
table below it all take them from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from avial_lab.core.table import ROW_LIMIT, Table, left_out
from avial_lab.core.words import count, format_bytes, format_seconds
from avial_lab.machine.devices import label_with
from avial_lab.trace import Copy, Event, EventKind, Trace
from avial_lab.trace.analysis import (
    Segment,
    balance,
    critical_path,
    made_of,
    overlap,
    shares,
    task_times,
)

if TYPE_CHECKING:
    from avial_lab.planning.schedule import Schedule

TOP = 20
"""Tasks, and stretches of the critical path, that a table shows."""

SHARES = ("compute", "send", "wait", "copy", "between", "idle")
"""What the time of a rank goes into, as `Share.parts` has it."""

KIND_WORDS = {
    EventKind.TASK: "task",
    EventKind.SEND: "send",
    EventKind.POST: "start receiving",
    EventKind.WAIT: "wait for a message",
    EventKind.COPY: "copy",
    EventKind.BARRIER: "barrier",
}


def time_label(trace: Trace, schedule: Schedule | None = None) -> str:
    """How the times came about; "emulated" is said wherever a GPU task ran without a GPU."""
    if schedule is None:
        return trace.label
    used = {event.device for event in trace.events if event.kind is EventKind.TASK}
    there = (device.kind for device in schedule.topology.devices if device.name in used)
    return label_with(trace.label, there)


def trace_summary(trace: Trace, schedule: Schedule | None = None) -> str:
    """`measured: 1.2 ms from first start to last end, 3 tasks on 3 ranks, 160 B sent`."""
    if not trace.ranks:
        return trace.label
    if not trace.events:
        return f"{time_label(trace, schedule)}: no times were recorded"
    return (
        f"{time_label(trace, schedule)}: {format_seconds(trace.makespan_s)} from first start to "
        f"last end, {_work_words(trace)} on {count(trace.ranks, 'rank')}{_thread_words(trace)}, "
        f"{format_bytes(trace.bytes_sent)} sent" + (f" ({trace.note})" if trace.note else "")
    )


def _thread_words(trace: Trace) -> str:
    """Nothing where every rank is one thread."""
    most = max(trace.threads, default=1)
    if most == 1:
        return ""
    least = min(trace.threads)
    return f" of {count(most, 'thread')}" if least == most else f" of {least} to {most} threads"


def _work_words(trace: Trace) -> str:
    """Tasks; of a program of loops its phases, which the ranks divide, and how often they ran."""
    if trace.turns:
        turns = sum(number for _, number in trace.turns)
        return f"{count(len(trace.turns), 'phase')} run {count(turns, 'time')}"
    return count(sum(event.kind is EventKind.TASK for event in trace.events), "task")


def clock_words(trace: Trace) -> str:
    """What may be compared with what."""
    if trace.ranks == 1 or not trace.clock_error_s:
        return ""
    return f"Clocks of the ranks agree to within {format_seconds(trace.clock_error_s)}."


def dropped_words(trace: Trace) -> str:
    """What of the events was not kept; empty where all were."""
    dropped = sum(trace.dropped)
    if not dropped:
        return ""
    return f"{count(dropped, 'later event')} were not kept individually; the sums include them."


def event_words(event: Event) -> str:
    """`task1`; `S1, time 3`; `wait for c[0:20] from rank 0`."""
    turn = f", time {event.turn:,}" if event.turn else ""
    return f"{event.name}{turn}"


def event_table(trace: Trace, schedule: Schedule | None = None, *, most: int = ROW_LIMIT) -> Table:
    """Every event by its start; the steps around the run first."""
    begin = trace.begin_s
    listed = [*((event, True) for event in trace.around), *((e, False) for e in trace.events)]
    rows = tuple(
        (
            str(event.rank),
            event.device,
            f"{event.kind.value}; outside the run" if around else event.kind.value,
            event_words(event),
            format_seconds(event.start_s - begin),
            format_seconds(event.duration_s),
            format_bytes(event.nbytes) if event.nbytes else "",
        )
        for event, around in listed[:most]
    )
    head = ("rank", "device", "event", "what", "start", "duration", "bytes")
    numbers = frozenset({"rank", "start", "duration", "bytes"})
    title = f"Events ({time_label(trace, schedule)})"
    return Table(title, head, rows, numbers, left_out(len(listed), "event", most))


def task_names(trace: Trace, schedule: Schedule | None) -> list[str]:
    """In the program's order; without a schedule in that of their first starts."""
    events = sorted(trace.events, key=lambda event: event.start_s)
    ran = dict.fromkeys(event.name for event in events if event.kind is EventKind.TASK)
    known = [] if schedule is None else [task.name for task in schedule.graph.tasks]
    return [*(name for name in known if name in ran), *(name for name in ran if name not in known)]


def rank_table(trace: Trace, schedule: Schedule | None = None, *, most: int = ROW_LIMIT) -> Table:
    """What each rank's time went into; a wait is not work."""
    found = shares(trace)
    rows = tuple(
        (str(share.rank), *(f"{part} %" for part in percentages(share.parts)))
        for share in found[:most]
    )
    head = ("rank", *SHARES)
    title = f"Where the time went ({time_label(trace, schedule)})"
    said = [left_out(trace.ranks, "rank", most), dropped_words(trace)]
    if trace.ranks > 1:
        said.append(f"Load balance (mean over greatest compute): {100 * balance(found):.0f} %.")
    return Table(title, head, rows, frozenset(head), " ".join(filter(None, said)))


def percentages(parts: Sequence[float]) -> list[int]:
    """Whole per cents that add up to 100, as near as that allows (largest remainders).

    >>> percentages([1, 1, 1]), percentages([0, 0])
    ([34, 33, 33], [0, 0])
    """
    whole = sum(parts)
    if not whole > 0:
        return [0 for _ in parts]
    exact = [100 * part / whole for part in parts]
    found = [int(value) for value in exact]
    order = sorted(range(len(parts)), key=lambda k: (found[k] - exact[k], k))
    for k in order[: 100 - sum(found)]:
        found[k] += 1
    return found


def task_table(trace: Trace, schedule: Schedule | None = None) -> Table:
    """The tasks, or phases, that took longest."""
    times = task_times(trace)
    whole = sum(time.seconds for time in times) or 1.0
    rows = tuple(
        (
            time.name,
            f"{time.events:,}",
            str(time.ranks),
            format_seconds(time.seconds),
            f"{100 * time.seconds / whole:.0f} %",
            format_seconds(time.longest_s),
            format_seconds(time.slack_s),
        )
        for time in times[:TOP]
    )
    first, ran = ("phase", "pieces") if trace.turns else ("task", "runs")
    head = (first, ran, "ranks", "compute", "of all", "longest", "slack")
    more = f"… and {count(len(times) - TOP, 'more ' + first)}." if len(times) > TOP else ""
    title = f"What took longest ({time_label(trace, schedule)})"
    return Table(title, head, rows, frozenset(head[1:]), more)


def path_table(trace: Trace, path: Sequence[Segment] | None = None) -> Table:
    """What the critical path is made of, as measured or simulated, and its longest stretches."""
    path = critical_path(trace) if path is None else path
    whole = sum(segment.duration_s for segment in path) or 1.0
    sums = tuple(
        ("all", kind, "", "", format_seconds(seconds), f"{100 * seconds / whole:.0f} %")
        for kind, seconds in made_of(path).items()
    )
    longest = sorted(path, key=lambda segment: (-segment.duration_s, segment.start_s))[:TOP]
    rows = tuple(
        (
            f"rank {segment.rank}",
            segment.kind,
            segment.name,
            format_seconds(segment.start_s - trace.begin_s),
            format_seconds(segment.duration_s),
            f"{100 * segment.duration_s / whole:.0f} %",
        )
        for segment in longest
    )
    head = ("where", "kind", "what", "from", "time", "of the path")
    more = f"… and {count(len(path) - TOP, 'shorter segment')}." if len(path) > TOP else ""
    if trace.dropped and path:
        kept = format_seconds(path[-1].end_s - trace.begin_s)
        more = f"Events were kept for the first {kept} only. {more}".strip()
    return Table(
        f"Critical path, as {'simulated' if trace.simulated else 'measured'}", head, (*sums, *rows),
        frozenset({"from", "time", "of the path"}), more,
    )  # fmt: skip


def overlap_words(trace: Trace) -> str:
    """`Messages were in flight for 3 ms (…); their receivers computed during 40 % of that.`"""
    found = overlap(trace)
    if not found.under_way_s:
        return ""
    return (
        f"Messages were in flight for {format_seconds(found.under_way_s)} (by the receivers' "
        f"clocks); their receivers computed during {100 * found.fraction:.0f} % of that."
    )


def copies_words(copies: Iterable[Copy]) -> str:
    """`12 copies to and from devices, 3.1 KiB`."""
    amounts = [(copy.copies, copy.nbytes) for copy in copies]
    number = sum(copies for copies, _ in amounts)
    words = f"{number:,} {'copy' if number == 1 else 'copies'} to and from devices"
    return f"{words}, {format_bytes(sum(nbytes for _, nbytes in amounts))}"


def copies_table(copies: Sequence[Copy], *, most: int = ROW_LIMIT) -> Table:
    """Phase by phase and memory by memory: what is copied."""
    rows = tuple(
        (
            copy.phase or "results",
            copy.source,
            copy.dest,
            f"{copy.copies:,}",
            format_bytes(copy.nbytes),
        )
        for copy in copies[:most]
    )
    head = ("phase", "from", "to", "copies", "bytes")
    note = left_out(len(copies), "row", most)
    return Table("Copies to and from devices", head, rows, frozenset(head[3:]), note)


def trace_text(trace: Trace, schedule: Schedule | None = None, *, most: int = ROW_LIMIT) -> str:
    """The timeline's facts for a terminal, of each table at most so many rows; of a run without
    times only what it was.
    """
    if not trace.events:
        return trace_summary(trace, schedule)
    tables = (
        rank_table(trace, schedule, most=most),
        task_table(trace, schedule),
        path_table(trace),
        copies_table(trace.copies, most=most),
        event_table(trace, schedule, most=most),
    )
    said = [trace_summary(trace, schedule), overlap_words(trace), clock_words(trace)]
    if trace.copies:
        said.append(copies_words(trace.copies))
    return "\n".join([*filter(None, said), *(t.to_text() for t in tables if t.rows)])

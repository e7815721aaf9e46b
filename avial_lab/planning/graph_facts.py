"""The facts of a task graph and of its schedule, in words: one-line summaries and tables.

TaskGraph, Schedule -> sentences and `Table`s, which become text or HTML. What the two print as, a
picture's alternative text and the table below it all come from here, so they cannot disagree. Those
of a run are in `trace/run_facts.py`, those of a plan in `plan_facts.py`.

It is below the types it describes, and imports them for annotations only: they print with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from avial_lab.core.regions import Region, format_region
from avial_lab.core.table import ROW_LIMIT, Table, left_out
from avial_lab.core.words import count, format_bytes, names_range, printable, rank_words
from avial_lab.machine.devices import ends_words, place_name
from avial_lab.planning.critical_path import Critical, critical_path
from avial_lab.trace import EventKind, Trace

if TYPE_CHECKING:
    from avial_lab.planning.schedule import DeviceCopy, Placement, Schedule, Transfer
    from avial_lab.planning.task_graph import Access, Dependency, Task, TaskGraph


def graph_summary(graph: TaskGraph, schedule: Schedule | None = None) -> str:
    """One line: `3 tasks in 2 levels, 2 edges; 3 ranks, 2 messages, 160 B moved`."""
    words = f"{count(len(graph.tasks), 'task')} in {count(len(graph.levels), 'level')}, "
    words += count(len(graph.dependencies), "edge")
    loops = sum(group.loop for group in graph.groups)
    words += f", {count(loops, 'loop')} around them" if loops else ""
    return words if schedule is None else f"{words}; {movement_summary(schedule)}"


def movement_summary(schedule: Schedule) -> str:
    """`3 ranks, 2 messages, 160 B moved`."""
    words = f"{count(schedule.topology.ranks, 'rank')}, {count(schedule.messages, 'message')}"
    return f"{words}, {format_bytes(schedule.bytes_moved)} moved"


def critical_of(graph: TaskGraph, trace: Trace | None = None) -> Critical:
    """The critical path of the times measured, if every task was; else as estimated.

    A task's time is that of all its rounds, on the rank that spent most on it.
    """
    if trace is None:
        return graph.critical
    spent: dict[str, dict[int, float]] = {task.name: {} for task in graph.tasks}
    for event in trace.events:
        if event.kind is EventKind.TASK and event.name in spent:
            ranks = spent[event.name]
            ranks[event.rank] = ranks.get(event.rank, 0.0) + event.duration_s
    if not all(spent.values()):  # a run that was cut short
        return graph.critical
    cost = {name: max(ranks.values()) for name, ranks in spent.items()}
    edges = ((edge.before, edge.after) for edge in graph.dependencies)
    return critical_path(cost, edges, measured=True)


def critical_summary(critical: Critical) -> str:
    """`critical path: task2 → task3: 480 B of 720 B, parallelism 1.5 (estimated …)`."""
    return f"critical path: {critical.summary()}"


def level_words(graph: TaskGraph, *, most: int = 8) -> str:
    """`level 0: task1, task2; level 1: task3`, at most `most` levels and names each."""
    parts: list[str] = []
    for level, tasks in enumerate(graph.levels[:most]):
        names = ", ".join(printable(task.name) for task in tasks[:most])
        more = f" and {len(tasks) - most:,} more" if len(tasks) > most else ""
        parts.append(f"level {level}: {names}{more}")
    if len(graph.levels) > most:
        parts.append(f"and {count(len(graph.levels) - most, 'more level')}")
    return "; ".join(parts)


def task_table(
    graph: TaskGraph,
    schedule: Schedule | None = None,
    trace: Trace | None = None,
    *,
    most: int = ROW_LIMIT,
) -> Table:
    """Every task by level: what it touches, how late it could be and, with a schedule, where it
    runs and why.
    """
    critical = critical_of(graph, trace)
    tasks = list(islice((task for level in graph.levels for task in level), most))
    places = {} if schedule is None else placements_of(schedule, tasks)
    rows: list[tuple[str, ...]] = []
    for task in tasks:
        what = (str(graph.level_of[task.name]), task.name, str(task.target))
        touched = (access_words(task.reads), access_words(task.writes), task.summary)
        if graph.groups:
            what = (what[0], " ".join([*task.group, task.name]), what[2])
        costs = (
            critical.words(critical.cost[task.name]),
            critical.words(critical.slack[task.name]),
        )
        if schedule is None:
            rows.append((*what, *touched, *costs))
            continue
        there = places[task.name]
        emulated = any(schedule.topology.device(place.device).emulated for place in there)
        device = names_range([place.device for place in there]) + " (emulated)" * emulated
        rank = rank_words(place.rank for place in there).partition(" ")[2]
        rows.append((*what, device, rank, *touched, *costs, there[0].reason))
    cost = "time" if critical.measured else "touches"
    head = ("level", "task", "target", "reads", "writes", "body", cost, "slack")
    if schedule is not None:
        head = (*head[:3], "device", "rank", *head[3:], "why there")
    note = left_out(len(graph.tasks), "task", most)
    numbers = frozenset({"level", "rank", cost, "slack"})
    return Table("Tasks", head, tuple(rows), numbers, note)


def edge_table(
    graph: TaskGraph, schedule: Schedule | None = None, *, most: int = ROW_LIMIT
) -> Table:
    """Every dependency: which hazard, through which part of which buffer, and between which ranks;
    of tasks in loops, whether within a round or from a round to a later one.
    """
    places = {} if schedule is None else schedule.placement_of
    edges = (*graph.dependencies, *graph.carried)
    rounds = len(graph.dependencies)

    def last(k: int, edge: Dependency) -> tuple[str, ...]:
        if graph.groups:
            return ("same" if k < rounds else "later",)
        return (crossing_words(edge, places),) if schedule is not None else ()

    rows = tuple(
        (
            edge.before,
            edge.after,
            edge.hazard.value,
            edge.buffer,
            region_words(edge.region),
            format_bytes(edge.nbytes) if edge.buffer else "",
            *last(k, edge),
        )
        for k, edge in enumerate(edges[:most])
    )
    head = ("before", "after", "hazard", "buffer", "region", "bytes")
    if graph.groups:
        head = (*head, "round")
    elif schedule is not None:
        head = (*head, "between")
    return Table("Edges", head, rows, frozenset({"bytes"}), left_out(len(edges), "edge", most))


def transfer_table(schedule: Schedule, *, most: int = ROW_LIMIT) -> Table:
    """Every message: which part of which storage goes where, and for whom."""
    rows = tuple(
        (
            str(t.index),
            t.storage,
            str(t.box),
            format_bytes(t.nbytes),
            *ends_words(t.source, t.dest, t.devices(schedule.topology.ranks)),
            t.producer,
            t.consumer,
        )
        for t in schedule.transfers[:most]
    )
    head = ("message", "storage", "box", "bytes", "from rank", "to rank", "written by", "needed by")
    return Table(
        "Messages",
        head,
        rows,
        frozenset({"message", "bytes", "from rank", "to rank"}),
        left_out(len(schedule.transfers), "message", most),
    )


def graph_text(
    graph: TaskGraph,
    schedule: Schedule | None = None,
    trace: Trace | None = None,
    *,
    most: int = ROW_LIMIT,
) -> str:
    """The picture's facts for a terminal; of each table at most so many rows."""
    tables = [
        task_table(graph, schedule, trace, most=most),
        edge_table(graph, schedule, most=most),
    ]
    if schedule is not None and schedule.transfers:
        tables.append(transfer_table(schedule, most=most))
    head = [graph_summary(graph, schedule)]
    if schedule is not None:
        head.append(schedule.topology.summary)
    if graph.tasks:
        head.append(critical_summary(critical_of(graph, trace)))
    return "\n".join([*head, *(table.to_text() for table in tables if table.rows)])


def placements_of(schedule: Schedule, tasks: Iterable[Task]) -> dict[str, list[Placement]]:
    """All places of each of the tasks: a divided one has several."""
    places: dict[str, list[Placement]] = {task.name: [] for task in tasks}
    for placement in schedule.placements:
        if placement.task in places:
            places[placement.task].append(placement)
    return places


def transfers_between(schedule: Schedule | None) -> dict[tuple[str, str], list[Transfer]]:
    """The messages by (producer, consumer)."""
    found: dict[tuple[str, str], list[Transfer]] = {}
    for transfer in () if schedule is None else schedule.transfers:
        found.setdefault((transfer.producer, transfer.consumer), []).append(transfer)
    return found


def copies_between(
    schedule: Schedule | None, before: str, edges: Iterable[Dependency]
) -> list[DeviceCopy]:
    """Those that bring what the edges' first task wrote from its device to their second task's."""
    if schedule is None or not schedule.copies:
        return []
    storage_of = {buffer.name: buffer.storage for buffer in schedule.graph.buffers}
    wanted = {(edge.after, storage_of.get(edge.buffer)) for edge in edges}
    device, ranks = schedule.placement_of[before].device, schedule.topology.ranks
    return [
        copy
        for copy in schedule.copies
        if (copy.task, copy.storage) in wanted and place_name(copy.source, ranks) == device
    ]


def access_words(accesses: Iterable[Access], *, most: int = 4) -> str:
    """`a[0:20], b[0:20]`."""
    listed = list(accesses)
    words = [f"{access.buffer}{region_words(access.region)}" for access in listed[:most]]
    return ", ".join(words) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def buffer_words(accesses: Iterable[Access]) -> str:
    """The buffers' names, each once, in order: `a, b`."""
    return ", ".join(dict.fromkeys(access.buffer for access in accesses))


def region_words(region: Region, *, most: int = 3) -> str:
    """`[0:4] ∪ [8:12]`, at most `most` boxes."""
    words = format_region(region[:most]) if region else ""
    return f"{words} and {len(region) - most} more boxes" if len(region) > most else words


def crossing_words(edge: Dependency, places: Mapping[str, Placement]) -> str:
    """`rank 0 → 2`, or `same rank`."""
    before, after = places[edge.before].rank, places[edge.after].rank
    return "same rank" if before == after else f"rank {before} → {after}"

"""The task graph as a picture: tasks by level, why each waits for which, and what moves between
ranks.

TaskGraph (and Schedule) -> SVG. Three views, by how much fits: every task; groups of tasks
alike, when there are too many; one bar a level, when even the groups are. What a view hides it
says in the picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from avial_lab.core.words import count, format_bytes, names_range, sentence
from avial_lab.machine.devices import place_name
from avial_lab.planning import graph_facts
from avial_lab.planning.critical_path import Critical
from avial_lab.planning.schedule import DeviceCopy, Placement, Schedule
from avial_lab.planning.task_graph import Dependency, Hazard, Task, TaskGraph, TaskKind
from avial_lab.plot import svg
from avial_lab.plot.frame import SMALLEST_WIDTH, LegendItem, device_item, framed, line_item
from avial_lab.plot.graph.layout import Box, Layout, Line, lay_out
from avial_lab.plot.graph.nested import nested_svg
from avial_lab.plot.graph.vertices import (
    Link,
    Vertex,
    arrow_of,
    box_of,
    edge_words,
    label_of,
    label_size,
)
from avial_lab.plot.palette import GREY, LOOKS, MESSAGE, look_of
from avial_lab.trace import Trace

TASK_LIMIT = 150
EDGE_LIMIT = 450
WIDTH_LIMIT = 4200.0
LABEL_LIMIT = 48
NESTED_LIMIT = 60
"""Of a program with loops, tasks drawn within them; more are drawn as if there were none."""

BAR_LIMIT = 40
GUTTER = 64.0


@dataclass(frozen=True)
class View:
    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    notes: tuple[str, ...] = ()


def dag_svg(
    graph: TaskGraph,
    schedule: Schedule | None = None,
    trace: Trace | None = None,
    *,
    title: str = "Task graph",
    engine: str | None = None,
) -> str:
    """The graph by level, coloured by the kind of device; with a schedule, edges that cross
    ranks stand out.

    At most 1 MB whatever the graph. `engine` is `layout.lay_out`'s.
    """
    description = f"{graph_facts.graph_summary(graph, schedule)}. {graph_facts.level_words(graph)}"
    if not graph.tasks:
        return framed("", 0, 0, title=title, summary="no tasks", description=description)
    divided = any(task.kind is TaskKind.REPLICATE for task in graph.tasks)
    if (graph.groups or divided) and len(graph.tasks) <= NESTED_LIMIT:
        return nested_svg(graph, schedule, trace, title=title, engine=engine)
    critical = graph_facts.critical_of(graph, trace)
    view = _choose_view(graph, schedule, critical)
    if view is None:
        return _overview(graph, schedule, title=title, description=description)
    labelled = len(view.links) <= LABEL_LIMIT
    boxes = [Box(v.width, v.height, v.level) for v in view.vertices]
    lines = [
        Line(k.tail, k.head, *(label_size(k.label) if labelled else (0, 0))) for k in view.links
    ]
    layout = lay_out(boxes, lines, engine=engine)
    width = max(layout.width + GUTTER + 12, SMALLEST_WIDTH)
    notes = [sentence(graph_facts.critical_summary(critical)), *view.notes]
    if not labelled:
        notes.append(
            f"{len(view.links):,} arrows are drawn without their labels: too many to read."
        )
    unplaced = sum(at is None for at in layout.labels) if labelled else 0
    if unplaced:
        notes.append(f"{count(unplaced, 'arrow')} had no space for a label.")
    if layout.engine.startswith("built-in:"):
        notes.append(f"Layout {layout.engine}.")
    return framed(
        _body(view, layout, width, labelled=labelled),
        width,
        layout.height + 28,
        title=title,
        summary=_summary(graph, schedule),
        description=description,
        legend=_legend(view, placed=schedule is not None),
        notes=notes,
    )


def _summary(graph: TaskGraph, schedule: Schedule | None) -> str:
    words = graph_facts.graph_summary(graph, schedule)
    return words if schedule is None else f"{words} · {schedule.topology.summary}"


def _choose_view(graph: TaskGraph, schedule: Schedule | None, critical: Critical) -> View | None:
    """The most detailed view that can be read; None where only the overview can."""
    if len(graph.tasks) <= TASK_LIMIT and len(graph.dependencies) <= 4 * EDGE_LIMIT:
        detail = _task_view(graph, schedule, critical)
        if _fits(detail):
            return detail
    groups = _group_view(graph, schedule, critical)
    return groups if groups is not None and _fits(groups) else None


def _fits(view: View) -> bool:
    widths: Counter[int] = Counter()
    for vertex in view.vertices:
        widths[vertex.level] += int(vertex.width) + 26
    return (
        len(view.vertices) <= TASK_LIMIT
        and len(view.links) <= EDGE_LIMIT
        and max(widths.values()) <= WIDTH_LIMIT
    )


def _task_view(graph: TaskGraph, schedule: Schedule | None, critical: Critical) -> View:
    """One box a task."""
    compact = max(map(len, graph.levels)) > 10
    vertices = tuple(
        _task_vertex(task, graph, schedule, critical, compact=compact) for task in graph.tasks
    )
    steps = set(pairwise(critical.path))
    position = {task.name: k for k, task in enumerate(graph.tasks)}
    transfers = graph_facts.transfers_between(schedule)
    bundles: dict[tuple[str, str], list[Dependency]] = {}
    for edge in graph.dependencies:
        bundles.setdefault((edge.before, edge.after), []).append(edge)
    links: list[Link] = []
    for (before, after), edges in bundles.items():
        sent = transfers.get((before, after), [])
        label = [edge_words(edge) for edge in edges[:3]]
        if len(edges) > 3:
            label.append(f"and {len(edges) - 3} more")
        if sent:
            label.append(f"rank {sent[0].source} → {sent[0].dest}")
        copied = graph_facts.copies_between(schedule, before, edges)
        if copied:
            label.append(f"copied {_copy_ends(copied[0], schedule)}")
        tooltip = f"{after} waits for {before}: " + "; ".join(
            f"{edge_words(edge)} {graph_facts.region_words(edge.region)}".strip()
            for edge in edges[:12]
        )
        tooltip += "".join(
            f"\nsends {t.storage}{t.box}, {format_bytes(t.nbytes)}" for t in sent[:6]
        )
        tooltip += "".join(
            f"\ncopies {c.storage}{c.box}, {format_bytes(c.nbytes)}, {_copy_ends(c, schedule)}"
            for c in copied[:6]
        )
        data = any(edge.hazard is Hazard.READ_AFTER_WRITE for edge in edges)
        links.append(
            Link(
                position[before], position[after], tuple(label), tooltip, bool(sent), data,
                critical=(before, after) in steps,
            )
        )  # fmt: skip
    return View(vertices, tuple(links))


def _copy_ends(copy: DeviceCopy, schedule: Schedule | None) -> str:
    assert schedule is not None, "what is copied has been placed"
    source, dest = (place_name(p, schedule.topology.ranks) for p in (copy.source, copy.dest))
    return f"{source} → {dest}"


def _task_vertex(
    task: Task,
    graph: TaskGraph,
    schedule: Schedule | None,
    critical: Critical,
    *,
    compact: bool,
) -> Vertex:
    reads, writes = graph_facts.buffer_words(task.reads), graph_facts.buffer_words(task.writes)
    where, look, reason = str(task.target), look_of(task.target), ""
    if schedule is not None:
        placement = schedule.placement_of[task.name]
        device = schedule.topology.device(placement.device)
        where, look = f"{device.name} · rank {device.rank}", look_of(device)
        where += " · emulated" if device.emulated else ""
        reason = f"\n{device.name}: {placement.reason}"
    touched = (
        f"reads {graph_facts.access_words(task.reads) or '–'}, "
        f"writes {graph_facts.access_words(task.writes) or '–'}"
    )
    tooltip = f"{task.name}: {task.summary or 'task'} for {task.target}, {touched}{reason}"
    slack = critical.words(critical.slack[task.name])
    bold = task.name in critical.path
    tooltip += "\non the critical path" if bold else f"\nslack {slack}"
    lines = (where,) if compact else (f"{reads or '–'} → {writes or '–'}", where)
    return Vertex(task.name, lines, look, graph.level_of[task.name], tooltip, critical=bold)


def _group_view(graph: TaskGraph, schedule: Schedule | None, critical: Critical) -> View | None:
    """One box for the tasks of one level, target and kind; one arrow between two such boxes; None
    for more boxes than can be read.
    """
    placements = {} if schedule is None else schedule.placement_of
    groups: dict[tuple[int, str, str], list[Task]] = {}
    targets = {target: str(target) for target in {task.target for task in graph.tasks}}
    for task in graph.tasks:
        key = graph.level_of[task.name], targets[task.target], task.kind.value
        groups.setdefault(key, []).append(task)
    if len(groups) > TASK_LIMIT:
        return None
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    on_path = set(critical.path)
    vertices = tuple(
        _group_vertex(level, target, tasks, schedule, placements, on_path)
        for (level, target, _), tasks in ordered
    )
    member = {task.name: k for k, (_, tasks) in enumerate(ordered) for task in tasks}
    steps = {(member[before], member[after]) for before, after in pairwise(critical.path)}
    bundles: dict[tuple[int, int], list[Dependency]] = {}
    for edge in graph.dependencies:
        bundles.setdefault((member[edge.before], member[edge.after]), []).append(edge)
    sent: Counter[tuple[int, int]] = Counter()
    moved: Counter[tuple[int, int]] = Counter()
    for transfer in () if schedule is None else schedule.transfers:
        ends = member[transfer.producer], member[transfer.consumer]
        sent[ends] += 1
        moved[ends] += transfer.nbytes
    links: list[Link] = []
    for ends, edges in bundles.items():
        hazards = Counter(edge.hazard.value for edge in edges)
        kinds = ", ".join(f"{number:,} {name}" for name, number in hazards.items())
        label = (kinds,)
        if sent[ends]:
            label += (f"{count(sent[ends], 'message')}, {format_bytes(moved[ends])}",)
        tooltip = f"{count(len(edges), 'edge')}: {kinds}"
        data = Hazard.READ_AFTER_WRITE.value in hazards
        links.append(Link(*ends, label, tooltip, bool(sent[ends]), data, critical=ends in steps))
    note = (
        f"{count(len(graph.tasks), 'task')} and "
        f"{count(len(graph.dependencies), 'edge')} are drawn as "
        f"{count(len(vertices), 'group')} (same level, target and kind) and "
        f"{count(len(links), 'arrow')}."
    )
    return View(vertices, tuple(links), (note,))


def _group_vertex(
    level: int,
    target: str,
    tasks: Sequence[Task],
    schedule: Schedule | None,
    placements: dict[str, Placement],
    on_path: set[str],
) -> Vertex:
    look, where = look_of(tasks[0].target), target
    if schedule is not None:
        devices = Counter(placements[task.name].device for task in tasks)
        looks = {look_of(schedule.topology.device(name)) for name in devices}
        look = max(looks, key=LOOKS.index)
        where = f"{target} on {names_range(list(devices))}"
    names = names_range([task.name for task in tasks])
    bold = any(task.name in on_path for task in tasks)
    if len(tasks) == 1:
        tooltip = f"{tasks[0].name} for {target}"
        return Vertex(tasks[0].name, (where,), look, level, tooltip, critical=bold)
    title = f"{len(tasks):,} tasks"
    tooltip = f"{title}: {names}, for {target}"
    return Vertex(title, (names, where), look, level, tooltip, stacked=True, critical=bold)


def _body(view: View, layout: Layout, width: float, *, labelled: bool) -> str:
    """Bands, arrows, boxes, labels: in this order, so that nothing readable is covered."""
    bands = _bands(view.vertices, layout, width)
    arrows: list[str] = []
    labels: list[str] = []
    for link, curve, at in zip(view.links, layout.curves, layout.labels, strict=True):
        arrows.append(svg.group(arrow_of(link, curve), title=link.tooltip, label="edge"))
        if labelled and at is not None:
            labels.append(label_of(link, at))
    boxes = [
        box_of(vertex, center) for vertex, center in zip(view.vertices, layout.centers, strict=True)
    ]
    shapes = "".join((*arrows, *boxes, *labels))
    return bands + svg.moved(shapes, GUTTER + (width - GUTTER - layout.width) / 2, 14)


def _bands(vertices: Sequence[Vertex], layout: Layout, width: float) -> str:
    """A stripe behind each level, with its number at the left."""
    extent: dict[int, tuple[float, float]] = {}
    for vertex, (_, y) in zip(vertices, layout.centers, strict=True):
        low, high = extent.get(vertex.level, (y, y))
        extent[vertex.level] = min(low, y - vertex.height / 2), max(high, y + vertex.height / 2)
    shapes: list[str] = []
    for level, (low, high) in sorted(extent.items()):
        shapes.append(
            svg.rectangle(0, low + 14 - 11, width, high - low + 22, fill=svg.BAND, radius=6)
        )
        shapes.append(
            svg.text(
                10, (low + high) / 2 + 18, f"level {level}", size=12, fill=svg.QUIET, bold=True
            )
        )
    return "".join(shapes)


def _legend(view: View, *, placed: bool) -> list[LegendItem]:
    looks = {vertex.look for vertex in view.vertices}
    items = [device_item(look) for look in LOOKS if look in looks]
    if any(link.data and not link.message for link in view.links):
        items.append(line_item(GREY, "value stays on its rank" if placed else "value", width=1.4))
    if any(link.message for link in view.links):
        items.append(line_item(MESSAGE, "value sent to another rank", width=2.6))
    if any(not link.data for link in view.links):
        items.append(line_item(GREY, "order only (WAR, WAW, after)", width=1.4, dash="3 3"))
    if any(link.critical for link in view.links):
        items.append(line_item(svg.INK, "critical path: dark and bold", width=3.6))
    return items


def _overview(graph: TaskGraph, schedule: Schedule | None, *, title: str, description: str) -> str:
    """One bar for a run of levels, its length the number of tasks, its colours the kinds of
    device.
    """
    depth = len(graph.levels)
    step = ceil(depth / BAR_LIMIT)
    placements = {} if schedule is None else schedule.placement_of
    looks = {
        task.name: look_of(
            task.target
            if schedule is None
            else schedule.topology.device(placements[task.name].device)
        )
        for task in graph.tasks
    }
    into, sent, moved = Counter[int](), Counter[int](), Counter[int]()
    for edge in graph.dependencies:
        into[graph.level_of[edge.after] // step] += 1
    for transfer in () if schedule is None else schedule.transfers:
        sent[graph.level_of[transfer.consumer] // step] += 1
        moved[graph.level_of[transfer.consumer] // step] += transfer.nbytes
    rows = [
        Counter(looks[task.name] for level in graph.levels[k : k + step] for task in level)
        for k in range(0, depth, step)
    ]
    longest = max(sum(row.values()) for row in rows)
    label, bar, pitch = 110.0, 380.0, 22.0
    shapes: list[str] = []
    for k, row in enumerate(rows):
        first, last = k * step, min(depth, (k + 1) * step) - 1
        name = f"level {first}" if first == last else f"levels {first:,}–{last:,}"
        y, x = k * pitch, label
        shapes.append(svg.text(label - 8, y + 14, name, size=12, fill=svg.QUIET, anchor="end"))
        for look in LOOKS:
            if row[look]:
                width = bar * row[look] / longest
                shapes.append(
                    svg.group(
                        svg.rectangle(
                            x,
                            y + 1,
                            width,
                            pitch - 4,
                            fill=look.tint,
                            stroke=look.colour,
                            stroke_width=1.4,
                            dash=look.dash,
                            radius=0 if look.cut_corners else 3,
                        )
                        + (
                            svg.text(
                                x + width / 2,
                                y + 14,
                                f"{look.letter} {row[look]:,}",
                                size=11,
                                anchor="middle",
                                bold=True,
                            )
                            if width > 44
                            else ""
                        ),
                        title=f"{name}: {count(row[look], 'task')} on {look.name}",
                        label="level",
                    )
                )
                x += width
        words = count(into[k], "edge") + " in"
        if schedule is not None:
            words += f", {count(sent[k], 'message')}, {format_bytes(moved[k])}"
        words = f"{count(sum(row.values()), 'task')} · {words}"
        shapes.append(svg.text(x + 8, y + 14, words, size=11, fill=svg.QUIET))
    present = {look for row in rows for look in row}
    runs = "each bar is one level" if step == 1 else f"each bar is {step:,} levels"
    note = (
        f"Hidden: the {count(len(graph.tasks), 'task')} and "
        f"{count(len(graph.dependencies), 'edge')} are too many to draw individually "
        f"or in groups; {runs}, as long as its number of tasks."
    )
    return framed(
        "".join(shapes),
        label + bar + 300,
        pitch * len(rows),
        title=title,
        summary=_summary(graph, schedule),
        description=description,
        legend=[device_item(look) for look in LOOKS if look in present],
        notes=(note,),
    )

"""The task graph of a program with loops: tasks in boxes in boxes, one for each loop around them.

TaskGraph with groups (and Schedule) -> SVG. Arrows are the dependencies of one round; what a later
round needs of an earlier one goes back along the right side of its loop.

    +- loop1 · 20 times ---------+
    |   [ S1 ]  <-----------+    |
    |     | RAW B           | RAW A, next round
    |   [ S2 ]  ------------+    |
    +----------------------------+
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

from avial_lab.core.words import count, format_bytes, names_range, printable, rank_words, sentence
from avial_lab.machine.devices import CPU, Look
from avial_lab.planning import graph_facts
from avial_lab.planning.critical_path import Critical
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import Dependency, Group, Hazard, Task, TaskGraph, TaskKind
from avial_lab.plot import svg
from avial_lab.plot.frame import SMALLEST_WIDTH, LegendItem, device_item, framed, line_item
from avial_lab.plot.graph.layout import Box, Layout, Line, Point, lay_out
from avial_lab.plot.graph.vertices import (
    Link,
    Vertex,
    arrow_of,
    box_of,
    edge_words,
    label_of,
    label_size,
)
from avial_lab.plot.palette import GREY, LOOKS, ORANGE, look_of
from avial_lab.trace import Trace

BACK_LIMIT = 8
"""What a later iteration needs, drawn or listed for one loop; the table has it all."""

ARROW_LIMIT = 4

PAD = 16.0
HEAD = 34.0
LANE = 20.0
BACK = "#374151"
BACK_DASH = "7 3"
_FRAME_FILLS = ("#fffdf7", "#fdf6e3")


@dataclass(frozen=True)
class Back:
    """Values for a later iteration, from child `tail` to child `head` of one loop."""

    tail: int
    head: int
    words: str
    tooltip: str

    @property
    def label(self) -> tuple[str, str]:
        return self.words, "a later iteration"


@dataclass(frozen=True)
class Inside:
    """What is in a loop, or in the program, drawn with its corner at (0, 0)."""

    title: str

    width: float
    height: float
    body: str


@dataclass
class Drawing:
    """The graph while it is drawn; `hidden` counts arrows to later iterations that are left out."""

    graph: TaskGraph
    schedule: Schedule | None
    engine: str | None
    labelled: bool
    critical: Critical
    groups: dict[str, Group] = field(default_factory=dict[str, Group])
    looks: set[Look] = field(default_factory=set[Look])
    hidden: int = 0
    backs: int = 0
    unlabelled: int = 0
    kinds: set[bool] = field(default_factory=set[bool])
    """Whether values flow along the arrows drawn."""

    layouts: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.groups = {group.name: group for group in self.graph.groups}

    # -- one level of nesting ----------------------------------------------------------------------

    def inside(self, around: tuple[str, ...]) -> Inside:
        """What is directly in the innermost of the groups `around`, laid out."""
        depth = len(around)
        children: dict[str, list[Task]] = {}
        for task in self.graph.tasks:
            if task.group[:depth] == around:
                children.setdefault((*task.group, f"\0{task.name}")[depth], []).append(task)
        position = {task.name: k for k, tasks in enumerate(children.values()) for task in tasks}
        links = self._links(position)
        levels = _levels(len(children), links)
        items: list[Vertex | Inside] = [
            self._vertex(tasks[0], level)
            if name.startswith("\0")
            else self._framed(self.groups[name], around)
            for level, (name, tasks) in zip(levels, children.items(), strict=True)
        ]
        boxes = [Box(item.width, item.height, level)
                 for item, level in zip(items, levels, strict=True)]  # fmt: skip
        lines = [
            Line(link.tail, link.head, *(label_size(link.label) if self.labelled else (0, 0)))
            for link in links
        ]
        layout = lay_out(boxes, lines, engine=self.engine)
        self.layouts.add(layout.engine)
        return self._body(items, links, layout, self._backs(around, position))

    def _links(self, position: dict[str, int]) -> list[Link]:
        """The dependencies between the children, bundled."""
        bundles: dict[tuple[int, int], list[Dependency]] = {}
        for edge in self.graph.dependencies:
            if edge.before in position and edge.after in position:
                ends = position[edge.before], position[edge.after]
                if ends[0] != ends[1]:
                    bundles.setdefault(ends, []).append(edge)
        steps = set(pairwise(self.critical.path))
        return [_link(ends, edges, steps) for ends, edges in bundles.items()]

    def _backs(self, around: tuple[str, ...], position: dict[str, int]) -> list[Back]:
        """What this loop carries from round to round: values, not mere order."""
        if not around:
            return []
        innermost = {task.name: task.group for task in self.graph.tasks}
        bundles: dict[tuple[int, int], list[Dependency]] = {}
        for edge in self.graph.carried:
            if edge.hazard is not Hazard.READ_AFTER_WRITE:
                continue
            if edge.before in position and edge.after in position:
                first, second = innermost[edge.before], innermost[edge.after]
                deeper = len(first) > len(around) and first[: len(around) + 1] == second[
                    : len(around) + 1
                ]  # fmt: skip
                if not deeper:
                    ends = position[edge.before], position[edge.after]
                    bundles.setdefault(ends, []).append(edge)
        found = sorted(bundles.items(), key=lambda item: -sum(e.nbytes for e in item[1]))
        self.hidden += max(0, len(found) - BACK_LIMIT)
        self.backs += len(found[:BACK_LIMIT])
        return [_back(ends, edges) for ends, edges in sorted(found[:BACK_LIMIT])]

    # -- boxes -------------------------------------------------------------------------------------

    def _vertex(self, task: Task, level: int) -> Vertex:
        where, look, reason = self._where(task)
        self.looks.add(look)
        reads, writes = graph_facts.buffer_words(task.reads), graph_facts.buffer_words(task.writes)
        lines = [f"{reads or '–'} → {writes or '–'}", where]
        received = self._received(task.name)
        if received:
            lines.append(received)
        tooltip = f"{task.name}: {task.summary or 'task'} for {task.target}"
        tooltip += f", reads {graph_facts.access_words(task.reads) or '–'}"
        tooltip += f", writes {graph_facts.access_words(task.writes) or '–'}{reason}"
        stacked = task.kind is TaskKind.REPLICATE
        bold = task.name in self.critical.path
        return Vertex(task.name, tuple(lines), look, level, tooltip, stacked, bold)

    def _where(self, task: Task) -> tuple[str, Look, str]:
        """Where it runs, in words, as a look, and why."""
        if self.schedule is None:
            divided = task.kind is TaskKind.REPLICATE
            return (
                f"{'divided' if divided else 'one rank'}, {task.target}",
                look_of(task.target),
                "",
            )
        places = [p for p in self.schedule.placements if p.task == task.name]
        devices = [self.schedule.topology.device(place.device) for place in places]
        words = rank_words([place.rank for place in places])
        words += " · emulated" if any(device.emulated for device in devices) else ""
        kinds = [device.name for device in devices]
        return words, look_of(devices[0]), f"\n{names_range(kinds)}: {places[0].reason}"

    def _received(self, name: str) -> str:
        moves = [m for m in (self.schedule.moves if self.schedule else ()) if m.phase == name]
        if not moves:
            return ""
        number = count(sum(move.messages for move in moves), "message")
        return f"{format_bytes(sum(move.nbytes for move in moves))} in {number}"

    def _framed(self, group: Group, around: tuple[str, ...]) -> Inside:
        """A loop: its name and how often it runs above what is in it."""
        inner = self.inside((*around, group.name))
        sign = "↻ " if group.loop else "? "
        line = f" · line {group.span.line}" if group.span is not None else ""
        title, words = f"{sign}{group.name}", f"{group.words}{line}"
        at = PAD + svg.text_width(title, 13, bold=True) + 12
        room = at + svg.text_width(words, 11) + PAD
        width, height = max(inner.width + 2 * PAD, room), inner.height + HEAD + PAD
        shapes = svg.rectangle(
            0, 0, width, height, fill=_FRAME_FILLS[len(around) % 2], stroke=ORANGE,
            stroke_width=1.6, radius=10, dash="" if group.loop else "4 3",
        )  # fmt: skip
        shapes += svg.text(PAD, 21, title, size=13, bold=True)
        shapes += svg.text(at, 21, words, size=11, fill=svg.QUIET)
        shapes += svg.moved(inner.body, (width - inner.width) / 2, HEAD)
        tip = f"{group.name}: {group.words}"
        return Inside(group.name, width, height, svg.group(shapes, title=tip, label="loop"))

    # -- shapes ------------------------------------------------------------------------------------

    def _body(
        self,
        items: Sequence[Vertex | Inside],
        links: Sequence[Link],
        layout: Layout,
        backs: Sequence[Back],
    ) -> Inside:
        arrows: list[str] = []
        labels: list[str] = []
        for link, curve, at in zip(links, layout.curves, layout.labels, strict=True):
            self.kinds.add(link.data)
            arrows.append(svg.group(arrow_of(link, curve), title=link.tooltip, label="edge"))
            if self.labelled and at is not None:
                labels.append(label_of(link, at))
            self.unlabelled += self.labelled and at is None
        boxes = [
            box_of(item, center)
            if isinstance(item, Vertex)
            else svg.moved(item.body, center[0] - item.width / 2, center[1] - item.height / 2)
            for item, center in zip(items, layout.centers, strict=True)
        ]
        returning, extra = _returning(items, layout, backs)
        width = layout.width + extra
        # Labels may be a little outside of what dot takes for its bounding box.
        return Inside("", width, layout.height, "".join((*arrows, *boxes, *labels, returning)))


def nested_svg(
    graph: TaskGraph,
    schedule: Schedule | None = None,
    trace: Trace | None = None,
    *,
    title: str = "Task graph",
    engine: str | None = None,
    label_limit: int = 48,
) -> str:
    """Tasks within the loops around them; `engine` is `layout.lay_out`'s.

    With more than `label_limit` arrows these are drawn without their labels.
    """
    labelled = len(graph.dependencies) <= 4 * label_limit
    critical = graph_facts.critical_of(graph, trace)
    drawing = Drawing(graph, schedule, engine, labelled, critical)
    whole = drawing.inside(())
    summary = graph_facts.graph_summary(graph, schedule)
    summary += f" · {schedule.topology.summary}" if schedule is not None else ""
    width = max(whole.width, SMALLEST_WIDTH)
    return framed(
        svg.moved(whole.body, (width - whole.width) / 2, 4),
        width,
        whole.height + 8,
        title=title,
        summary=summary,
        description=f"{graph_facts.graph_summary(graph, schedule)}. {described(graph)}",
        legend=_legend(drawing),
        notes=_notes(drawing),
    )


def described(graph: TaskGraph, *, most: int = 8) -> str:
    """`loop1 (20 times): S1, S2; then S3`: the nesting in words."""
    parts: list[str] = []
    for group in graph.groups[:most]:
        names = [task.name for task in graph.tasks if group.name in task.group]
        parts.append(f"{group.name} ({group.words}): {', '.join(map(printable, names[:most]))}")
    outside = [printable(task.name) for task in graph.tasks if not task.group][:most]
    return "; ".join([*parts, *([f"outside: {', '.join(outside)}"] if outside else [])])


def _levels(count: int, links: Sequence[Link]) -> list[int]:
    """Longest-path depth of each child; links go forward."""
    levels = [0] * count
    for link in sorted(links, key=lambda link: link.head):
        levels[link.head] = max(levels[link.head], levels[link.tail] + 1)
    return levels


def _link(
    ends: tuple[int, int], edges: Sequence[Dependency], steps: AbstractSet[tuple[str, str]]
) -> Link:
    values = [edge for edge in edges if edge.hazard is Hazard.READ_AFTER_WRITE]
    shown = list(dict.fromkeys(map(edge_words, values or edges)))
    label = [*shown[:3], *([f"and {len(shown) - 3} more"] if len(shown) > 3 else [])]
    tooltip = "; ".join(
        f"{e.after} waits for {e.before}: {edge_words(e)} {graph_facts.region_words(e.region)}"
        for e in edges[:12]
    )
    critical = any((edge.before, edge.after) in steps for edge in edges)
    return Link(*ends, tuple(label), tooltip, message=False, data=bool(values), critical=critical)


def _back(ends: tuple[int, int], edges: Sequence[Dependency]) -> Back:
    names = list(dict.fromkeys(edge.buffer for edge in edges))
    words = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    tooltip = "; ".join(
        f"a later {edge.after} reads what {edge.before} wrote of {edge.buffer}"
        for edge in edges[:8]
    )
    return Back(*ends, f"RAW {words}", tooltip)


def _returning(
    items: Sequence[Vertex | Inside], layout: Layout, backs: Sequence[Back]
) -> tuple[str, float]:
    """The arrows to later iterations along the right side, and the room they take there."""
    if not backs:
        return "", 0.0
    rows = {center[1] for center in layout.centers}
    if len(rows) < len(layout.centers) or len(backs) > ARROW_LIMIT:
        return _listed(items, layout, backs)
    lanes = layout.width + LANE * len(backs)
    shapes: list[str] = []
    below = -100.0
    middle = sorted(range(len(backs)), key=lambda k: _middle(layout, backs[k]))
    spots: dict[int, float] = {}
    for k in middle:
        spots[k] = below = max(_middle(layout, backs[k]), below + 32)
    for k, back in enumerate(backs):
        start = _port(items, layout, back.tail, 9)
        end = _port(items, layout, back.head, -9)
        out = layout.width + LANE * (k + 0.6)
        reach = max(start[0], end[0]) + (out - max(start[0], end[0])) * 4 / 3
        curve = (start, (reach, start[1]), (reach, end[1]), end)
        arrow = svg.arrow(curve, stroke=BACK, width=1.6, dash=BACK_DASH)
        shapes.append(svg.group(arrow, title=back.tooltip, label="back"))
        for n, words in enumerate(back.label):
            at = spots[k] - 2 + 13 * n
            shapes.append(svg.text(lanes + 6, at, words, size=11, fill=svg.QUIET, bold=n == 0))
        if abs(spots[k] - _middle(layout, back)) > 1 or len(backs) > 1:
            from_y = _middle(layout, back)
            shapes.append(svg.line(out, from_y, lanes + 3, spots[k], stroke=svg.LINE))
    widest = max(svg.text_width(words, 11, bold=True) for back in backs for words in back.label)
    return "".join(shapes), LANE * len(backs) + widest + 14


def _listed(
    items: Sequence[Vertex | Inside], layout: Layout, backs: Sequence[Back]
) -> tuple[str, float]:
    """One arrow back for all, with a line for each: where boxes are side by side, arrows of their
    own would cross them.
    """
    names = [item.title for item in items]
    lines = [f"{names[b.tail]} → {names[b.head]}: {b.words}" for b in backs]
    top, bottom = min(y for _, y in layout.centers), max(y for _, y in layout.centers)
    if bottom - top < 30:
        top, bottom = top - 15, bottom + 15
    x = layout.width + 12
    curve = ((x, bottom), (x + 30, bottom), (x + 30, top), (x, top))
    arrow = svg.arrow(curve, stroke=BACK, width=1.6, dash=BACK_DASH)
    shapes = svg.group(arrow, title="\n".join(b.tooltip for b in backs), label="back")
    first = (top + bottom) / 2 - 13 * (len(lines) - 1) / 2
    first = max(first, 10.0)
    shapes += svg.text(
        x + 34, first - 4, "in a later iteration", size=11, fill=svg.QUIET, bold=True
    )
    for k, words in enumerate(lines):
        shapes += svg.text(x + 34, first + 10 + 13 * k, words, size=11, fill=svg.QUIET)
    widest = max(svg.text_width(words, 11, bold=True) for words in (*lines, "in a later iteration"))
    return shapes, 12 + 34 + widest + 8


def _middle(layout: Layout, back: Back) -> float:
    return (layout.centers[back.tail][1] + layout.centers[back.head][1]) / 2


def _port(items: Sequence[Vertex | Inside], layout: Layout, child: int, offset: float) -> Point:
    """On the right side of a child's box, clear of the boxes stacked behind it."""
    x, y = layout.centers[child]
    item = items[child]
    behind = 6 if isinstance(item, Vertex) and item.stacked else 0
    return x + item.width / 2 + behind, y + offset


def _legend(drawing: Drawing) -> list[LegendItem]:
    items = [device_item(look) for look in LOOKS if look in drawing.looks]
    if any(task.kind is TaskKind.REPLICATE for task in drawing.graph.tasks):
        stack = "".join(
            svg.rectangle(d, d, 20, 8, fill=CPU.look.tint, stroke=CPU.look.colour, radius=2)
            for d in (6, 3, 0)
        )
        items.append(LegendItem(stack, "divided over ranks"))
    if drawing.groups:
        frame = svg.rectangle(1, 1, 24, 12, fill=_FRAME_FILLS[0], stroke=ORANGE, radius=4)
        items.append(LegendItem(frame, "loop around tasks"))
    if True in drawing.kinds:
        items.append(line_item(GREY, "value", width=1.4))
    if False in drawing.kinds:
        items.append(line_item(GREY, "order only (WAR, WAW, after)", width=1.4, dash="3 3"))
    if len(drawing.critical.path) > 1:
        items.append(line_item(svg.INK, "critical path: dark and bold", width=3.6))
    if drawing.backs:
        items.append(line_item(BACK, "value for a later iteration", width=1.6, dash=BACK_DASH))
    return items


def _notes(drawing: Drawing) -> list[str]:
    once = "" if drawing.critical.measured or not drawing.groups else " One iteration of each loop."
    notes = [f"{sentence(graph_facts.critical_summary(drawing.critical))}{once}"]
    if not drawing.labelled:
        notes.append("Arrows are drawn without their labels: too many to read.")
    if drawing.unlabelled:
        notes.append(f"{count(drawing.unlabelled, 'arrow')} had no space for a label.")
    if drawing.hidden:
        notes.append(f"Hidden: {count(drawing.hidden, 'more arrow')} to later iterations.")
    notes += [f"Layout {engine}." for engine in sorted(drawing.layouts) if ":" in engine]
    return notes

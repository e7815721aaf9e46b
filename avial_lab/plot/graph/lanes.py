"""The schedule as lanes: one row a device, one column a level, messages as arrows.

Schedule -> SVG. Runs of levels, and of devices, are drawn together where there are too many; the
picture says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from avial_lab.core.words import count, format_bytes, names_range
from avial_lab.machine.devices import Look
from avial_lab.machine.topology import Device
from avial_lab.planning import graph_facts
from avial_lab.planning.critical_path import Critical
from avial_lab.planning.schedule import Placement, Schedule, Sync, Transfer
from avial_lab.planning.task_graph import TaskKind
from avial_lab.plot import svg
from avial_lab.plot.frame import SMALLEST_WIDTH, LegendItem, device_item, framed, line_item
from avial_lab.plot.palette import LOOKS, MESSAGE, ORANGE, look_of, outline
from avial_lab.trace import Trace

COLUMN_LIMIT = 24
LANE_LIMIT = 24
CELL_LIMIT = 5
ARROW_LIMIT = 60
GUTTER = 142.0
BOX_HEIGHT = 26.0
BOX_PITCH = 32.0
HEAD = 26.0
Point = tuple[float, float]


@dataclass(frozen=True)
class Lane:
    """A device, or several alike where there are more than fit."""

    devices: tuple[Device, ...]

    @property
    def title(self) -> str:
        return names_range([device.name for device in self.devices])

    @property
    def subtitle(self) -> str:
        ranks = sorted({device.rank for device in self.devices})
        where = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}–{ranks[-1]}"
        return f"{where}, emulated" if self.devices[0].emulated else where

    @property
    def look(self) -> Look:
        return look_of(self.devices[0])


@dataclass(frozen=True)
class Grid:
    """Which lane and column a task is in; `step` levels make a column."""

    lanes: tuple[Lane, ...]
    step: int
    columns: int
    cells: dict[tuple[int, int], tuple[Placement, ...]]

    @property
    def column_width(self) -> float:
        """Wide enough for the longest name, from 96 to 190 pixels."""
        names = [
            p.task
            for (k, _), cell in self.cells.items()
            if _shown(self.lanes[k], cell) == len(cell)
            for p in cell
        ]
        return min(
            190.0, max([96.0, *(svg.text_width(name, 12, bold=True) + 40 for name in names)])
        )


def lanes_svg(schedule: Schedule, trace: Trace | None = None, *, title: str = "Schedule") -> str:
    """Who runs what in which level, what it costs, and what has to move before it; at most 1 MB
    whatever the schedule. With a trace, costs are the times measured.
    """
    rules = f"policy {schedule.policy.value}, sync {schedule.sync.value}"
    if any(task.kind is TaskKind.REPLICATE for task in schedule.graph.tasks):
        rules = "a phase appears in the lanes of all its ranks"
    summary = f"{graph_facts.movement_summary(schedule)} · {rules} · {schedule.topology.summary}"
    description = f"{summary}. " + "; ".join(
        f"{p.task} on {p.device} (rank {p.rank}) in level {p.level}"
        for p in schedule.placements[:12]
    )
    if not schedule.placements:
        return framed("", 0, 0, title=title, summary="no tasks", description=description)
    grid = _grid(schedule)
    gap = 62.0 if schedule.transfers else 30.0
    brackets, above = _brackets(schedule, grid, grid.column_width + gap)
    pitch = grid.column_width + gap
    width = max(GUTTER + grid.columns * pitch, SMALLEST_WIDTH)
    tops, height = _lane_tops(grid)
    shapes = [
        _column_head(grid, k, GUTTER + k * pitch, grid.column_width) for k in range(grid.columns)
    ]
    shapes += [
        _lane(lane, top, bottom - top, width)
        for lane, (top, bottom) in zip(grid.lanes, tops, strict=True)
    ]
    if schedule.sync is Sync.LEVELS and grid.step == 1:
        shapes += [_barrier(GUTTER + k * pitch - gap / 2, height) for k in range(1, grid.columns)]
    critical = graph_facts.critical_of(schedule.graph, trace)
    boxes, ports = _boxes(grid, pitch, tops, critical)
    arrows, drawn = _arrows(schedule.transfers, ports)
    shapes += [*boxes, *arrows]
    moved, row = _moved_row(schedule, grid, pitch, height + 8)
    shapes.append(moved)
    notes = _notes(schedule, grid, critical, all_drawn=drawn)
    return framed(
        brackets + svg.moved("".join(shapes), 0, above),
        width,
        height + row + above,
        title=title,
        summary=summary,
        description=description,
        legend=_legend(schedule, grid, arrows=bool(arrows)),
        notes=notes,
    )


def _grid(schedule: Schedule) -> Grid:
    """The tasks by lane and column; a device without work keeps its lane: that it idles is worth
    seeing.
    """
    depth = max(placement.level for placement in schedule.placements) + 1
    step = ceil(depth / COLUMN_LIMIT)
    lanes = _lanes(schedule.topology.devices)
    lane_of = {device.name: k for k, lane in enumerate(lanes) for device in lane.devices}
    cells: dict[tuple[int, int], list[Placement]] = {}
    for placement in schedule.placements:
        cells.setdefault((lane_of[placement.device], placement.level // step), []).append(placement)
    return Grid(lanes, step, ceil(depth / step), {at: tuple(cell) for at, cell in cells.items()})


def _lanes(devices: Sequence[Device]) -> tuple[Lane, ...]:
    """A lane each, or runs of neighbours that look alike."""
    width = ceil(len(devices) / LANE_LIMIT)
    lanes: list[list[Device]] = []
    for device in devices:
        if lanes and len(lanes[-1]) < width and look_of(lanes[-1][0]) == look_of(device):
            lanes[-1].append(device)
        else:
            lanes.append([device])
    return tuple(Lane(tuple(lane)) for lane in lanes)


def _lane_tops(grid: Grid) -> tuple[list[tuple[float, float]], float]:
    """Top and bottom of every lane, and where the last one ends."""
    tops: list[tuple[float, float]] = []
    y = HEAD
    for k, each in enumerate(grid.lanes):
        fullest = max(
            (_shown(each, cell) for (lane, _), cell in grid.cells.items() if lane == k), default=1
        )
        tops.append((y, y + BOX_PITCH * fullest + 14))
        y = tops[-1][1] + 6
    return tops, y - 6


def _shown(lane: Lane, cell: Sequence[Placement]) -> int:
    """Boxes drawn for a cell: each of its tasks, or one for all."""
    return len(cell) if len(cell) <= CELL_LIMIT and len(lane.devices) == 1 else 1


def _column_head(grid: Grid, column: int, x: float, width: float) -> str:
    first, last = column * grid.step, (column + 1) * grid.step - 1
    words = f"level {first:,}" if grid.step == 1 else f"levels {first:,}–{last:,}"
    return svg.text(x + width / 2, 14, words, size=12, fill=svg.QUIET, bold=True, anchor="middle")


def _brackets(schedule: Schedule, grid: Grid, pitch: float) -> tuple[str, float]:
    """Above the columns, the loops around their tasks; nothing where columns are runs of levels."""
    groups = [group for group in schedule.graph.groups if group.loop]
    if not groups or grid.step > 1:
        return "", 0.0
    level = schedule.graph.level_of
    shapes: list[str] = []
    deepest = 0
    for group in groups:
        columns = [level[task.name] for task in schedule.graph.tasks if group.name in task.group]
        left = GUTTER + min(columns) * pitch - 8
        right = GUTTER + max(columns) * pitch + grid.column_width + 8
        y = 20.0 * len(group.around) + 14
        deepest = max(deepest, len(group.around) + 1)
        words = svg.shorten(f"↻ {group.name}, {group.words}", right - left - 12, 11, bold=True)
        ends = "".join(svg.line(x, y, x, y + 5, stroke=ORANGE, width=2) for x in (left, right))
        shapes.append(
            svg.group(
                svg.line(left, y, right, y, stroke=ORANGE, width=2)
                + ends
                + svg.text(
                    (left + right) / 2, y + 4, words, size=11, bold=True, anchor="middle", halo=True
                ),
                title=f"{group.name}: {group.words}",
                label="loop",
            )
        )
    return "".join(shapes), 20.0 * deepest + 6


def _lane(lane: Lane, top: float, height: float, width: float) -> str:
    look = lane.look
    middle = top + height / 2
    mark = svg.moved(device_item(look).mark, 10, middle - 7)
    return (
        svg.rectangle(0, top, width, height, fill=svg.BAND, radius=6)
        + mark
        + svg.text(
            44, middle - 2, svg.shorten(lane.title, GUTTER - 52, 12, bold=True), size=12, bold=True
        )
        + svg.text(44, middle + 12, lane.subtitle, size=10.5, fill=svg.QUIET)
    )


def _barrier(x: float, height: float) -> str:
    return svg.group(
        svg.line(x, HEAD - 6, x, height, stroke=svg.INK, width=2, dash="6 4"),
        title="barrier: all ranks wait",
    )


def _boxes(
    grid: Grid, pitch: float, tops: Sequence[tuple[float, float]], critical: Critical
) -> tuple[list[str], dict[str, tuple[Point, Point]]]:
    """The boxes, and for every task where arrows reach (left) and leave (right) its box."""
    shapes: list[str] = []
    ports: dict[str, tuple[Point, Point]] = {}
    width = grid.column_width
    most = max(critical.cost.values(), default=0) or 1
    on_path = set(critical.path)
    for (lane, column), cell in sorted(grid.cells.items()):
        top, bottom = tops[lane]
        x = GUTTER + column * pitch
        rows = [(p,) for p in cell] if _shown(grid.lanes[lane], cell) == len(cell) else [cell]
        y = (top + bottom - BOX_PITCH * len(rows)) / 2 + (BOX_PITCH - BOX_HEIGHT) / 2
        for row in rows:
            spent = sum(critical.cost[p.task] for p in row)
            words = critical.words(spent)
            words += "" if critical.measured else " touched"
            bold = not on_path.isdisjoint(p.task for p in row)
            share = min(1.0, spent / len(row) / most)
            shapes.append(_box(row, grid.lanes[lane].look, x, y, width, share, words, bold=bold))
            for placement in row:
                ports[placement.task] = ((x, y + BOX_HEIGHT / 2), (x + width, y + BOX_HEIGHT / 2))
            y += BOX_PITCH
    return shapes, ports


def _box(
    row: Sequence[Placement],
    look: Look,
    x: float,
    y: float,
    width: float,
    share: float,
    cost: str,
    *,
    bold: bool,
) -> str:
    """A task, or all of a cell; below its name a bar as long as its `share` of the dearest task's
    cost.
    """
    if len(row) == 1:
        words, tip = (
            row[0].task,
            f"{row[0].task} on {row[0].device}, rank {row[0].rank}: {row[0].reason}",
        )
    else:
        words, tip = (
            f"{len(row):,} tasks",
            f"{len(row):,} tasks: {names_range([p.task for p in row])}",
        )
    label = svg.shorten(words, width - 32, 12, bold=True)
    bar = svg.rectangle(x + 25, y + 20, max(1.0, (width - 32) * share), 3, fill=look.colour)
    name = svg.text(x + 25, y + 15, label, size=12, bold=True)
    return svg.group(
        outline(look, x, y, width, BOX_HEIGHT, bold=bold) + bar + name,
        title=f"{tip}; {cost}{', on the critical path' if bold else ''}",
        label="task",
    )


def _arrows(
    transfers: Sequence[Transfer], ports: dict[str, tuple[Point, Point]]
) -> tuple[list[str], bool]:
    """One arrow a message, or one for all between two boxes; none where that would be too many
    to follow.
    """
    bundles: dict[tuple[Point, Point], list[Transfer]] = {}
    for transfer in transfers:
        if len(bundles) > 4 * ARROW_LIMIT:
            return [], False
        bundles.setdefault((ports[transfer.producer][1], ports[transfer.consumer][0]), []).append(
            transfer
        )
    forward = {ends: sent for ends, sent in bundles.items() if ends[0][0] < ends[1][0]}
    if len(forward) > ARROW_LIMIT:
        return [], False
    arriving = Counter(end for _, end in forward)
    seen: Counter[Point] = Counter()
    shapes: list[str] = []
    for (start, end), sent in sorted(forward.items()):
        # Arrows that reach the same box do so side by side, in the order of where they come from.
        spread = min(8.0, 18.0 / arriving[end])
        end_y = end[1] + spread * (seen[end] - (arriving[end] - 1) / 2)
        seen[end] += 1
        curve = (start, (start[0] + 34, start[1]), (end[0] - 34, end_y), (end[0], end_y))
        words = _arrow_words(sent)
        tip = "\n".join(
            f"{t.storage}{t.box}, {format_bytes(t.nbytes)}, rank {t.source} → {t.dest}"
            for t in sent[:8]
        )
        below = end_y >= start[1]
        at = (start[0] + 7, start[1] + (14 if below else -6)) if len(forward) <= 24 else None
        text = svg.text(*at, words, size=10.5, fill="#00664a", bold=True, halo=True) if at else ""
        shapes.append(
            svg.group(
                svg.arrow(curve, stroke=MESSAGE, width=2.2) + text, title=tip, label="message"
            )
        )
    return shapes, len(forward) == len(bundles)


def _arrow_words(sent: Sequence[Transfer]) -> str:
    total = format_bytes(sum(transfer.nbytes for transfer in sent))
    return (
        f"{svg.shorten(sent[0].storage, 40, 10.5)} {total}"
        if len(sent) == 1
        else f"{len(sent):,}× {total}"
    )


def _moved_row(schedule: Schedule, grid: Grid, pitch: float, y: float) -> tuple[str, float]:
    """Below each column, what arrives for it; nothing where nothing is ever sent."""
    if not schedule.messages:
        return "", 0
    column = {p.task: p.level // grid.step for p in schedule.placements}
    number, moved = Counter[int](), Counter[int]()
    for message in schedule.sent:
        if message.consumer in column:
            number[column[message.consumer]] += message.messages
            moved[column[message.consumer]] += message.nbytes
    shapes = [svg.text(10, y + 12, "received", size=11, fill=svg.QUIET)]
    for k in range(grid.columns):
        x = GUTTER + k * pitch + grid.column_width / 2
        if number[k]:
            shapes.append(
                svg.text(
                    x,
                    y + 12,
                    count(number[k], "message"),
                    size=11,
                    fill="#00664a",
                    anchor="middle",
                )
            )
            shapes.append(
                svg.text(
                    x,
                    y + 26,
                    format_bytes(moved[k]),
                    size=11,
                    fill="#00664a",
                    anchor="middle",
                )
            )
        else:
            shapes.append(svg.text(x, y + 12, "–", size=11, fill=svg.QUIET, anchor="middle"))
    return "".join(shapes), 38


def _notes(schedule: Schedule, grid: Grid, critical: Critical, *, all_drawn: bool) -> list[str]:
    how = "measured time" if critical.measured else "estimated from the bytes it touches"
    notes = [f"Bars: cost of a task ({how}). Dark outlines: the critical path."]
    if grid.step > 1:
        notes.append(f"Each column is {grid.step:,} levels; order within it is not drawn.")
    if len(grid.lanes) < len(schedule.topology.devices):
        notes.append(
            f"{len(schedule.topology.devices):,} devices share "
            f"{len(grid.lanes)} lanes with neighbours."
        )
    hidden = sum(
        len(cell) for (k, _), cell in grid.cells.items() if _shown(grid.lanes[k], cell) < len(cell)
    )
    if hidden:
        notes.append(f"{count(hidden, 'task')} are merged into one box per lane and column.")
    if not all_drawn:
        notes.append(
            f"Of {count(len(schedule.transfers), 'message')} not all are drawn; "
            "the last row counts every one."
        )
    return notes


def _legend(schedule: Schedule, grid: Grid, *, arrows: bool) -> list[LegendItem]:
    looks = {lane.look for lane in grid.lanes}
    items = [device_item(look) for look in LOOKS if look in looks]
    if arrows:
        items.append(line_item(MESSAGE, "message", width=2.2))
    if schedule.sync is Sync.LEVELS and grid.step == 1 and grid.columns > 1:
        items.append(
            LegendItem(svg.line(0, 7, 26, 7, stroke=svg.INK, width=2, dash="6 4"), "barrier")
        )
    return items

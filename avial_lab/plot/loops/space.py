"""Dependences drawn: the first iterations of a nest as points, what needs what as arrows.

Nest -> SVG. The arrows to one iteration, the dark one, are strong and say of which order
they are; of the others the flow of values alone is drawn, faintly.

          i = 1   2   3   4                   t = 0   S1  o   o   o   o
                                                      S2  o   o   o   o
    one row for each t, and in it one lane                 ╲  │  ╱
    for each loop inside                      t = 1   S1  o   ●   o   o
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from avial_lab.artifact.explanation import Cell, Nest, Order, nest_summary
from avial_lab.core.words import count
from avial_lab.planning.task_graph import TaskKind
from avial_lab.plot import svg
from avial_lab.plot.frame import SMALLEST_WIDTH, LegendItem, framed
from avial_lab.plot.palette import BLUE, GREY, VERMILION

PITCH = 52.0
LINE = 44.0
ROW_GAP = 14.0
RADIUS = 6.0
FAINT = "#c3cad4"
FAINT_LIMIT = 300
DASHES = {Order.FLOW: "", Order.ANTI: "6 3", Order.OUTPUT: "1.5 3"}
"""The order of an arrow, shown by its line style."""

_MEANING = {
    Order.FLOW: "RAW: it writes what the other reads",
    Order.ANTI: "WAR: it reads what the other overwrites",
    Order.OUTPUT: "WAW: both write it",
}
Point = tuple[float, float]


def worth_drawing(nests: Sequence[Nest], *, most: int = 4) -> tuple[Nest, ...]:
    """Those whose outer loop is kept in order, in the program's order; without one, the first."""
    kept = [nest for nest in nests if nest.forbidding and nest.kind is not TaskKind.REPLICATE]
    return tuple(kept[:most]) or tuple(nests[:1])


def nest_svg(nest: Nest, *, title: str | None = None) -> str:
    """The picture; at most 100 kB."""
    title = f"Dependences of {nest.name}" if title is None else title
    summary = nest_summary(nest)
    if not nest.cells:
        return framed("", 0, 0, title=title, summary=summary, description=summary)
    plan = _Plan(nest)
    focus = _focus(nest)
    incoming = [need for need in nest.needs if need[2] == focus]
    faint = [
        (before, after)
        for order, before, after in nest.needs
        if order is Order.FLOW and after != focus
    ][:FAINT_LIMIT]
    shapes = [plan.heads()]
    shapes += [_faint(plan, before, after) for before, after in faint]
    shapes += [plan.dot(cell, cell == focus, {need[1] for need in incoming}) for cell in nest.cells]
    shapes += [_strong(plan, nest, *need) for need in incoming]
    description = summary
    if focus is not None:
        needed = ", ".join(_cell_words(nest, before) for _, before, _ in incoming[:6])
        description += f". {_cell_words(nest, focus)} needs {needed}"
    return framed(
        "".join(shapes),
        max(plan.width, SMALLEST_WIDTH),
        plan.height,
        title=title,
        summary=summary,
        description=description,
        legend=_legend(nest, incoming, faint=bool(faint)),
        notes=_notes(nest),
    )


def _focus(nest: Nest) -> Cell | None:
    """The iteration whose needs are shown: near the middle, one that has needs of most kinds."""
    kinds: dict[Cell, set[tuple[Order, bool]]] = {}
    for order, before, after in nest.needs:
        kinds.setdefault(after, set()).add((order, (before, after) in nest.forbidding))
    if not kinds:
        return None
    rows = sorted({cell.row or 0 for cell in nest.cells})
    columns = sorted({cell.column or 0 for cell in nest.cells})
    middle = rows[len(rows) // 2], columns[len(columns) // 2]

    def rank(cell: Cell) -> tuple[int, int, int]:
        hard = sum(forbids + (order is Order.FLOW and forbids) for order, forbids in kinds[cell])
        hard = min(hard, 2)
        row, column = (rows.index(cell.row or 0), columns.index(cell.column or 0))
        away = abs(row - rows.index(middle[0])) + abs(column - columns.index(middle[1]))
        return (-hard, away - 2 * len(kinds[cell]), cell.lane)

    return min(kinds, key=rank)


class _Plan:
    """Where the cells are: rows of the outer loop, in each a line for each inner loop."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        found = sorted({cell.row for cell in nest.cells if cell.row is not None})
        self.rows: list[int | None] = [*found] or [None]
        self.columns = sorted({c.column for c in nest.cells if c.column is not None})
        self.beside = any(cell.column is None for cell in nest.cells)
        labels = [self._row_words(row) for row in self.rows]
        lanes = [*self.nest.lanes] if len(self.nest.lanes) > 1 else []
        self.lane_at = max((svg.text_width(words, 12, bold=True) for words in labels), default=0)
        self.lane_at += 14 if labels != [""] else 0
        widest = max((svg.text_width(words, 11) for words in lanes), default=0)
        self.left = self.lane_at + widest + 26
        self.lines = len(self.nest.lanes)
        self.row_height = LINE * self.lines + ROW_GAP
        self.width = self.left + PITCH * (len(self.columns) + self.beside) + 10
        self.height = 34 + self.row_height * len(self.rows) - ROW_GAP

    def _row_words(self, row: int | None) -> str:
        return "" if row is None else f"{self.nest.rows} = {row}"

    def at(self, cell: Cell) -> Point:
        row = self.rows.index(cell.row) if cell.row is not None else 0
        y = 34 + row * self.row_height + LINE * (cell.lane + 0.5)
        if cell.column is None:
            return self.left + PITCH * 0.4, y
        place = self.columns.index(cell.column) + self.beside
        return self.left + PITCH * (place + 0.4), y

    def heads(self) -> str:
        """The values of both loops, and the lanes' names."""
        nest = self.nest
        shapes: list[str] = []
        for k, column in enumerate(self.columns):
            x = self.left + PITCH * (k + self.beside + 0.4)
            words = f"{nest.columns} = {column}" if k == 0 else str(column)
            anchor = "end" if k == 0 and len(words) > 8 else "middle"
            shift = 12 if anchor == "end" else 0
            shapes.append(
                svg.text(x + shift, 14, words, size=12, fill=svg.QUIET, bold=True, anchor=anchor)
            )
        for k, row in enumerate(self.rows):
            top = 34 + k * self.row_height
            band = LINE * self.lines
            shapes.append(svg.rectangle(0, top, self.width, band, fill=svg.BAND, radius=6))
            if row is not None:
                words = self._row_words(row)
                shapes.append(svg.text(8, top + band / 2 + 4, words, size=12, bold=True))
            for lane, name in enumerate(nest.lanes if self.lines > 1 else ()):
                y = top + LINE * (lane + 0.5) + 4
                shapes.append(svg.text(self.lane_at + 4, y, name, size=11, fill=svg.QUIET))
        return "".join(shapes)

    def dot(self, cell: Cell, focused: bool, needed: Iterable[Cell]) -> str:
        x, y = self.at(cell)
        fill = svg.INK if focused else "#ffffff"
        stroke = svg.INK if focused or cell in needed else GREY
        width = 2.4 if cell in needed else 1.4
        if cell.column is None:  # beside the inner loop: a square
            shape = svg.rectangle(
                x - RADIUS, y - RADIUS, 2 * RADIUS, 2 * RADIUS, fill=fill, stroke=stroke,
                stroke_width=width,
            )  # fmt: skip
        else:
            shape = svg.circle(x, y, RADIUS, fill=fill, stroke=stroke, stroke_width=width)
        return svg.group(shape, title=_cell_words(self.nest, cell), label="cell")


def _cell_words(nest: Nest, cell: Cell) -> str:
    """`S1 at t = 1, i = 3`."""
    where = [f"{nest.rows} = {cell.row}"] if cell.row is not None else []
    if cell.column is not None:
        where.append(f"{nest.columns.split(', ')[0]} = {cell.column}")
    name = nest.lanes[cell.lane] if len(nest.lanes) > 1 else nest.name
    return f"{name} at {', '.join(where)}"


def _faint(plan: _Plan, before: Cell, after: Cell) -> str:
    curve = _curve(plan.at(before), plan.at(after))
    return svg.group(svg.arrow(curve, stroke=FAINT, width=1.1), label="faint")


def _strong(plan: _Plan, nest: Nest, order: Order, before: Cell, after: Cell) -> str:
    hard = (before, after) in nest.forbidding
    colour, width = (VERMILION, 2.4) if hard else (BLUE, 1.7)
    curve = _curve(plan.at(before), plan.at(after))
    words = f"{_cell_words(nest, after)} needs {_cell_words(nest, before)} ({order.hazard})"
    arrow = svg.arrow(curve, stroke=colour, width=width, dash=DASHES[order])
    return svg.group(arrow, title=words, label="need")


def _curve(start: Point, end: Point) -> tuple[Point, ...]:
    """From rim to rim, bent where a straight line would run through other points."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    along = abs(dy) < 1 and abs(dx) > PITCH * 1.5
    down = abs(dx) < 1 and abs(dy) > LINE * 1.8
    bend = 16.0 + length * 0.06 if along or down else 0.0
    px, py = (uy * bend, -ux * bend)
    gap = RADIUS + 2
    a = (start[0] + ux * gap + px * 0.15, start[1] + uy * gap + py * 0.15)
    b = (end[0] - ux * gap + px * 0.15, end[1] - uy * gap + py * 0.15)
    first = (a[0] + dx / 4 + px, a[1] + dy / 4 + py)
    second = (b[0] - dx / 4 + px, b[1] - dy / 4 + py)
    return a, first, second, b


def _legend(
    nest: Nest, incoming: Sequence[tuple[Order, Cell, Cell]], *, faint: bool
) -> list[LegendItem]:
    outer = nest.rows or nest.columns
    if not incoming:
        return [LegendItem(svg.circle(13, 7, RADIUS, stroke=GREY, stroke_width=1.4), "iteration")]
    items = [LegendItem(svg.circle(13, 7, RADIUS, fill=svg.INK), "the selected iteration")]
    orders = {order for order, _, _ in incoming}
    for order in Order:
        if order in orders:
            curve = ((0.0, 7.0), (8.0, 7.0), (18.0, 7.0), (26.0, 7.0))
            mark = svg.arrow(curve, stroke=svg.INK, width=1.6, dash=DASHES[order])
            items.append(LegendItem(mark, _MEANING[order]))
    hard = [(before, after) in nest.forbidding for _, before, after in incoming]
    if any(hard):
        mark = svg.line(0, 7, 26, 7, stroke=VERMILION, width=2.4)
        items.append(LegendItem(mark, f"thick: keeps {outer} in order"))
    if not all(hard):
        mark = svg.line(0, 7, 26, 7, stroke=BLUE, width=1.7)
        items.append(LegendItem(mark, f"thin: within one {outer}"))
    if faint:
        mark = svg.line(0, 7, 26, 7, stroke=FAINT, width=1.1)
        items.append(LegendItem(mark, "RAW to other iterations"))
    return items


def _notes(nest: Nest) -> list[str]:
    notes = ["The first iterations of the two outer loops; for each value only its last write."]
    if nest.kind is TaskKind.REPLICATE and not nest.forbidding:
        notes.append("No dependence orders the iterations of the outer loop: they are divided.")
    if any(not each.exact for each in nest.dependences):
        notes.append("Some dependences are not known exactly: all possible ones are drawn.")
    if nest.note:
        notes.append(f"Hidden: {nest.note}.")
    hidden = sum(order is Order.FLOW for order, _, _ in nest.needs) - FAINT_LIMIT
    if hidden > 0:
        notes.append(f"Hidden: {count(hidden, 'more arrow')}.")
    return notes

"""What goes from rank to rank, phase by phase, and how much memory it saves: the plan beside the
run.

Plan (and the moves that a run counted) -> SVG, tables, sentences. Bytes are shown by numbers or by
the size of a square, never by colour alone.

            to 0    to 1    to 2
    from 0    ·    8.5 KiB    ·
    from 1  8.5 KiB   ·    8.5 KiB
    from 2    ·    8.5 KiB    ·
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from avial_lab.artifact.plan import Plan
from avial_lab.artifact.plan_facts import all_bytes, held_summary, moves_summary
from avial_lab.core.buffers import Storage
from avial_lab.core.words import count, format_bytes
from avial_lab.plot import svg
from avial_lab.plot.frame import SMALLEST_WIDTH, LegendItem, box_item, framed
from avial_lab.plot.palette import BLUE, MESSAGE
from avial_lab.trace import Move

PANEL_LIMIT = 12
"""Matrices in one picture, that of all phases together included."""

SIDE_LIMIT = 32
"""Rows of a matrix; of more ranks, neighbours share one."""

BAR_LIMIT = 64
WIDTH = 1000.0
HEAD = 44.0
GUTTER = 46.0
GAP = 34.0
_TINT = "#d3efe6"
_DARK = "#00664a"

Pair = tuple[int, int]


@dataclass(frozen=True)
class Matrix:
    """messages and bytes by (source, dest); `side` rows of `step` ranks each."""

    title: str
    cells: dict[Pair, tuple[int, int]]
    side: int
    step: int

    @property
    def messages(self) -> int:
        return sum(messages for messages, _ in self.cells.values())

    @property
    def nbytes(self) -> int:
        return sum(nbytes for _, nbytes in self.cells.values())

    def name(self, k: int) -> str:
        """The ranks of row k: `3`, or `32–35`."""
        first = k * self.step
        return str(first) if self.step == 1 else f"{first}–{first + self.step - 1}"


# The matrices -----------------------------------------------------------------------------------


def messages_svg(
    plan: Plan, counted: Sequence[Move] | None = None, *, title: str = "Messages"
) -> str:
    """Who sends how much to whom: for all phases together, then for each; at most 1 MB.

    Shows what a run has `counted` where there was one, else what is planned.
    """
    shown = plan.moves if counted is None else counted
    summary = moves_summary(plan, counted)
    if not shown:
        words = "no messages between ranks"
        return framed("", 0, 0, title=title, summary=words, description=summary)
    matrices = _matrices(plan, shown)
    drawn = matrices[:PANEL_LIMIT]
    cell = _cell_size(drawn[0].side)
    panel = GUTTER + drawn[0].side * cell[0]
    across = max(1, int((WIDTH + GAP) // (panel + GAP)))
    pitch = HEAD + drawn[0].side * cell[1] + GAP
    shapes = [
        svg.moved(
            _panel(matrix, cell), k % across * (panel + GAP), k // across * pitch
        )
        for k, matrix in enumerate(drawn)
    ]  # fmt: skip
    width = min(across, len(drawn)) * (panel + GAP) - GAP
    notes = _notes(plan, matrices, len(drawn))
    heaviest = sorted(drawn[0].cells.items(), key=lambda item: -item[1][1])[:6]
    description = f"{summary}. " + "; ".join(
        f"rank {drawn[0].name(s)} to {drawn[0].name(d)}: {format_bytes(nbytes)}"
        for (s, d), (_, nbytes) in heaviest
    )
    return framed(
        "".join(shapes),
        max(width, SMALLEST_WIDTH),
        ceil(len(drawn) / across) * pitch - GAP,
        title=title,
        summary=summary,
        description=description,
        legend=_legend(cell),
        notes=notes,
    )


def _notes(plan: Plan, matrices: Sequence[Matrix], drawn: int) -> list[str]:
    notes: list[str] = []
    if len(matrices) > drawn:
        rest = matrices[drawn:]
        hidden = format_bytes(sum(matrix.nbytes for matrix in rest))
        notes.append(f"Hidden: {count(len(rest), 'more phase')} with {hidden}.")
    if matrices[0].step > 1:
        notes.append(f"{plan.ranks:,} ranks: {matrices[0].step} neighbouring ranks share a row.")
    return notes


def _legend(cell: tuple[float, float]) -> list[LegendItem]:
    if _has_room(cell):
        return [box_item(_TINT, "bytes, and messages", stroke=MESSAGE)]
    return [box_item(MESSAGE, "square size: bytes")]


def _matrices(plan: Plan, moves: Iterable[Move]) -> list[Matrix]:
    """That of all phases first, then those of the phases with messages, in the program's order."""
    step = ceil(plan.ranks / SIDE_LIMIT)
    side = ceil(plan.ranks / step)
    by_phase: dict[str, dict[Pair, tuple[int, int]]] = {}
    everything: dict[Pair, tuple[int, int]] = {}
    for move in moves:
        pair = move.source // step, move.dest // step
        for cells in (everything, by_phase.setdefault(move.phase, {})):
            messages, nbytes = cells.get(pair, (0, 0))
            cells[pair] = messages + move.messages, nbytes + move.nbytes
    order = {phase.phase: k for k, phase in enumerate(plan.phases)}
    begun = {phase.phase: phase.begun for phase in plan.phases}
    phases = sorted(by_phase, key=lambda name: (order.get(name, len(order)), name))
    titles = {name: f"{name}, {begun[name]:,}×" if name in begun else name for name in phases}
    rest = [Matrix(titles[name], by_phase[name], side, step) for name in phases]
    return [Matrix("all phases", everything, side, step), *rest] if len(rest) != 1 else rest


def _cell_size(side: int) -> tuple[float, float]:
    return (70.0, 36.0) if side <= 6 else (24.0, 24.0) if side <= 16 else (14.0, 14.0)


def _has_room(cell: tuple[float, float]) -> bool:
    return cell[0] >= 60


def _panel(matrix: Matrix, cell: tuple[float, float]) -> str:
    """The head, and one cell for each pair of ranks."""
    width, height = cell
    room = GUTTER + matrix.side * width
    amount = f"{count(matrix.messages, 'message')}, {format_bytes(matrix.nbytes)}"
    shapes = [
        svg.text(0, 12, svg.shorten(matrix.title, room, 12.5, bold=True), size=12.5, bold=True),
        svg.text(0, 27, svg.shorten(amount, room, 11), size=11, fill=_DARK),
    ]
    every = 1 if width >= 20 or matrix.step == 1 else 4
    for k in range(matrix.side):
        if k % every == 0:
            x, y = GUTTER + (k + 0.5) * width, HEAD + (k + 0.5) * height + 4
            name = matrix.name(k)
            shapes.append(
                svg.text(
                    x, HEAD - 3, f"to {name}" if _has_room(cell) else name, size=10,
                    fill=svg.QUIET, anchor="middle",
                )
            )  # fmt: skip
            shapes.append(
                svg.text(GUTTER - 5, y, f"from {name}", size=10, fill=svg.QUIET, anchor="end")
            )
    side = matrix.side
    shapes.append(svg.rectangle(GUTTER, HEAD, side * width, side * height, fill=svg.BAND))
    shapes.append(_grid(side, cell, own=matrix.step == 1))
    if _has_room(cell):
        shapes += [_cell(matrix, pair, cell) for pair in sorted(matrix.cells)]
    else:
        shapes.append(_squares(matrix, cell))
    return "".join(shapes)


def _grid(side: int, cell: tuple[float, float], *, own: bool) -> str:
    """Lines between the cells; a stroke through the diagonal, where nothing can be sent."""
    width, height = cell
    right, bottom = GUTTER + side * width, HEAD + side * height
    lines = [
        f"M{svg.number(GUTTER + k * width)} {HEAD:g}V{svg.number(bottom)}"
        f"M{GUTTER:g} {svg.number(HEAD + k * height)}H{svg.number(right)}"
        for k in range(side + 1)
    ]
    strokes = [
        f"M{svg.number(GUTTER + k * width + 4)} {svg.number(HEAD + k * height + 4)}"
        f"l{svg.number(width - 8)} {svg.number(height - 8)}"
        for k in range(side if own else 0)
    ]
    return svg.path("".join(lines), stroke=svg.PAPER) + svg.path("".join(strokes), stroke=svg.LINE)


def _squares(matrix: Matrix, cell: tuple[float, float]) -> str:
    """One shape for all: a square for each pair, its area as large as its share of bytes."""
    width, height = cell
    largest = max(nbytes for _, nbytes in matrix.cells.values()) or 1
    parts: list[str] = []
    for (source, dest), (_, nbytes) in sorted(matrix.cells.items()):
        side = max(3.0, (width - 4) * sqrt(nbytes / largest))
        x = GUTTER + dest * width + (width - side) / 2
        y = HEAD + source * height + (height - side) / 2
        length = svg.number(side)
        parts.append(f"M{svg.number(x)} {svg.number(y)}h{length}v{length}h-{length}z")
    return svg.group(svg.path("".join(parts), fill=MESSAGE), label="squares")


def _cell(matrix: Matrix, pair: Pair, cell: tuple[float, float]) -> str:
    (source, dest), (width, height) = pair, cell
    messages, nbytes = matrix.cells[pair]
    x, y = GUTTER + dest * width, HEAD + source * height
    amount = f"{format_bytes(nbytes)} in {count(messages, 'message')}"
    tip = f"rank {matrix.name(source)} to rank {matrix.name(dest)}: {amount}"
    middle = x + width / 2
    shapes = svg.rectangle(
        x + 1, y + 1, width - 2, height - 2, fill=_TINT, stroke=MESSAGE, radius=3
    )
    shapes += svg.text(
        middle, y + 16, format_bytes(nbytes), size=11.5, fill=_DARK, bold=True, anchor="middle"
    )
    shapes += svg.text(middle, y + 29, f"{messages:,}×", size=10, fill=_DARK, anchor="middle")
    return svg.group(shapes, title=tip, label="moves")


# Memory -----------------------------------------------------------------------------------------


def held_svg(plan: Plan, storages: Sequence[Storage], *, title: str = "Memory of each rank") -> str:
    """What each rank ever holds, as bars, with a line at an equal share of all arrays."""
    summary = held_summary(plan, storages)
    whole, share = all_bytes(storages), all_bytes(storages) / plan.ranks
    shown = plan.held_bytes[:BAR_LIMIT]
    longest = max(*shown, share, 1)
    left, room, pitch = 66.0, 560.0, 22.0
    shapes: list[str] = []
    for rank, nbytes in enumerate(shown):
        y = 18 + rank * pitch
        width = nbytes / longest * room
        words = format_bytes(nbytes) + (f", {nbytes / share:.2f}× its share" if share else "")
        bar = svg.rectangle(left, y, width, pitch - 7, fill="#cfe3f1", stroke=BLUE)
        shapes.append(
            svg.group(bar, title=f"rank {rank} ever holds {nbytes:,} bytes", label="held")
        )
        shapes.append(svg.text(left - 8, y + 12, f"rank {rank}", size=12, anchor="end"))
        shapes.append(svg.text(left + room + 14, y + 12, words, size=11, fill=svg.QUIET))
    bottom = 18 + len(shown) * pitch
    at = left + share / longest * room
    shapes.append(svg.line(at, 4, at, bottom, stroke=svg.INK, width=1.6, dash="5 3"))
    notes = [f"Hidden: {count(plan.ranks - BAR_LIMIT, 'more rank')}."]
    mark = svg.line(13, 0, 13, 14, stroke=svg.INK, width=1.6, dash="5 3")
    legend = [
        box_item(
            "#cfe3f1", "elements that a rank holds at any time, each counted once", stroke=BLUE
        ),
        LegendItem(mark, f"all arrays ({format_bytes(whole)}) / {count(plan.ranks, 'rank')}"),
    ]
    return framed(
        "".join(shapes),
        left + room + 180,
        bottom,
        title=title,
        summary=summary,
        description=summary,
        legend=legend,
        notes=notes if plan.ranks > BAR_LIMIT else (),
    )

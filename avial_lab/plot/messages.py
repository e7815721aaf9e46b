"""What goes from rank to rank, phase by phase, and how much memory it saves: the plan beside the
run.

Plan (and the moves that a run counted) -> SVG, tables, sentences. Bytes are told by numbers or by
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

from avial_lab.arrays import Storage
from avial_lab.ownership import Plan
from avial_lab.plot import facts, svg
from avial_lab.plot.facts import Table, count, format_bytes
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


# In words ---------------------------------------------------------------------------------------


def moves_summary(plan: Plan, counted: Sequence[Move] | None = None) -> str:
    """One line: how many bytes in how many messages, foreseen or counted, and whether they agree.

    `3 ranks, 156 messages, 34.1 KiB moved, counted in the run and as planned`
    """
    shown = plan.moves if counted is None else counted
    messages = sum(move.messages for move in shown)
    nbytes = sum(move.nbytes for move in shown)
    words = f"{count(plan.ranks, 'rank')}, {count(messages, 'message')}, "
    return f"{words}{format_bytes(nbytes)} moved, {agreement_words(plan, counted)}"


def agreement_words(plan: Plan, counted: Sequence[Move] | None) -> str:
    """Where the numbers come from, and whether the run did what was planned."""
    if not plan.complete:
        sample = "the plan is a sample: how often a loop goes round depends on data"
        return sample if counted is None else f"counted in the run ({sample})"
    if counted is None:
        return "planned before the run"
    if _by_phase_and_pair(counted) == _by_phase_and_pair(plan.moves):
        return "counted in the run and as planned"
    planned = sum(move.messages for move in plan.moves), plan.bytes_moved
    return f"counted in the run; planned were {planned[0]:,} and {format_bytes(planned[1])}"


def moves_table(plan: Plan, counted: Sequence[Move] | None = None) -> Table:
    """Phase by phase and pair by pair: what was planned, and what a run has counted."""
    planned, run = _by_phase_and_pair(plan.moves), _by_phase_and_pair(counted or ())
    order = {phase.phase: k for k, phase in enumerate(plan.phases)}
    keys = sorted({*planned, *run}, key=lambda key: (order.get(key[0], len(order)), *key))
    rows: list[tuple[str, ...]] = []
    for key in keys[: facts.ROW_LIMIT]:
        phase, source, dest = key
        row = (phase, str(source), str(dest), *_amounts(planned.get(key)))
        rows.append(row if counted is None else (*row, *_amounts(run.get(key))))
    head = ("phase", "from rank", "to rank", "messages", "bytes")
    if counted is not None:
        head = (*head, "messages counted", "bytes counted")
    note = facts.left_out(len(keys), "row")
    return Table("Messages", head, tuple(rows), frozenset(head[1:]), note)


def phase_table(plan: Plan) -> Table:
    """Every phase: how often it is begun, what moves for it, and whether it could be split."""
    sent: dict[str, int] = {}
    for move in plan.moves:
        sent[move.phase] = sent.get(move.phase, 0) + move.messages
    rows = tuple(
        (
            phase.phase,
            f"{phase.begun:,}",
            f"{sent.get(phase.phase, 0):,}",
            format_bytes(phase.nbytes),
            f"{phase.whole:,}",
        )
        for phase in plan.phases[: facts.ROW_LIMIT]
    )
    head = ("phase", "begun", "messages", "bytes", "times on one rank after all")
    note = facts.left_out(len(plan.phases), "phase")
    return Table("Phases", head, rows, frozenset(head[1:]), note)


def held_table(plan: Plan, storages: Sequence[Storage]) -> Table:
    """What each rank ever holds, beside its share of all arrays."""
    share = all_bytes(storages) / plan.ranks
    rows = tuple(
        (str(rank), format_bytes(nbytes), f"{nbytes / share:.2f}" if share else "")
        for rank, nbytes in enumerate(plan.held_bytes[: facts.ROW_LIMIT])
    )
    head = ("rank", "holds at most", "times its share")
    note = facts.left_out(plan.ranks, "rank")
    return Table("Memory of each rank", head, rows, frozenset(head), note)


def held_summary(plan: Plan, storages: Sequence[Storage]) -> str:
    """`the fullest rank holds 5.6 KiB; all arrays divided by 3 ranks are 4.7 KiB`."""
    share = format_bytes(round(all_bytes(storages) / plan.ranks))
    fullest = format_bytes(max(plan.held_bytes, default=0))
    words = f"all arrays divided by {count(plan.ranks, 'rank')} are {share}"
    return f"the fullest rank holds {fullest}; {words}"


def plan_text(
    plan: Plan, counted: Sequence[Move] | None = None, *, storages: Sequence[Storage] = ()
) -> str:
    """The pictures' facts for a terminal; memory where the `storages` are known."""
    tables = [phase_table(plan), moves_table(plan, counted)]
    words = [moves_summary(plan, counted)]
    if storages:
        tables.append(held_table(plan, storages))
        words.append(held_summary(plan, storages))
    return "\n".join([*words, *(table.to_text() for table in tables if table.rows)])


def all_bytes(storages: Iterable[Storage]) -> int:
    """Bytes of all arrays, those of the program's own included."""
    total = 0
    for storage in storages:
        size = storage.itemsize
        for extent in storage.shape:
            size *= extent
        total += size
    return total


def _by_phase_and_pair(moves: Iterable[Move]) -> dict[tuple[str, int, int], tuple[int, int]]:
    found: dict[tuple[str, int, int], tuple[int, int]] = {}
    for move in moves:
        key = move.phase, move.source, move.dest
        messages, nbytes = found.get(key, (0, 0))
        found[key] = messages + move.messages, nbytes + move.nbytes
    return found


def _amounts(cell: tuple[int, int] | None) -> tuple[str, str]:
    return ("–", "–") if cell is None else (f"{cell[0]:,}", format_bytes(cell[1]))


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
        words = "no rank needs anything from another"
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
        notes.append(f"{plan.ranks:,} ranks: {matrices[0].step} neighbours share a row.")
    return notes


def _legend(cell: tuple[float, float]) -> list[LegendItem]:
    if _has_room(cell):
        return [box_item(_TINT, "bytes, and messages", stroke=MESSAGE)]
    return [box_item(MESSAGE, "a square as large as its bytes")]


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
        box_item("#cfe3f1", "elements a rank ever holds, each once", stroke=BLUE),
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

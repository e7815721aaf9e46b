"""The split: which rank writes which part of each array in a phase, and what it reads of others.

Plan -> SVG, a table. Arrays are rectangles, of two dimensions where they have more; a part is
filled for its owner, whose number is in it, and hatched where other ranks read it: the halo.

    S1   B  +-----------+     A  +-----------+
            | 0         |        | 0         |
            |-----------|        |:::: 1 ::::|   read by rank 0 too
            | 1         |        | 1         |
            +-----------+        +-----------+
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from avial_lab.artifact.plan import Footprint, Plan
from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.core.words import count
from avial_lab.plot import svg
from avial_lab.plot.frame import SMALLEST_WIDTH, LegendItem, box_item, framed
from avial_lab.plot.palette import rank_colour, tinted
from avial_lab.runtime.native.ownership import Use

PHASE_LIMIT = 40
CUT_LIMIT = 64
"""Segments of a dimension that are drawn separately; of more, the first are drawn."""

SHAPE_LIMIT = 3000
WIDTH = 1000.0
SIDE = 132.0
BAR = 30.0
HEAD = 34.0
GUTTER = 92.0
GAP = 26.0
THIN = 5.0
_HATCH = 5.0
_MANY = "#374151"

_NOBODY, _EVERY = -2, -1


@dataclass(frozen=True)
class Part:
    """Elements alike: in pixels of their panel, in elements as `box`.

    owner: who writes them here (`written`) or holds what others need; -1 every rank, -2 nobody.
    readers: other ranks that read them. combined: ranks add to them, each in memory of its own.
    """

    x: float
    y: float
    width: float
    height: float
    box: Box
    owner: int
    written: bool
    readers: tuple[int, ...]
    combined: tuple[int, ...]


@dataclass(frozen=True)
class Panel:
    """One array in one phase, its dimensions that are drawn; `cropped`: not all of them is."""

    storage: Storage
    dimensions: tuple[int, ...]
    parts: tuple[Part, ...]
    width: float
    height: float
    uses: frozenset[Use]
    cropped: bool


def split_summary(plan: Plan) -> str:
    """`3 ranks, 2 phases: what a rank writes is filled, what it reads of others is hatched`."""
    phases = len(_by_phase(plan))
    words = f"{count(plan.ranks, 'rank')}, {count(phases, 'phase')}"
    return f"{words}: filled: written by a rank; hatched: also read by others"


def split_svg(plan: Plan, *, title: str = "Split") -> str:
    """A row for each phase, a rectangle for each array in it; at most 300 kB whatever the plan."""
    summary = split_summary(plan)
    phases = _by_phase(plan)
    if not phases:
        words = "no phase is divided" if plan.ranks <= 16 else "drawn for up to 16 ranks"
        return framed("", 0, 0, title=title, summary=words, description=words)
    shapes: list[str] = []
    panels: list[Panel] = []
    y, width, drawn = 0.0, SMALLEST_WIDTH, 0
    for row, names in _alike(plan, phases).items():
        if sum(map(_cost, [*panels, *row])) > SHAPE_LIMIT and drawn:
            break
        drawn += len(names)
        panels += row
        placed, right, bottom = _placed(row, y)
        shapes.append(_row_head(plan, names, phases[names[0]], y, bottom - y))
        shapes += placed
        y, width = bottom + GAP, max(width, right)
    return framed(
        "".join(shapes),
        width,
        y - GAP,
        title=title,
        summary=summary,
        description=f"{summary}. {_described(phases)}",
        legend=_legend(panels),
        notes=_notes(plan, panels, hidden=len(phases) - drawn),
    )


def _alike(plan: Plan, phases: dict[str, list[Footprint]]) -> dict[tuple[Panel, ...], list[str]]:
    """The phases by what is to be drawn of them, in their order: those alike share a row."""
    owners = _owners(plan)
    rows: dict[tuple[Panel, ...], list[str]] = {}
    for name, footprints in list(phases.items())[:PHASE_LIMIT]:
        rows.setdefault(tuple(_panels(plan, footprints, owners)), []).append(name)
    return rows


def _by_phase(plan: Plan) -> dict[str, list[Footprint]]:
    """The footprints of the phases that are divided, in the program's order."""
    phases: dict[str, list[Footprint]] = {phase.phase: [] for phase in plan.phases}
    for each in plan.footprints:
        phases.setdefault(each.phase, []).append(each)
    phases = {name: items for name, items in phases.items() if items}
    alike = {name for name, items in phases.items() if all(item.rank < 0 for item in items)}
    return {name: items for name, items in phases.items() if name not in alike}


def _owners(plan: Plan) -> dict[str, list[tuple[int, Box]]]:
    """Who holds the last version of what some phase writes, by array."""
    found: dict[str, list[tuple[int, Box]]] = {}
    for piece in plan.results:
        found.setdefault(piece.storage, []).append((piece.rank, piece.box))
    return found


# From boxes to parts ------------------------------------------------------------------------------


def _panels(
    plan: Plan, footprints: Sequence[Footprint], owners: dict[str, list[tuple[int, Box]]]
) -> list[Panel]:
    """The arrays of a phase: those it writes first."""
    by_array: dict[str, list[Footprint]] = {}
    for each in footprints:
        by_array.setdefault(each.storage, []).append(each)
    storages = {storage.name: storage for storage in plan.storages}
    names = sorted(by_array, key=lambda name: not any(f.use.writes for f in by_array[name]))
    return [
        _panel(storages[name], by_array[name], owners.get(name, []), plan.ranks) for name in names
    ]


def _panel(
    storage: Storage,
    footprints: Sequence[Footprint],
    owners: Sequence[tuple[int, Box]],
    ranks: int,
) -> Panel:
    shown = _drawn_dimensions(len(storage.shape), footprints)
    boxes = [_flat(each.box, shown) for each in footprints]
    kept = [(rank, _flat(box, shown)) for rank, box in owners]
    extent = _flat(Box.whole(storage.shape), shown).stop
    cuts = [_cuts(extent[d], [*boxes, *(box for _, box in kept)], d) for d in range(2)]
    cropped = any(len(each) > CUT_LIMIT + 1 for each in cuts)
    cuts = [each[: CUT_LIMIT + 1] for each in cuts]
    grid = _Grid([len(each) - 1 for each in cuts])
    for rank, box in kept:
        grid.owner[_slices(cuts, box)] = rank
    for each, box in zip(footprints, boxes, strict=True):
        grid.add(each, _slices(cuts, box), ranks)
    flat = len(storage.shape) < 2
    size = _panel_size(cuts, flat=flat)
    x, y = _pixels(cuts[1], size[0]), _pixels(cuts[0], size[1])
    parts = tuple(_parts(grid, cuts, x, y, len(shown)))
    return Panel(storage, shown, parts, *size, frozenset(f.use for f in footprints), cropped)


def _drawn_dimensions(rank: int, footprints: Sequence[Footprint]) -> tuple[int, ...]:
    """At most two: first those along which the ranks differ, those they write before all."""
    writes = [each for each in footprints if each.use.writes] or list(footprints)

    def differs(d: int, among: Sequence[Footprint]) -> bool:
        return len({(each.box.start[d], each.box.stop[d]) for each in among}) > 1

    ranked = sorted(range(rank), key=lambda d: (not differs(d, writes), not differs(d, footprints)))
    return tuple(sorted(ranked[:2]))


class _Grid:
    """For every stretch x stretch: who owns it, and as bits who reads it and who adds to it."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.owner = np.full(shape, _NOBODY, np.int64)
        self.written = np.zeros(shape, bool)
        self.readers = np.zeros(shape, np.int64)
        self.combined = np.zeros(shape, np.int64)

    def add(self, footprint: Footprint, place: tuple[slice, slice], ranks: int) -> None:
        bits = (1 << ranks) - 1 if footprint.rank < 0 else 1 << footprint.rank
        if footprint.use is Use.READ:
            self.readers[place] |= bits
        elif footprint.use is Use.REDUCE:
            self.combined[place] |= bits
        else:
            self.owner[place] = footprint.rank
            self.written[place] = True

    def state(self, k: int, n: int) -> tuple[int, bool, int, int]:
        """owner, whether it writes, other readers' bits, contributors' bits.

        What nobody writes and one rank alone reads is as good as its own.
        """
        owner, readers = int(self.owner[k, n]), int(self.readers[k, n])
        if owner == _NOBODY and readers.bit_count() == 1:
            owner = readers.bit_length() - 1
        others = readers & ~(1 << owner) if owner >= 0 else 0 if owner == _EVERY else readers
        untouched = not (readers or self.written[k, n] or self.combined[k, n])
        if untouched:
            owner = _NOBODY
        return owner, bool(self.written[k, n]), others, int(self.combined[k, n])


def _parts(
    grid: _Grid, cuts: Sequence[Sequence[int]], x: list[float], y: list[float], shown: int
) -> Iterable[Part]:
    """Neighbours alike as one rectangle: along a row first, then rows with the same runs."""
    rows, columns = grid.owner.shape
    above: list[tuple[int, int, tuple[int, bool, int, int]]] = []
    start = 0
    for k in range(rows + 1):
        runs = _runs(grid, k, columns) if k < rows else []
        if k and runs == above:
            continue
        for low, high, (owner, written, others, combined) in above:
            box = Box((cuts[0][start], cuts[1][low]), (cuts[0][k], cuts[1][high]))
            yield Part(
                x[low], y[start], x[high] - x[low], y[k] - y[start], _deep(box, shown),
                owner, written, _ranks_in(others), _ranks_in(combined),
            )  # fmt: skip
        above, start = runs, k


def _runs(grid: _Grid, k: int, columns: int) -> list[tuple[int, int, tuple[int, bool, int, int]]]:
    runs: list[tuple[int, int, tuple[int, bool, int, int]]] = []
    for n in range(columns):
        state = grid.state(k, n)
        if runs and runs[-1][2] == state:
            runs[-1] = (runs[-1][0], n + 1, state)
        else:
            runs.append((n, n + 1, state))
    return runs


def _ranks_in(bits: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(bits.bit_length()) if bits >> rank & 1)


def _flat(box: Box, shown: Sequence[int]) -> Box:
    """The dimensions shown; where these are less than two, after others of one element."""
    missing = 2 - len(shown)
    start, stop = ([ends[d] for d in shown] for ends in (box.start, box.stop))
    return Box((*[0] * missing, *start), (*[1] * missing, *stop))


def _deep(box: Box, shown: int) -> Box:
    """The dimensions the array really has, of those drawn."""
    return Box(box.start[2 - shown :], box.stop[2 - shown :])


def _cuts(extent: int, boxes: Iterable[Box], d: int) -> list[int]:
    ends = {0, extent}
    for box in boxes:
        ends.update(end for end in (box.start[d], box.stop[d]) if 0 < end < extent)
    return sorted(ends) if extent else [0, 1]


def _slices(cuts: Sequence[Sequence[int]], box: Box) -> tuple[slice, slice]:
    first, second = (
        slice(
            int(np.searchsorted(cuts[d], box.start[d])), int(np.searchsorted(cuts[d], box.stop[d]))
        )
        for d in range(2)
    )
    return first, second


def _panel_size(cuts: Sequence[Sequence[int]], *, flat: bool) -> tuple[float, float]:
    """As wide and tall as the array, within reason, and tall enough for every stretch."""
    rows, columns = (each[-1] - each[0] for each in cuts)
    if flat:
        return (BAR if columns == 1 else max(1.7 * SIDE, THIN * len(cuts[1])), BAR)
    height = min(max(SIDE * rows / columns, 0.5 * SIDE), 1.2 * SIDE)
    return max(SIDE, THIN * len(cuts[1])), max(height, THIN * len(cuts[0]))


def _pixels(cuts: Sequence[int], room: float) -> list[float]:
    """Where each cut is drawn: to scale, but for thin stretches, which stay visible."""
    total = cuts[-1] - cuts[0]
    sizes = [max(THIN, (high - low) / total * room) for low, high in pairwise(cuts)]
    at = [0.0]
    for size in sizes:
        at.append(at[-1] + size * room / sum(sizes))
    return at


# Drawing ------------------------------------------------------------------------------------------


def _placed(panels: Sequence[Panel], top: float) -> tuple[list[str], float, float]:
    """The panels of one phase side by side, in as many lines as they need."""
    shapes: list[str] = []
    x, y, tallest, right = GUTTER, top, 0.0, GUTTER
    for panel in panels:
        room = max(panel.width, svg.text_width(_heading(panel), 11, bold=True))
        if x > GUTTER and x + room > WIDTH:
            x, y, tallest = GUTTER, y + tallest + HEAD + 8, 0.0
        shapes.append(svg.moved(_panel_body(panel), x, y))
        tallest, right = max(tallest, panel.height), max(right, x + room)
        x += room + GAP
    return shapes, right, y + HEAD + tallest


def _heading(panel: Panel) -> str:
    """`A  10 × 8 × 12`, the dimensions that are not drawn in brackets."""
    sizes = [
        str(size) if d in panel.dimensions else f"({size})"
        for d, size in enumerate(panel.storage.shape)
    ]
    return f"{panel.storage.name}  {' × '.join(sizes) or 'one element'}"


def _panel_body(panel: Panel) -> str:
    shapes = [
        svg.text(0, 12, _heading(panel), size=11, bold=True),
        svg.text(0, 26, _use_words(panel.uses), size=10.5, fill=svg.QUIET),
    ]
    shapes += [svg.moved(_part(part, panel.storage.name), 0, HEAD) for part in panel.parts]
    shapes.append(svg.rectangle(0, HEAD, panel.width, panel.height, stroke=svg.QUIET))
    return "".join(shapes)


def _use_words(uses: Iterable[Use]) -> str:
    words = {Use.READ: "read", Use.WRITE: "written", Use.UPDATE: "written", Use.REDUCE: "combined"}
    return " and ".join(
        dict.fromkeys(words[use] for use in sorted(uses, key=lambda use: use.value))
    )


def _part(part: Part, name: str) -> str:
    fill = svg.PAPER
    if part.owner >= 0:
        fill = tinted(rank_colour(part.owner), 0.55 if part.written else 0.2)
    elif part.owner == _EVERY:
        fill = "#e5e7eb"
    shapes = svg.rectangle(
        part.x, part.y, part.width, part.height, fill=fill, stroke=svg.PAPER, stroke_width=0.6
    )
    if part.readers:
        shapes += _hatched(part, part.readers)
    if part.combined:
        shapes += _crossed(part, part.combined)
    label = _label(part)
    if label and part.width >= svg.text_width(label, 11, bold=True) + 4 and part.height >= 13:
        shapes += svg.text(
            part.x + part.width / 2, part.y + part.height / 2 + 4, label, size=11, bold=True,
            anchor="middle", halo=bool(part.readers or part.combined),
        )  # fmt: skip
    return svg.group(shapes, title=f"{name}{part.box}: {part_words(part)}", label="part")


def _label(part: Part) -> str:
    if part.combined:
        return "Σ"
    if part.owner == _EVERY:
        return "all"
    return str(part.owner) if part.owner >= 0 else ""


def part_words(part: Part) -> str:
    """`rank 1 writes it, rank 0 reads it`."""
    words: list[str] = []
    if part.owner == _EVERY:
        words.append("every rank")
    elif part.owner >= 0:
        words.append(f"rank {part.owner} {'writes' if part.written else 'has'} it")
    if part.readers:
        words.append(f"{_rank_words(part.readers)} read{'s' * (len(part.readers) == 1)} it")
    if part.combined:
        words.append(f"{_rank_words(part.combined)} add to it; combined at the end")
    return ", ".join(words) or "not touched"


def _rank_words(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 3 and ranks == tuple(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]}–{ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks))}"


def _crossed(part: Part, ranks: Sequence[int]) -> str:
    return "".join(_hatched(part, ranks, slope=slope, pitch=2 * _HATCH) for slope in (1, -1))


def _hatched(part: Part, ranks: Sequence[int], *, slope: int = 1, pitch: float = _HATCH) -> str:
    """Slanting lines in the colours of up to two ranks by turns, dark for more.

    Drawn line by line: a pattern would need an id, which a page with two pictures has twice.
    """
    colours = [rank_colour(rank) for rank in ranks] if len(ranks) < 3 else [_MANY]
    by_colour: dict[str, list[str]] = {}
    low = (int(part.x + part.y) // int(pitch) + 1) * pitch
    number = 0
    while low < part.x + part.y + part.width + part.height:
        # The line x + y = low within the part; the other slope is its mirror image.
        left = max(part.x, low - part.y - part.height)
        right = min(part.x + part.width, low - part.y)
        if left < right:
            ends = [(left, low - left), (right, low - right)]
            if slope < 0:
                middle = 2 * part.y + part.height
                ends = [(x, middle - y) for x, y in ends]
            (ax, ay), (bx, by) = ends
            path = f"M{svg.number(ax)} {svg.number(ay)}L{svg.number(bx)} {svg.number(by)}"
            by_colour.setdefault(colours[number % len(colours)], []).append(path)
        number += 1
        low += pitch
    return "".join(
        svg.path("".join(paths), stroke=colour, width=1.3) for colour, paths in by_colour.items()
    )


def _cost(panel: Panel) -> int:
    """About how many shapes it takes, hatches as their lines."""
    return sum(
        3 + int((part.width + part.height) / _HATCH / 3) * bool(part.readers or part.combined)
        for part in panel.parts
    )


def _row_head(
    plan: Plan, names: Sequence[str], footprints: Sequence[Footprint], top: float, height: float
) -> str:
    begun = {phase.phase: phase.begun for phase in plan.phases}
    times = {begun.get(name, 0) for name in names}
    often = f"{times.pop():,}×, " if len(times) == 1 else ""
    ranks = {each.rank for each in footprints}
    alone = len(ranks) == 1 and min(ranks) >= 0
    where = f"on rank {min(ranks)}" if alone else f"{len(ranks)} ranks"
    title = svg.shorten(", ".join(names), GUTTER - 18, 13, bold=True)
    shapes = (
        svg.rectangle(0, top - 6, 4, height + 8, fill=svg.LINE)
        + svg.text(12, top + 12, title, size=13, bold=True)
        + svg.text(12, top + 27, f"{often}{where}", size=10.5, fill=svg.QUIET)
    )
    if len(names) > 1:
        words = f"{len(names)} identical phases"
        shapes += svg.text(12, top + 41, words, size=10.5, fill=svg.QUIET)
    return svg.group(shapes, title=", ".join(names[:20]), label="phase")


def _legend(panels: Sequence[Panel]) -> list[LegendItem]:
    parts = [part for panel in panels for part in panel.parts]
    ranks = sorted({part.owner for part in parts if part.owner >= 0})
    items = [
        LegendItem(
            svg.rectangle(0, 1, 26, 12, fill=tinted(rank_colour(rank), 0.55))
            + svg.text(13, 11, str(rank), size=10.5, bold=True, anchor="middle"),
            f"rank {rank}",
        )
        for rank in ranks
    ]
    example = ranks[0] if ranks else 0
    if any(part.owner >= 0 and not part.written for part in parts):
        items.append(
            box_item(tinted(rank_colour(example), 0.2), "paler: owned, not written in this phase")
        )
    if any(part.readers for part in parts):
        items.append(LegendItem(_sample((1,)), "read by another rank, in its colour"))
    if any(len(part.readers) > 2 for part in parts):
        items.append(LegendItem(_sample((0, 1, 2)), "read by three or more other ranks"))
    if any(part.combined for part in parts):
        items.append(LegendItem(_sample((0, 1, 2), cross=True), "Σ partial results, then combined"))
    return items


def _sample(ranks: Sequence[int], *, cross: bool = False) -> str:
    part = Part(0, 1, 26, 12, Box((), ()), _NOBODY, False, (), ())
    lines = _crossed(part, ranks) if cross else _hatched(part, ranks)
    return svg.rectangle(0, 1, 26, 12, fill=svg.PAPER, stroke=svg.LINE) + lines


def _notes(plan: Plan, panels: Sequence[Panel], *, hidden: int) -> list[str]:
    notes = [
        "Thin parts are drawn wider than they are. Each phase is shown in its first iteration."
    ]
    if any(len(panel.storage.shape) > 2 for panel in panels):
        notes.append("Dimensions in brackets are not drawn.")
    if any(panel.cropped for panel in panels):
        notes.append("Of an array in many pieces, only the first are drawn.")
    if hidden:
        notes.append(f"Hidden: {count(hidden, 'more phase')}.")
    if len(_by_phase(plan)) < len({each.phase for each in plan.footprints}):
        notes.append("Phases that every rank executes in full are not drawn.")
    return notes


def _described(phases: dict[str, list[Footprint]]) -> str:
    parts: list[str] = []
    for name, items in list(phases.items())[:4]:
        written = [f"rank {f.rank} writes {f.storage}{f.box}" for f in items if f.use.writes]
        parts.append(f"{name}: {'; '.join(written[:6])}")
    return ". ".join(parts)

"""What every picture has around it: a title, a summary, a legend, and what is not shown.

A picture's body -> the finished card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from avial_lab.machine.devices import Look
from avial_lab.plot import svg

HEADER = 62.0
LEGEND_ROW = 22.0
SMALLEST_WIDTH = 520.0


@dataclass(frozen=True)
class LegendItem:
    """`mark` draws itself in a box 26 x 14 whose corner is (0, 0)."""

    mark: str
    words: str


def device_item(look: Look) -> LegendItem:
    """The look of a device as a small box with its letter."""
    colours = {"fill": look.tint, "stroke": look.colour, "dash": look.dash}
    if look.cut_corners:
        corners = (
            (4.0, 0.0),
            (22.0, 0.0),
            (26.0, 4.0),
            (26.0, 10.0),
            (22.0, 14.0),
            (4.0, 14.0),
            (0.0, 10.0),
            (0.0, 4.0),
        )
        box = svg.polygon(corners, stroke_width=1.4, **colours)
    else:
        box = svg.rectangle(0, 0, 26, 14, radius=4, stroke_width=1.4, **colours)
    return LegendItem(
        box + svg.text(13, 11, look.letter, size=11, fill=svg.INK, bold=True, anchor="middle"),
        look.name,
    )


def line_item(stroke: str, words: str, *, width: float = 1.5, dash: str = "") -> LegendItem:
    """A line with an arrow head."""
    return LegendItem(
        svg.arrow(((0, 7), (8, 7), (18, 7), (26, 7)), stroke=stroke, width=width, dash=dash), words
    )


def box_item(fill: str, words: str, *, stroke: str = "none", dash: str = "") -> LegendItem:
    """A plain bar, as in the timeline."""
    return LegendItem(svg.rectangle(0, 1, 26, 12, fill=fill, stroke=stroke, dash=dash), words)


def framed(
    body: str,
    width: float,
    height: float,
    *,
    title: str,
    summary: str,
    description: str,
    legend: Sequence[LegendItem] = (),
    notes: Sequence[str] = (),
) -> str:
    """The card: title and summary, `body` (its own origin at its top left, `width` x `height`),
    legend, notes.

    `notes` say what the picture leaves out; they are part of it, so that they travel with it.
    """
    needed = max(svg.text_width(title, 17, bold=True), svg.text_width(summary, 12))
    inner = max(width, SMALLEST_WIDTH, min(needed, 900.0))
    wrapped = [line for note in notes for line in wrap(note, inner, 12)]
    legend_shapes, legend_rows = _legend(legend, inner)
    told = wrap(summary, inner, 12)
    top = svg.MARGIN + HEADER + 17 * (len(told) - 1)
    under = top + height + 14
    legend_top = under + (18 * len(wrapped) + 8 if wrapped else 0)
    total = legend_top + legend_rows * LEGEND_ROW + svg.MARGIN - (8 if legend_rows else 0)
    left = svg.MARGIN + (inner - width) / 2
    shapes = [
        svg.text(
            svg.MARGIN,
            svg.MARGIN + 16,
            svg.shorten(title, inner, 17, bold=True),
            size=17,
            bold=True,
        ),
        *(
            svg.text(svg.MARGIN, svg.MARGIN + 37 + 17 * k, words, size=12, fill=svg.QUIET)
            for k, words in enumerate(told)
        ),
        svg.moved(body, left, top),
        *(
            svg.text(svg.MARGIN, under + 18 * k + 10, words, size=12, fill=svg.INK, bold=True)
            for k, words in enumerate(wrapped)
        ),
        svg.moved(legend_shapes, svg.MARGIN, legend_top),
    ]
    return svg.card(
        inner + 2 * svg.MARGIN, total, "".join(shapes), title=title, description=description
    )


def _legend(items: Sequence[LegendItem], width: float) -> tuple[str, int]:
    """The items in as many rows as they need, and that number."""
    shapes: list[str] = []
    x, row = 0.0, 0
    for item in items:
        needed = 34 + svg.text_width(item.words, 12) + 20
        if x and x + needed - 20 > width:
            x, row = 0.0, row + 1
        words = svg.text(34, 11.5, item.words, size=12, fill=svg.QUIET)
        shapes.append(svg.moved(item.mark + words, x, row * LEGEND_ROW))
        x += needed
    return "".join(shapes), row + 1 if items else 0


def wrap(words: str, width: float, size: float) -> list[str]:
    """`words` in lines no wider than `width` (bold)."""
    lines: list[str] = []
    for word in words.split(" "):
        if lines and svg.text_width(f"{lines[-1]} {word}", size, bold=True) <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines.append(word)
    return lines

"""The few SVG shapes our pictures are made of, escaped and sized.

Numbers and names -> SVG text. No ids, no classes, no scripts, no links: two pictures on a page
cannot disturb each other. Every picture is a white card, so it reads the same on a light and on
a dark page.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable

from avial_lab.core.words import escape

FONT = "Helvetica,Arial,sans-serif"
INK = "#1f2937"
QUIET = "#4b5563"
LINE = "#d1d5db"
BAND = "#f3f4f6"
PAPER = "#ffffff"
MARGIN = 20.0

# The wider of Helvetica (Adobe's metrics) and DejaVu Sans, which stands for it where nothing else
# is installed: thousandths of an em, for the characters 32 to 126.
_WIDTHS = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 556,
    1015, 684, 686, 722, 770, 667, 611, 778, 752, 295, 500, 667, 557, 863, 748, 787,
    667, 787, 722, 667, 611, 732, 684, 989, 685, 667, 685, 390, 337, 390, 838, 556,
    500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
    635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
)  # fmt: skip


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Width in pixels at the most, at `size` pixels, in the fonts that stand for Helvetica."""
    return sum(map(_advance, text)) / 1000 * size * (1.12 if bold else 1.0)


def _advance(char: str) -> int:
    if 32 <= ord(char) <= 126:
        return _WIDTHS[ord(char) - 32]
    if unicodedata.combining(char):
        return 0
    return 1000 if unicodedata.east_asian_width(char) in "WF" else 838


_MOST_SHOWN = 1_000
"""Characters at either end of a text that is shortened: no picture has room for more."""


def shorten(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """`text` cut in the middle to fit `width` pixels; names often differ only at their end.

    >>> shorten("update_left_halo_of_block_17", 110, 12)
    'update_l…lock_17'
    """
    if len(text) > 2 * _MOST_SHOWN:  # what is in its middle is never shown
        text = f"{text[:_MOST_SHOWN]}…{text[-_MOST_SHOWN:]}"
    elif text_width(text, size, bold=bold) <= width:
        return text

    def cut(keep: int) -> str:
        head = (keep + 1) // 2
        return f"{text[:head]}…{text[len(text) - keep + head :]}"

    # The more is kept, the wider it is.
    wide = bisect_right(
        range(3, len(text)), width, key=lambda keep: text_width(cut(keep), size, bold=bold)
    )
    return cut(wide + 2) if wide else text[:1] + "…"


def number(value: float) -> str:
    """A coordinate: one decimal, none where it is zero.

    >>> number(3.0), number(2.25), number(-0.01)
    ('3', '2.2', '0')
    """
    rounded = f"{value:.1f}"
    return "0" if rounded == "-0.0" else rounded.removesuffix(".0")


def text(
    x: float,
    y: float,
    content: str,
    *,
    size: float = 12,
    fill: str = INK,
    bold: bool = False,
    anchor: str = "start",
    halo: bool = False,
) -> str:
    """One line of text with its baseline at y; a halo keeps it readable where it crosses a line."""
    extra = ' font-weight="bold"' if bold else ""
    extra += f' text-anchor="{anchor}"' if anchor != "start" else ""
    extra += (
        f' stroke="{PAPER}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
        if halo
        else ""
    )
    return (
        f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" fill="{fill}"{extra}>'
        f"{escape(content)}</text>"
    )


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str = "none",
    stroke: str = "none",
    stroke_width: float = 1,
    radius: float = 0,
    dash: str = "",
) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        + (f' rx="{number(radius)}"' if radius else "")
        + f' fill="{fill}"{_stroke(stroke, stroke_width, dash)}/>'
    )


def path(
    commands: str, *, fill: str = "none", stroke: str = "none", width: float = 1, dash: str = ""
) -> str:
    """Any shape, or many at once; `commands` as SVG has them."""
    return f'<path d="{commands}" fill="{fill}"{_stroke(stroke, width, dash)}/>'


def circle(
    x: float, y: float, radius: float, *, fill: str = "none", stroke: str = "none",
    stroke_width: float = 1,
) -> str:  # fmt: skip
    return (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}"'
        f"{_stroke(stroke, stroke_width, '')}/>"
    )


def polygon(
    points: Iterable[tuple[float, float]],
    *,
    fill: str,
    stroke: str = "none",
    stroke_width: float = 1,
    dash: str = "",
) -> str:
    corners = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return f'<polygon points="{corners}" fill="{fill}"{_stroke(stroke, stroke_width, dash)}/>'


def line(
    x1: float,
    y1: float,
    x2: float,
    y2: float,
    *,
    stroke: str = LINE,
    width: float = 1,
    dash: str = "",
) -> str:
    return (
        f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
        f"{_stroke(stroke, width, dash)}/>"
    )


def arrow(
    curve: tuple[tuple[float, float], ...], *, stroke: str, width: float = 1.5, dash: str = ""
) -> str:
    """A chain of cubic Béziers (1 + 3k points) with an arrow head at its end, drawn without a
    `<marker>`: no id.
    """
    length = 5 + 2 * width
    (cx, cy), (ex, ey) = _before_end(curve), curve[-1]
    span = ((ex - cx) ** 2 + (ey - cy) ** 2) ** 0.5 or 1.0
    ux, uy = (ex - cx) / span, (ey - cy) / span
    neck = (ex - ux * length * 0.8, ey - uy * length * 0.8)
    points = (*curve[:-1], neck)
    path = f"M{_pair(points[0])}" + "".join(
        f"C{_pair(points[k])} {_pair(points[k + 1])} {_pair(points[k + 2])}"
        for k in range(1, len(points) - 1, 3)
    )
    bx, by, half = ex - ux * length, ey - uy * length, length * 0.42
    head = ((ex, ey), (bx - uy * half, by + ux * half), (bx + uy * half, by - ux * half))
    return f'<path d="{path}" fill="none"{_stroke(stroke, width, dash)}/>' + polygon(
        head, fill=stroke
    )


def group(body: str, *, title: str = "", label: str = "") -> str:
    """Shapes that belong together; `title` is the tooltip where the picture is in a page of
    its own.

    `label` names the kind of thing (`task`, `edge`), as data and not as a class: no page's style
    can take hold of it.
    """
    mark = f' data-kind="{escape(label)}"' if label else ""
    tip = f"<title>{escape(title)}</title>" if title else ""
    return f"<g{mark}>{tip}{body}</g>"


def moved(body: str, x: float, y: float) -> str:
    """`body` with its origin at (x, y)."""
    return f'<g transform="translate({number(x)} {number(y)})">{body}</g>'


def card(width: float, height: float, body: str, *, title: str, description: str) -> str:
    """The picture: `body` on a white card with a thin border; title and description for who
    cannot see it.
    """
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" '
        f'width="{number(width)}" height="{number(height)}" '
        f'viewBox="0 0 {number(width)} {number(height)}" role="img" font-family="{FONT}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        + rectangle(0.5, 0.5, width - 1, height - 1, fill=PAPER, stroke=LINE, radius=8)
        + body
        + "</svg>"
    )


def _stroke(stroke: str, width: float, dash: str) -> str:
    if stroke == "none":
        return ""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f' stroke="{stroke}" stroke-width="{number(width)}"{dashes}'


def _pair(point: tuple[float, float]) -> str:
    return f"{number(point[0])} {number(point[1])}"


def _before_end(curve: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    """The last control point that is not the end itself: it gives the direction of the head."""
    return next((point for point in reversed(curve[:-1]) if point != curve[-1]), curve[0])

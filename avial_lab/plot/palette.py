"""How a device looks: colour, and what says the same without colour (outline, letter, dashes).

Device or target -> Look. Colours are Okabe and Ito's, chosen to be distinguishable with any colour
vision.
"""

from __future__ import annotations

from collections.abc import Iterable

from avial_lab.machine.devices import KINDS, Look
from avial_lab.machine.topology import Device, Target
from avial_lab.plot import svg

BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
SKY = "#56b4e9"
ORANGE = "#e69f00"
GREY = "#6b7280"

RANKS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, "#8a7f00", GREY)
"""Of ranks 0 to 7, then from the start again: a number beside them always names the rank."""

TASKS = (
    *(BLUE, VERMILION, "#7a4fb5", "#8a7f00", PURPLE, "#00798c", "#9c1c4b", "#5c6b1f"),
    *("#3d5a98", "#b5651d"),
)
"""Of tasks in the order of the program, then from the start again: none is a message's or a
copy's. Names, rows and tables say the same.
"""

MESSAGE = GREEN
"""Everything that moves between ranks: edges, arrows, sends."""


def outline(
    look: Look, x: float, y: float, width: float, height: float, *, bold: bool = False
) -> str:
    """The box of a task, with a strip at its left that carries the letter."""
    strip = 18.0
    stroke, thick = (svg.INK, 3.2) if bold else (look.colour, 1.6)
    if not look.cut_corners:
        fill = svg.rectangle(x, y, width, height, fill=look.tint, radius=7)
        edge = svg.rectangle(
            x, y, width, height, stroke=stroke, stroke_width=thick, radius=7, dash=look.dash
        )
        start, flat, tall = (
            f"{svg.number(x + strip)} {svg.number(y)}",
            svg.number(strip - 7),
            svg.number(height - 14),
        )
        left = (
            f'<path d="M{start}h-{flat}a7 7 0 0 0 -7 7v{tall}a7 7 0 0 0 7 7h{flat}z" '
            f'fill="{look.colour}"/>'
        )
    else:
        c = 8.0
        corners = (
            (x + c, y),
            (x + width - c, y),
            (x + width, y + c),
            (x + width, y + height - c),
            (x + width - c, y + height),
            (x + c, y + height),
            (x, y + height - c),
            (x, y + c),
        )
        fill = svg.polygon(corners, fill=look.tint)
        edge = svg.polygon(corners, fill="none", stroke=stroke, stroke_width=thick, dash=look.dash)
        left = svg.polygon(
            (
                (x + c, y),
                (x + strip, y),
                (x + strip, y + height),
                (x + c, y + height),
                (x, y + height - c),
                (x, y + c),
            ),
            fill=look.colour,
        )
    letter = svg.text(
        x + strip / 2,
        y + height / 2 + 4.5,
        look.letter,
        size=13,
        fill=ink_on(look.colour),
        bold=True,
        anchor="middle",
    )
    return fill + left + edge + letter


LOOKS = tuple(kind.look for kind in KINDS)
"""Of all kinds of devices, as legends list them."""


def look_of(place: Device | Target) -> Look:
    """A device's look; a target's where nothing is placed yet."""
    return place.kind.look


def rank_colour(rank: int) -> str:
    """The colour of a rank, which is never the only sign of it."""
    return RANKS[rank % len(RANKS)]


def task_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each task, neighbours in the program's order apart.

    >>> task_colours(["a", "b", "a"]) == {"a": TASKS[0], "b": TASKS[1]}
    True
    """
    distinct = dict.fromkeys(names)
    return {name: TASKS[k % len(TASKS)] for k, name in enumerate(distinct)}


def tinted(colour: str, amount: float) -> str:
    """`colour` on white paper, from 0 (paper) to 1 (itself).

    >>> tinted("#0072b2", 0.0), tinted("#0072b2", 0.5)
    ('#ffffff', '#80b8d8')
    """
    channels = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (c - 255) * amount):02x}" for c in channels)


def ink_on(colour: str) -> str:
    """Black or white, whichever is read better on `colour`.

    >>> ink_on(BLUE), ink_on(VERMILION)
    ('#ffffff', '#000000')
    """
    return max(svg.PAPER, "#000000", key=lambda ink: contrast(ink, colour))


def contrast(first: str, second: str) -> float:
    """WCAG 2's contrast ratio of two `#rrggbb` colours, from 1 to 21.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

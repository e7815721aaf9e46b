"""How a contestant looks in a picture: a shape and a colour by its family, hollow with fast math.

Name -> a mark around a point. Shapes say the same as colours.
"""

from __future__ import annotations

from avial_lab.benchmarks.table import ALONE, OURS
from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem
from avial_lab.plot.palette import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION

_FAMILIES = {
    OURS: (BLUE, "star"),
    "gcc": (ORANGE, "circle"),
    "clang": (VERMILION, "square"),
    "numba": (GREEN, "triangle"),
    "numpy": (PURPLE, "diamond"),
    "scipy": (PURPLE, "square"),
    "mpi4py": (PURPLE, "diamond"),
    "dace": (SKY, "triangle"),
}
_OTHERS = (GREY, "circle")

_CORNERS: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle": ((0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
    "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
    "star": (
        (0, -2), (0.48, -0.65), (1.9, -0.62), (0.77, 0.25), (1.18, 1.62),
        (0, 0.8), (-1.18, 1.62), (-0.77, 0.25), (-1.9, -0.62), (-0.48, -0.65),
    ),
}  # fmt: skip

_RADIUS = 4.2


def mark(contestant: str, x: float, y: float, *, radius: float = _RADIUS) -> str:
    """The contestant's mark with its middle at (x, y)."""
    family, _, rest = contestant.partition("-")
    colour, shape = _FAMILIES.get(OURS if contestant == ALONE else family, _OTHERS)
    hollow = "fast" in rest or contestant == ALONE
    fill = svg.PAPER if hollow else colour
    if shape == "circle":
        return svg.circle(x, y, radius, fill=fill, stroke=colour, stroke_width=1.6)
    corners = ((x + dx * radius, y + dy * radius) for dx, dy in _CORNERS[shape])
    return svg.polygon(corners, fill=fill, stroke=colour, stroke_width=1.6)


def legend_item(contestant: str) -> LegendItem:
    return LegendItem(mark(contestant, 13, 7), contestant)

"""The speed-up by ranks as a curve, beside the one that twice the ranks would give twice of.

Scaling -> SVG.
"""

from __future__ import annotations

from itertools import pairwise
from math import ceil, log2

from avial_lab.core.words import count
from avial_lab.planning.scaling import Point, Scaling
from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem, framed
from avial_lab.plot.palette import RANKS

_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 20.0, 10.0, 34.0
_WIDTH, _HEIGHT = 620.0, 300.0


def scaling_svg(scaling: Scaling) -> str:
    """Both axes are logarithmic, so that the ideal is a straight line."""
    points = scaling.points
    first, last = log2(points[0].ranks), log2(points[-1].ranks)
    across = max(last - first, 1.0)
    speed = [log2(max(scaling.speedup(point), 1e-9)) for point in points]
    low, high = min(0.0, *speed), max(1.0, ceil(max(speed)))

    def at(ranks: float, speedup: float) -> tuple[float, float]:
        x = _LEFT + (ranks - first) / across * (_WIDTH - _LEFT - _RIGHT)
        y = _TOP + (high - speedup) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)
        return x, y

    shapes = [_grid(point, at(log2(point.ranks), low)) for point in points]
    shapes += [_level(value, at(first, value)[1]) for value in _levels(low, high)]
    end = min(first + high, last)
    shapes.append(svg.line(*at(first, 0), *at(end, end - first), stroke=svg.QUIET, dash="5 3"))
    places = [at(log2(p.ranks), value) for p, value in zip(points, speed, strict=True)]
    shapes += [svg.line(*a, *b, stroke=RANKS[0], width=2) for a, b in pairwise(places)]
    shapes += [_mark(scaling, p, place) for p, place in zip(points, places, strict=True)]
    shapes.append(svg.text(_WIDTH / 2, _HEIGHT - 2, "ranks", size=11, anchor="middle"))
    legend = (
        LegendItem(svg.line(0, 7, 26, 7, stroke=RANKS[0], width=2), "speed-up, simulated"),
        LegendItem(svg.line(0, 7, 26, 7, stroke=svg.QUIET, dash="5 3"), "twice for twice"),
    )
    return framed(
        "".join(shapes),
        _WIDTH,
        _HEIGHT,
        title="Speed-up by ranks",
        summary=scaling_summary(scaling),
        description="; ".join(_words(scaling, point) for point in points),
        legend=legend,
        notes=[scaling.why],
    )


def scaling_summary(scaling: Scaling) -> str:
    """`on a laptop, simulated: fastest on 4 ranks, 1.2 ms, 2.9 times 1 rank`."""
    best = scaling.best
    return (
        f"on {scaling.label}, simulated: fastest on {count(best.ranks, 'rank')}, "
        f"{best.took}, {scaling.speedup(best):.2g} times "
        f"{count(scaling.points[0].ranks, 'rank')}"
    )


def _words(scaling: Scaling, point: Point) -> str:
    return f"{count(point.ranks, 'rank')}: {point.took}, speed-up {scaling.speedup(point):.2f}"


def _levels(low: float, high: float) -> list[float]:
    """Powers of two, at most ten."""
    step = max(1, ceil((high - low) / 10))
    return [float(value) for value in range(ceil(low), int(high) + 1, step)]


def _level(value: float, y: float) -> str:
    words = f"{2**value:g}"
    line = svg.line(_LEFT, y, _WIDTH - _RIGHT, y)
    return line + svg.text(_LEFT - 6, y + 4, words, size=11, anchor="end")


def _grid(point: Point, foot: tuple[float, float]) -> str:
    x, y = foot
    line = svg.line(x, _TOP, x, y)
    return line + svg.text(x, y + 15, f"{point.ranks:,}", size=11, anchor="middle")


def _mark(scaling: Scaling, point: Point, place: tuple[float, float]) -> str:
    return svg.group(svg.circle(*place, 4.5, fill=RANKS[0]), title=_words(scaling, point))

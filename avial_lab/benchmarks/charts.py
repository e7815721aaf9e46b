"""A race in pictures: how much faster we are than each contestant, and how near to the roof.

Rounds with the same ranks, threads and element type -> SVG. Both scales are logarithmic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from avial_lab.benchmarks.styles import legend_item, mark
from avial_lab.benchmarks.table import OURS, Result, Round, contestants
from avial_lab.machine.roofline import Ceilings
from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem, framed
from avial_lab.plot.palette import GREEN, VERMILION
from avial_lab.plot.run.plane import HEIGHT, WIDTH, Axis, Plane

_ROW = 20.0
_NAMES = 110.0  # pixels for the kernels' names


# -- ratios ----------------------------------------------------------------------------------------


def ratios_svg(rounds: Sequence[Round]) -> str:
    """A row for each kernel: our time is 1, every contestant stands at its time over ours; the bar
    goes to the best peer.
    """
    shown = [raced for raced in rounds if raced.ours is not None]
    ratios = [
        r for raced in shown for result in raced.home if (r := raced.ratio_to(result)) is not None
    ]
    low = 2.0 ** math.floor(math.log2(min([*ratios, 0.5])))
    high = 2.0 ** math.ceil(math.log2(max([*ratios, 2.0])))
    axis = Axis(low, high, _NAMES, WIDTH - 12)
    height = _ROW * len(shown) + 34
    body = [_ratio_axis(axis, height - 26)]
    for number, raced in enumerate(shown):
        body.append(_ratio_row(raced, axis, 10 + _ROW * (number + 0.5)))
    faults = [raced.kernel for raced in rounds if raced.ours is None]
    return framed(
        "".join(body),
        WIDTH,
        height,
        title=f"Every contestant's time over ours: {_group(rounds)}",
        summary="right of the line is slower than us, left is faster; bars end at the best peer",
        description="; ".join(_ratio_words(raced) for raced in shown),
        legend=[legend_item(name) for name in contestants(shown)],
        notes=[f"no time for avial_lab: {', '.join(faults)}"] if faults else (),
    )


def _ratio_axis(axis: Axis, bottom: float) -> str:
    parts = [
        svg.line(axis.at(tick), 4, axis.at(tick), bottom)
        + svg.text(
            axis.at(tick), bottom + 16, _times(tick), size=11, fill=svg.QUIET, anchor="middle"
        )
        for tick in axis.ticks(2)
    ]
    return "".join(parts) + svg.line(axis.at(1), 4, axis.at(1), bottom, stroke=svg.INK, width=2)


def _ratio_row(raced: Round, axis: Axis, y: float) -> str:
    parts = [svg.text(_NAMES - 12, y + 4, raced.kernel, size=12, anchor="end")]
    if raced.ratio is not None:
        x1, x2 = sorted((axis.at(1), axis.at(raced.ratio)))
        colour = GREEN if raced.ratio >= 1 else VERMILION
        bar = svg.rectangle(x1, y - 3, max(x2 - x1, 0.5), 6, fill=colour)
        parts.append(svg.group(bar, title=_ratio_words(raced)))
    # Ourselves last, on top.
    for result in sorted(raced.home, key=lambda result: result.contestant == OURS):
        ratio = raced.ratio_to(result)
        if ratio is not None:
            tip = f"{raced.kernel}, {result.contestant}: {_time(result)}, {ratio:.2f} × ours"
            parts.append(svg.group(mark(result.contestant, axis.at(ratio), y), title=tip))
    return "".join(parts)


def _ratio_words(raced: Round) -> str:
    if raced.ratio is None or raced.best is None:
        return f"{raced.kernel}: no peer"
    return f"{raced.kernel}: {raced.ratio:.2f} × {raced.best.contestant}, the best peer"


# -- the roofline ----------------------------------------------------------------------------------


def roofline_svg(rounds: Sequence[Round], ceilings: Ceilings) -> str:
    """Speed over arithmetic intensity, both by the kernels' own counts, under the machine's
    ceilings (Williams, Waterman, Patterson 2009).
    """
    shown = [raced for raced in rounds if raced.home and raced.flops]
    points = [(raced, result) for raced in shown for result in raced.home]
    points.sort(key=lambda point: point[1].contestant == OURS)
    speeds = [raced.flops / result.median_s for raced, result in points]
    plane = Plane.around([raced.intensity for raced in shown], speeds, ceilings)
    body = plane.to_svg()
    body += "".join(_point(raced, result, plane) for raced, result in points)
    body += _names(shown, plane)
    return framed(
        body,
        WIDTH,
        HEIGHT,
        title=f"Roofline: {_group(rounds)}",
        summary=f"{ceilings}",
        description="; ".join(_point_words(raced, result) for raced, result in points[-40:]),
        legend=[
            *(legend_item(name) for name in contestants(shown)),
            LegendItem(svg.line(0, 7, 26, 7, stroke=svg.INK, width=2), "memory and arithmetic"),
            LegendItem(svg.line(0, 7, 26, 7, stroke=svg.QUIET, dash="5 3"), "caches"),
        ],
        notes=["Traffic is counted as if each sweep loaded its arrays from memory: "
               "a point above the memory roof was served by caches."],
    )  # fmt: skip


def _point(raced: Round, result: Result, plane: Plane) -> str:
    place = plane.at(raced.intensity, raced.flops / result.median_s)
    return svg.group(mark(result.contestant, *place), title=_point_words(raced, result))


def _point_words(raced: Round, result: Result) -> str:
    share = raced.roofline(result)
    share_words = "" if share is None else f", {share:.0%} of the roofline"
    speed = raced.flops / result.median_s / 1e9
    return f"{raced.kernel}, {result.contestant}: {speed:.3g} GFLOP/s{share_words}"


def _names(rounds: Sequence[Round], plane: Plane) -> str:
    """The kernels' names beside our own points, as far as there is room; each point's tooltip has
    it anyway.
    """
    taken: list[tuple[float, float, float, float]] = []
    parts: list[str] = []
    for raced in rounds:
        if raced.ours is None:
            continue
        x, y = plane.at(raced.intensity, raced.flops / raced.ours.median_s)
        left, top = x + 9, y - 6
        box = (left, top, left + svg.text_width(raced.kernel, 11), top + 12)
        if box[2] > plane.x.end or any(_meet(box, other) for other in taken):
            continue
        taken.append(box)
        parts.append(svg.text(left, top + 10, raced.kernel, size=11, halo=True))
    return "".join(parts)


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return (
        one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    )  # fmt: skip


def _group(rounds: Sequence[Round]) -> str:
    first = rounds[0]
    ranks = f"{first.ranks} rank{'s' if first.ranks > 1 else ''}"
    return f"{first.element}, {ranks}, {first.threads} thread{'s' if first.threads > 1 else ''}"


def _times(value: float) -> str:
    return f"{value:g} ×" if value >= 1 else f"1/{1 / value:g} ×"


def _time(result: Result) -> str:
    return f"{result.median_s * 1e3:.3f} ms"

"""A race in pictures: how much faster we are than each contestant, and how near to the roof.

Heats with the same ranks, threads and element type -> SVG. Both scales are logarithmic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem, framed
from avial_lab.plot.palette import GREEN, VERMILION
from avial_lab.race.ceilings import Ceilings
from avial_lab.race.looks import legend_item, mark
from avial_lab.race.table import OURS, Heat, Lane, contestants

_WIDTH = 860.0
_ROW = 20.0
_NAMES = 110.0  # pixels for the kernels' names
_HEIGHT = 470.0


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, a power of ten or of two apart each tick, over so many pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value stands; what lies outside stands at the end."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, base: int) -> list[float]:
        first = math.ceil(math.log(self.low, base) - 1e-9)
        last = math.floor(math.log(self.high, base) + 1e-9)
        step = max((last - first) // 10 + 1, 1)
        return [float(base) ** k for k in range(first, last + 1, step)]


# -- ratios ----------------------------------------------------------------------------------------


def ratios_svg(heats: Sequence[Heat]) -> str:
    """A row for each kernel: our time is 1, every contestant stands at its time over ours; the bar
    goes to the best peer.
    """
    shown = [heat for heat in heats if heat.ours is not None]
    ratios = [r for heat in shown for lane in heat.home if (r := heat.ratio_to(lane)) is not None]
    low = 2.0 ** math.floor(math.log2(min([*ratios, 0.5])))
    high = 2.0 ** math.ceil(math.log2(max([*ratios, 2.0])))
    axis = Axis(low, high, _NAMES, _WIDTH - 12)
    height = _ROW * len(shown) + 34
    body = [_ratio_axis(axis, height - 26)]
    for number, heat in enumerate(shown):
        body.append(_ratio_row(heat, axis, 10 + _ROW * (number + 0.5)))
    faults = [heat.kernel for heat in heats if heat.ours is None]
    return framed(
        "".join(body),
        _WIDTH,
        height,
        title=f"Every contestant's time over ours: {_group(heats)}",
        summary="right of the line is slower than us, left is faster; bars end at the best peer",
        description="; ".join(_ratio_words(heat) for heat in shown),
        legend=[legend_item(name) for name in contestants(shown)],
        notes=[f"without our own time: {', '.join(faults)}"] if faults else (),
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


def _ratio_row(heat: Heat, axis: Axis, y: float) -> str:
    parts = [svg.text(_NAMES - 12, y + 4, heat.kernel, size=12, anchor="end")]
    if heat.ratio is not None:
        x1, x2 = sorted((axis.at(1), axis.at(heat.ratio)))
        colour = GREEN if heat.ratio >= 1 else VERMILION
        bar = svg.rectangle(x1, y - 3, max(x2 - x1, 0.5), 6, fill=colour)
        parts.append(svg.group(bar, title=_ratio_words(heat)))
    # Ourselves last, on top.
    for lane in sorted(heat.home, key=lambda lane: lane.contestant == OURS):
        ratio = heat.ratio_to(lane)
        if ratio is not None:
            tip = f"{heat.kernel}, {lane.contestant}: {_time(lane)}, {ratio:.2f} × ours"
            parts.append(svg.group(mark(lane.contestant, axis.at(ratio), y), title=tip))
    return "".join(parts)


def _ratio_words(heat: Heat) -> str:
    if heat.ratio is None or heat.best is None:
        return f"{heat.kernel}: no peer"
    return f"{heat.kernel}: {heat.ratio:.2f} × {heat.best.contestant}, the best peer"


# -- the roofline ----------------------------------------------------------------------------------


def roofline_svg(heats: Sequence[Heat], ceilings: Ceilings) -> str:
    """Speed over arithmetic intensity, both by the kernels' own counts, under the machine's
    ceilings (Williams, Waterman, Patterson 2009).
    """
    shown = [heat for heat in heats if heat.home and heat.flops]
    across = [heat.intensity for heat in shown]
    speeds = [heat.flops / lane.median_s for heat in shown for lane in heat.home]
    ridge = ceilings.flops_per_s / ceilings.bytes_per_s
    x = Axis(_below(min([*across, ridge / 8])), _above(max([*across, ridge * 8])), 64, _WIDTH - 12)
    y = Axis(
        _below(min([*speeds, ceilings.flops_per_s / 100])),
        _above(max([*speeds, ceilings.flops_per_s * 1.2])),
        _HEIGHT - 44,
        8,
    )
    body = _grid(x, y) + _roof(x, y, ceilings)
    points = [(heat, lane) for heat in shown for lane in heat.home]
    points.sort(key=lambda point: point[1].contestant == OURS)
    body += "".join(_point(heat, lane, x, y) for heat, lane in points)
    body += _names(shown, x, y)
    return framed(
        body,
        _WIDTH,
        _HEIGHT,
        title=f"Roofline: {_group(heats)}",
        summary=f"{ceilings}",
        description="; ".join(_point_words(heat, lane) for heat, lane in points[-40:]),
        legend=[
            *(legend_item(name) for name in contestants(shown)),
            LegendItem(svg.line(0, 7, 26, 7, stroke=svg.INK, width=2), "memory and arithmetic"),
            LegendItem(svg.line(0, 7, 26, 7, stroke=svg.QUIET, dash="5 3"), "caches"),
        ],
        notes=["Traffic is counted as if no sweep over the arrays left anything in a cache for the "
               "next: what caches hold stands above the roof of memory."],
    )  # fmt: skip


def _grid(x: Axis, y: Axis) -> str:
    parts = [
        svg.line(x.at(tick), y.end, x.at(tick), y.start)
        + svg.text(x.at(tick), y.start + 16, _plain(tick), size=11, fill=svg.QUIET, anchor="middle")
        for tick in x.ticks(10)
    ]
    parts += [
        svg.line(x.start, y.at(tick), x.end, y.at(tick))
        + svg.text(x.start - 8, y.at(tick) + 4, _plain(tick / 1e9), size=11, fill=svg.QUIET,
                   anchor="end")
        for tick in y.ticks(10)
    ]  # fmt: skip
    middle = (x.start + x.end) / 2
    words = svg.text(middle, y.start + 36, "FLOP for each byte", size=12, anchor="middle")
    return "".join(parts) + words + svg.text(0, y.end - 12, "GFLOP/s", size=12)


def _roof(x: Axis, y: Axis, ceilings: Ceilings) -> str:
    """Every slanted ceiling ends at the flat one."""
    peak = ceilings.flops_per_s
    parts: list[str] = []
    height = 8.0
    levels = [(f"L{level}", rate) for level, rate in ceilings.cache_bytes_per_s]
    for name, rate in [*levels, ("memory", ceilings.bytes_per_s)]:
        memory = name == "memory"
        left, right = max(x.low, y.low / rate), min(peak / rate, x.high)
        if left >= right:
            continue
        stroke, width, dash = (svg.INK, 2.0, "") if memory else (svg.QUIET, 1.2, "5 3")
        x1, y1 = x.at(left), y.at(left * rate)
        x2, y2 = x.at(right), y.at(right * rate)
        parts.append(svg.line(x1, y1, x2, y2, stroke=stroke, width=width, dash=dash))
        words = f"{name} {rate / 1e9:.0f} GB/s"
        parts.append(
            svg.text(x2, y2 - height, words, size=11, fill=svg.QUIET, anchor="middle", halo=True)
        )
        height += 13  # their ends may be near one another
    flat = min([peak / ceilings.bytes_per_s, *(peak / rate for _, rate in levels)])
    start = x.at(max(flat, x.low))
    parts.append(svg.line(start, y.at(peak), x.end, y.at(peak), stroke=svg.INK, width=2))
    words = f"fused multiply-adds {peak / 1e9:.0f} GFLOP/s"
    parts.append(
        svg.text(x.end, y.at(peak) - 7, words, size=11, fill=svg.QUIET, anchor="end", halo=True)
    )
    return "".join(parts)


def _point(heat: Heat, lane: Lane, x: Axis, y: Axis) -> str:
    place = x.at(heat.intensity), y.at(heat.flops / lane.median_s)
    return svg.group(mark(lane.contestant, *place), title=_point_words(heat, lane))


def _point_words(heat: Heat, lane: Lane) -> str:
    share = heat.roofline(lane)
    told = "" if share is None else f", {share:.0%} of the roofline"
    speed = heat.flops / lane.median_s / 1e9
    return f"{heat.kernel}, {lane.contestant}: {speed:.3g} GFLOP/s{told}"


def _names(heats: Sequence[Heat], x: Axis, y: Axis) -> str:
    """The kernels' names beside our own points, as far as there is room; each point's tooltip has
    it anyway.
    """
    taken: list[tuple[float, float, float, float]] = []
    parts: list[str] = []
    for heat in heats:
        if heat.ours is None:
            continue
        left = x.at(heat.intensity) + 9
        top = y.at(heat.flops / heat.ours.median_s) - 6
        box = (left, top, left + svg.text_width(heat.kernel, 11), top + 12)
        if box[2] > x.end or any(_meet(box, other) for other in taken):
            continue
        taken.append(box)
        parts.append(svg.text(left, top + 10, heat.kernel, size=11, halo=True))
    return "".join(parts)


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return (
        one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    )  # fmt: skip


def _group(heats: Sequence[Heat]) -> str:
    first = heats[0]
    ranks = f"{first.ranks} rank{'s' if first.ranks > 1 else ''}"
    return f"{first.element}, {ranks}, {first.threads} thread{'s' if first.threads > 1 else ''}"


def _below(value: float) -> float:
    """The last power of ten that is not above it."""
    return 10.0 ** math.floor(math.log10(value))


def _above(value: float) -> float:
    return 10.0 ** math.ceil(math.log10(value))


def _plain(value: float) -> str:
    return f"{value:.10g}" if value >= 1e-4 else f"{value:.0e}"


def _times(value: float) -> str:
    return f"{value:g} ×" if value >= 1 else f"1/{1 / value:g} ×"


def _time(lane: Lane) -> str:
    return f"{lane.median_s * 1e3:.3f} ms"

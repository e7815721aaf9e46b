"""The plane of a roofline: speed over arithmetic intensity, both logarithmic, under the ceilings of
a machine (Williams, Waterman, Patterson 2009).

Intensities, speeds, Ceilings -> axes, and the plane as SVG for points to be drawn on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from avial_lab.machine.roofline import Ceilings
from avial_lab.plot import svg

WIDTH, HEIGHT = 800.0, 470.0
_APART = 100.0  # pixels: nearer than that the names of two ceilings would meet


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, a power of ten or of two apart each tick, over so many pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Where a value is; what lies outside is at the end."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, base: int) -> list[float]:
        first = math.ceil(math.log(self.low, base) - 1e-9)
        last = math.floor(math.log(self.high, base) + 1e-9)
        step = max((last - first) // 10 + 1, 1)
        return [float(base) ** k for k in range(first, last + 1, step)]


@dataclass(frozen=True)
class Plane:
    """x: operations for each byte. y: operations per second."""

    x: Axis
    y: Axis
    ceilings: Ceilings

    @staticmethod
    def around(intensities: Iterable[float], speeds: Iterable[float], ceilings: Ceilings) -> Plane:
        """With room for these points and for the place where the roof bends."""
        ridge, peak = ceilings.flops_per_s / ceilings.bytes_per_s, ceilings.flops_per_s
        across, up = list(intensities), list(speeds)
        x_low, x_high = min([*across, ridge / 8]), max([*across, ridge * 8])
        y_low, y_high = min([*up, peak / 100]), max([*up, peak * 1.2])
        return Plane(
            Axis(_below(x_low), _above(x_high), 64, WIDTH - 12),
            Axis(_below(y_low), _above(y_high), HEIGHT - 44, 8),
            ceilings,
        )

    def at(self, intensity: float, flops_per_s: float) -> tuple[float, float]:
        return self.x.at(intensity), self.y.at(flops_per_s)

    def to_svg(self) -> str:
        """The grid, and every ceiling: each slanted one ends at the flat one."""
        return _grid(self.x, self.y) + self._slanted() + self._flat()

    def lower_roof(self, ceilings: Ceilings, words: str) -> str:
        """Memory and arithmetic of fewer threads."""
        ridge = max(ceilings.flops_per_s / ceilings.bytes_per_s, self.x.low)
        left = max(self.x.low, self.y.low / ceilings.bytes_per_s)
        bend = self.at(ridge, ceilings.flops_per_s)
        parts = [svg.line(*bend, self.x.end, bend[1], stroke=svg.QUIET, width=1.6, dash="1 4")]
        if left < ridge:
            foot = self.at(left, left * ceilings.bytes_per_s)
            parts.append(svg.line(*foot, *bend, stroke=svg.QUIET, width=1.6, dash="1 4"))
        return "".join([*parts, _words(self.x.end, bend[1] - 5, words, anchor="end")])

    def _levels(self) -> list[tuple[str, float]]:
        caches = [(f"L{level}", rate) for level, rate in self.ceilings.cache_bytes_per_s]
        return [*caches, ("memory", self.ceilings.bytes_per_s)]

    def _slanted(self) -> str:
        x, y, peak = self.x, self.y, self.ceilings.flops_per_s
        parts: list[str] = []
        height, last = 8.0, -math.inf
        for name, rate in self._levels():
            memory = name == "memory"
            left, right = max(x.low, y.low / rate), min(peak / rate, x.high)
            if left >= right:
                continue
            stroke, width, dash = (svg.INK, 2.0, "") if memory else (svg.QUIET, 1.2, "5 3")
            x1, y1 = self.at(left, left * rate)
            x2, y2 = self.at(right, right * rate)
            parts.append(svg.line(x1, y1, x2, y2, stroke=stroke, width=width, dash=dash))
            height = height + 13 if x2 - last < _APART else 8.0
            parts.append(_words(x2, y2 - height, f"{name} {rate / 1e9:.0f} GB/s"))
            last = x2
        return "".join(parts)

    def _flat(self) -> str:
        peak = self.ceilings.flops_per_s
        start = self.x.at(max(min(peak / rate for _, rate in self._levels()), self.x.low))
        top = self.y.at(peak)
        words = f"fused multiply-adds {peak / 1e9:.0f} GFLOP/s"
        line = svg.line(start, top, self.x.end, top, stroke=svg.INK, width=2)
        return line + _words(self.x.end, top - 7, words, anchor="end")


def _grid(x: Axis, y: Axis) -> str:
    parts = [
        svg.line(x.at(tick), y.end, x.at(tick), y.start)
        + svg.text(
            x.at(tick), y.start + 16, _tick_label(tick), size=11, fill=svg.QUIET, anchor="middle"
        )
        for tick in x.ticks(10)
    ]
    parts += [
        svg.line(x.start, y.at(tick), x.end, y.at(tick))
        + svg.text(x.start - 8, y.at(tick) + 4, _tick_label(tick / 1e9), size=11, fill=svg.QUIET,
                   anchor="end")
        for tick in y.ticks(10)
    ]  # fmt: skip
    middle = (x.start + x.end) / 2
    words = svg.text(middle, y.start + 36, "FLOP for each byte", size=12, anchor="middle")
    return "".join(parts) + words + svg.text(0, y.end - 12, "GFLOP/s", size=12)


def _words(x: float, y: float, words: str, *, anchor: str = "middle") -> str:
    return svg.text(x, y, words, size=11, fill=svg.QUIET, anchor=anchor, halo=True)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """The places, in order, moved down where they would be nearer than `gap` to the one before.

    >>> spread([10.0, 12.0, 50.0], 13)
    [10.0, 23.0, 50.0]
    """
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + gap) if found else place)
    return found


def _below(value: float) -> float:
    """The last power of ten that is not above it."""
    return 10.0 ** math.floor(math.log10(value))


def _above(value: float) -> float:
    return 10.0 ** math.ceil(math.log10(value))


def _tick_label(value: float) -> str:
    return f"{value:.10g}" if value >= 1e-4 else f"{value:.0e}"

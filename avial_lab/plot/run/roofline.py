"""A program on its way to the roof: the same work done in several ways, each with its time.

Points, ceilings -> the roofline as a picture, and as a table the time before and after each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from avial_lab.core.errors import BindError
from avial_lab.core.table import Table
from avial_lab.core.words import brief, count, format_seconds
from avial_lab.machine.roofline import Ceilings
from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem, framed
from avial_lab.plot.palette import RANKS
from avial_lab.plot.run.plane import HEIGHT, WIDTH, Plane, spread

_LINE = 13.0
_MARK = 4.5


@dataclass(frozen=True)
class Point:
    """One way to do some work, the next after the point of the same `work` before it.

    flops, nbytes: of one run, counted by the program's text: nbytes is the traffic when nothing
    stays in a cache between two sweeps over the arrays. seconds: None where nobody took the time.
    """

    work: str
    step: str
    flops: int
    nbytes: int
    seconds: float | None
    threads: int = 1

    @property
    def flops_per_s(self) -> float:
        """0 where there is no time."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.nbytes


@dataclass(frozen=True)
class Roofline:
    """`ceilings` of the machine, for one number of threads or for several; the points, in order."""

    points: Sequence[Point]
    ceilings: Ceilings | Sequence[Ceilings]
    title: str = "Roofline"

    def __post_init__(self) -> None:
        if not self.roofs:
            raise BindError(
                "a roofline needs at least one ceiling",
                hint="avial_lab.measure_ceilings(threads=1, element='f64')",
            )
        for point in self.points:
            if point.flops < 1 or point.nbytes < 1:
                raise BindError(
                    f"{point.work}, {point.step}: {point.flops} operations on {point.nbytes} bytes "
                    "cannot be drawn in a roofline",
                    hint="give the counts of one run: flops=2 * n**3, nbytes=8 * 4 * n**2",
                )

    @cached_property
    def roofs(self) -> tuple[Ceilings, ...]:
        """By their threads; none below the one before: more threads can do what fewer did."""
        given = [self.ceilings] if isinstance(self.ceilings, Ceilings) else self.ceilings
        found: list[Ceilings] = []
        for roof in sorted(given, key=lambda each: each.threads):
            least = found[-1] if found else roof
            flops_per_s = max(roof.flops_per_s, least.flops_per_s)
            bytes_per_s = max(roof.bytes_per_s, least.bytes_per_s)
            found.append(replace(roof, flops_per_s=flops_per_s, bytes_per_s=bytes_per_s))
        return tuple(found)

    @cached_property
    def timed(self) -> tuple[Point, ...]:
        """Those that have a time."""
        return tuple(point for point in self.points if point.seconds)

    @cached_property
    def before(self) -> Mapping[Point, Point]:
        """To each point the one of the same work before it."""
        works = {point.work: self.of(point.work) for point in self.timed}
        return {after: first for points in works.values() for first, after in pairwise(points)}

    def of(self, work: str) -> tuple[Point, ...]:
        """What was timed of that work, in order."""
        return tuple(point for point in self.timed if point.work == work)

    def share(self, point: Point) -> float:
        """Of what the roof allows that many threads; above 1 where caches hold what is counted as
        traffic.
        """
        enough = [roof for roof in self.roofs if roof.threads >= point.threads]
        roof = (enough or self.roofs[-1:])[0]
        return roof.seconds(point.flops, point.nbytes) / (point.seconds or float("inf"))

    def __str__(self) -> str:
        return roofline_text(self)

    def __repr__(self) -> str:
        return brief(self, roofline_summary(self))


def roofline_svg(roofline: Roofline) -> str:
    """Every work has a colour and a shape; an arrow goes from each step to the next."""
    points = roofline.timed
    top = roofline.roofs[-1]
    plane = Plane.around([p.intensity for p in points], [p.flops_per_s for p in points], top)
    works = list(dict.fromkeys(point.work for point in points))
    body = plane.to_svg() + "".join(
        plane.lower_roof(
            roof, f"{count(roof.threads, 'thread')}: {roof.flops_per_s / 1e9:.0f} GFLOP/s"
        )
        for roof in roofline.roofs[:-1]
    )
    body += "".join(_path(plane, roofline.of(work), number) for number, work in enumerate(works))
    lines = [LegendItem(svg.line(0, 7, 26, 7, stroke=svg.INK, width=2), "memory and arithmetic"),
             LegendItem(svg.line(0, 7, 26, 7, stroke=svg.QUIET, dash="5 3"), "caches"),
             LegendItem(svg.line(0, 7, 26, 7, stroke=svg.QUIET, width=1.6, dash="1 4"),
                        "with fewer threads")][: 2 + (len(roofline.roofs) > 1)]  # fmt: skip
    return framed(
        body,
        WIDTH,
        HEIGHT,
        title=roofline.title,
        summary=roofline_summary(roofline),
        description="; ".join(_point_words(roofline, point) for point in points),
        legend=[*(LegendItem(_mark(k, 13, 7), work) for k, work in enumerate(works)), *lines],
        notes=[_COUNTED],
    )


_COUNTED = (
    "Traffic is counted as if each sweep loaded its arrays from memory: a point above the "
    "memory roof was served by caches."
)


def _path(plane: Plane, points: Sequence[Point], number: int) -> str:
    places = [plane.at(point.intensity, point.flops_per_s) for point in points]
    arrows = [
        svg.arrow((a, a, b, b), stroke=_colour(number), width=1.2)
        for a, b in pairwise(places)
        if abs(a[1] - b[1]) > 3 * _MARK  # else there is no room for a head
    ]
    marks = [_mark(number, *place) for place in places]
    return "".join([*arrows, *marks, *_labels(points, places)])


def _labels(points: Sequence[Point], places: Sequence[tuple[float, float]]) -> list[str]:
    """Beside the points, apart from one another, each with a thin line to its own."""
    order = sorted(range(len(points)), key=lambda k: places[k][1])
    wide = max((svg.text_width(_label(point), 11) for point in points), default=0.0)
    left = max((x for x, _ in places), default=0.0) + wide + 24 > WIDTH
    parts: list[str] = []
    for k, y in zip(order, spread([places[k][1] for k in order], _LINE), strict=True):
        x, at = places[k]
        side = -1 if left else 1
        parts.append(svg.line(x + side * _MARK, at, x + side * 14, y, stroke=svg.QUIET, width=0.7))
        anchor = "end" if left else "start"
        words = svg.text(x + side * 17, y + 4, _label(points[k]), size=11, anchor=anchor, halo=True)
        parts.append(words)
    return parts


def _label(point: Point) -> str:
    return f"{point.step}: {_speed(point)}"


def _colour(number: int) -> str:
    return RANKS[number % len(RANKS)]


def _mark(number: int, x: float, y: float) -> str:
    """A circle, a square, and so on: the shape says what the colour says."""
    if number % 2 == 0:
        return svg.circle(x, y, _MARK, fill=_colour(number))
    return svg.rectangle(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK, fill=_colour(number))


def roofline_summary(roofline: Roofline) -> str:
    """`product: 256 ms at first, 6.58 ms at last, 64 % of the roof`, for each work."""
    parts: list[str] = []
    for work in dict.fromkeys(point.work for point in roofline.points):
        points = roofline.of(work)
        if not points:
            parts.append(f"{work}: no times")
            continue
        first, last = (format_seconds(points[k].seconds or 0.0) for k in (0, -1))
        share = _percent(roofline.share(points[-1]))
        parts.append(f"{work}: {first} at first, {last} at last, {share} of the roof")
    return "; ".join(parts)


def roofline_table(roofline: Roofline) -> Table:
    """A row for each step: the time before it, and after."""
    head = ("", "step", "threads", "before", "after", "faster", "speed", "of the roof")
    rows = tuple(_row(roofline, point) for point in roofline.points)
    return Table("Step by step", head, rows, frozenset(head[2:]))


def _row(roofline: Roofline, point: Point) -> tuple[str, ...]:
    name = (point.work, point.step, str(point.threads))
    if not point.seconds:
        return (*name, *("–",) * 5)
    first = roofline.before.get(point)
    before, gain = "–", "–"
    if first is not None and first.seconds:
        before, gain = format_seconds(first.seconds), f"{first.seconds / point.seconds:.2f} ×"
    speed, share = _speed(point), _percent(roofline.share(point))
    return (*name, before, format_seconds(point.seconds), gain, speed, share)


def _point_words(roofline: Roofline, point: Point) -> str:
    return f"{point.work}, {point.step}: {format_seconds(point.seconds or 0.0)}, " + (
        f"{_speed(point)}, {_percent(roofline.share(point))} of the roof"
    )


def _speed(point: Point) -> str:
    """`97.5 GFLOP/s`; of hundreds no fraction."""
    rate = point.flops_per_s / 1e9
    return f"{rate:.3g} GFLOP/s" if rate < 100 else f"{rate:.0f} GFLOP/s"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def roofline_text(roofline: Roofline) -> str:
    """The same for a terminal, or read aloud."""
    roofs = [f"  {roof}" for roof in roofline.roofs]
    lines = [f"{roofline.title}: {roofline_summary(roofline)}", *roofs]
    return "\n".join([*lines, roofline_table(roofline).to_text()])

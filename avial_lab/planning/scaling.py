"""How a program speeds up with ranks, where more of them stop paying, and why.

Predicted traces by their ranks -> Scaling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import log2

from avial_lab.core.table import PRINTED_ROWS, Table, left_out
from avial_lab.core.words import brief, count, format_bytes, format_seconds
from avial_lab.trace import EventKind, Trace
from avial_lab.trace.analysis import balance, shares

PAYS = 1.1
"""Twice the ranks pay where they are at least so much faster (a mean over what lies between)."""

BALANCED = 0.75
SHORT_MESSAGE = 1 << 14
"""Bytes: of a shorter one the latency is most."""


@dataclass(frozen=True)
class Point:
    """A run on so many ranks. compute, messages: the part of the ranks' time that they compute, and
    that they send and wait. balance: mean over greatest compute time.
    """

    ranks: int
    makespan_s: float
    nbytes: int
    messages: int
    compute: float
    waiting: float
    balance: float
    most_waited: str = ""
    """The phase for whose messages the ranks wait longest."""
    copying: float = 0.0
    """The part of the time in which something is copied to a device or from one."""
    least_s: float | None = None
    """Where ranks share cores: the makespan if none waited for a core that another one has."""

    @property
    def took(self) -> str:
        """`1.2 ms`, or `0.3 ms to 1.2 ms` where ranks share cores."""
        least = "" if self.least_s is None else f"{format_seconds(self.least_s)} to "
        return f"{least}{format_seconds(self.makespan_s)}"

    @property
    def mean_message(self) -> float:
        return self.nbytes / self.messages if self.messages else 0.0


@dataclass(frozen=True)
class Scaling:
    """Points by ascending ranks, on the machine called `label`. last: the run on most of them."""

    points: tuple[Point, ...]
    label: str
    last: Trace | None = field(default=None, repr=False)
    measured: bool = False
    """Whether earlier runs say how long its phases take."""

    @property
    def best(self) -> Point:
        """The fastest; of those alike the one with the fewest ranks."""
        return min(self.points, key=lambda point: (point.makespan_s, point.ranks))

    def speedup(self, point: Point) -> float:
        """Over the point with the fewest ranks."""
        return self.points[0].makespan_s / point.makespan_s if point.makespan_s else 0.0

    def efficiency(self, point: Point) -> float:
        """Speed-up over as many times the ranks."""
        return self.speedup(point) * self.points[0].ranks / point.ranks

    @property
    def stops_at(self) -> Point | None:
        """The last that is worth its ranks; None where all are."""
        for before, after in pairwise(self.points):
            doublings = max(after.ranks / before.ranks, 1.0)
            if after.makespan_s * PAYS ** log2(doublings) > before.makespan_s:
                return before
        return None

    @property
    def why(self) -> str:
        """Where more ranks stop paying, and what they then spend their time on."""
        last = self.stops_at
        if last is None:
            return f"More ranks pay up to the {count(self.points[-1].ranks, 'rank')} looked at."
        after = next(point for point in self.points if point.ranks > last.ranks)
        return (
            f"Beyond {count(last.ranks, 'rank')} more of them hardly pay. "
            f"On {count(after.ranks, 'rank')} {_reason(after)}."
        )

    @property
    def table(self) -> Table:
        rows = tuple(
            (
                f"{point.ranks:,}",
                point.took,
                f"{self.speedup(point):.2f}",
                f"{100 * self.efficiency(point):.0f} %",
                f"{100 * point.compute:.0f} %",
                f"{100 * point.waiting:.0f} %",
                f"{point.messages:,}",
                format_bytes(point.nbytes),
            )
            for point in self.points[:PRINTED_ROWS]
        )
        head = (
            "ranks", "makespan", "speed-up", "efficiency", "compute", "send, wait",
            "messages", "bytes",
        )  # fmt: skip
        note = left_out(len(self.points), "number of ranks", PRINTED_ROWS)
        source = "by what earlier runs took" if self.measured else "by the roofline"
        title = f"By ranks on {self.label}, simulated, {source}"
        return Table(title, head, rows, frozenset(head), note)

    def __str__(self) -> str:
        return f"{self.table.to_text()}\n{self.why}"

    def __repr__(self) -> str:
        best = self.best
        took = f"{format_seconds(best.makespan_s)} on {count(best.ranks, 'rank')}"
        return brief(self, f"on {self.label}, {count(len(self.points), 'point')}: best {took}")


def scaling_of(
    traces: Mapping[int, tuple[Trace, int]],
    label: str,
    *,
    least: Mapping[int, float],
    measured: bool = False,
) -> Scaling:
    """traces: for each number of ranks a predicted run, and its messages. least: where they share
    cores, the seconds if none waited for one.
    """
    points = [
        replace(_point(trace, messages), least_s=least.get(ranks))
        for ranks, (trace, messages) in sorted(traces.items())
    ]
    return Scaling(tuple(points), label, traces[max(traces)][0], measured)


def _point(trace: Trace, messages: int) -> Point:
    found = shares(trace)
    whole = sum(sum(share.parts) for share in found) or 1.0
    waited: dict[str, float] = {}
    for total in trace.totals:
        if total.kind in (EventKind.WAIT, EventKind.SEND, EventKind.BARRIER):
            waited[total.phase] = waited.get(total.phase, 0.0) + total.seconds
    return Point(
        trace.ranks,
        trace.makespan_s,
        trace.bytes_sent,
        messages,
        sum(share.compute_s for share in found) / whole,
        sum(share.send_s + share.wait_s for share in found) / whole,
        balance(found),
        max(waited, key=lambda name: waited[name]) if any(waited.values()) else "",
        sum(share.copy_s for share in found) / whole,
    )


def _reason(point: Point) -> str:
    """What most of the time goes into."""
    between = 1 - point.compute - point.waiting - point.copying
    if point.copying >= max(point.compute, point.waiting, between):
        return f"{100 * point.copying:.0f} % of the time is copies to and from devices"
    if point.waiting >= max(point.compute, between):
        what = f"{100 * point.waiting:.0f} % of the ranks' time is sending and waiting"
        size = format_bytes(round(point.mean_message))
        bound = "latency" if point.mean_message < SHORT_MESSAGE else "bandwidth"
        words = f"{what}, most of it for {point.most_waited}"
        if point.balance < BALANCED and point.compute > 0.2:
            return f"{words}: the ranks' parts are uneven"
        return f"{words}: messages of {size} in the mean, bound by {bound}"
    if point.balance < BALANCED:
        return f"the work is uneven (mean over greatest: {100 * point.balance:.0f} %)"
    if between > point.compute:
        return "beginning phases takes longer than what is done in them"
    return "ranks share what the machine has: cores, or the memory's bandwidth"


def powers(most: int, *, base: int = 2) -> Sequence[int]:
    """1, base, base² …, and `most`.

    >>> powers(6), powers(1024, base=4)
    ([1, 2, 4, 6], [1, 4, 16, 64, 256, 1024])
    """
    found = [1]
    while found[-1] * base < most:
        found.append(found[-1] * base)
    return found if most == 1 else [*found, most]

"""What a race says: times, ratios, and how far from the machine's ceilings.

Lanes, Ceilings -> Sheet -> text, or plain data for JSON.
"""

from __future__ import annotations

import math
import platform
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from avial_lab.race.ceilings import Ceilings


@dataclass(frozen=True)
class Lane:
    """One contestant's part in one heat.

    seconds: of every run, in order. compile_s: apart from them. fault: why there are no times.
    """

    contestant: str
    seconds: tuple[float, ...] = ()
    compile_s: float = 0.0
    fault: str = ""

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Heat:
    """One kernel at one size, raced by everybody with the same threads.

    bytes: the traffic when nothing stays in a cache between two sweeps over the arrays.
    """

    kernel: str
    element: str
    sizes: Mapping[str, int]
    ranks: int
    threads: int
    flops: int
    bytes: int
    lanes: tuple[Lane, ...]
    ceilings: Ceilings | None = field(default=None, repr=False)

    @property
    def ours(self) -> Lane | None:
        """Our own lane, where it came home."""
        return next((lane for lane in self.lanes if lane.contestant == OURS and lane.seconds), None)

    @property
    def best(self) -> Lane | None:
        """The fastest peer."""
        peers = [lane for lane in self.lanes if lane.contestant != OURS and lane.seconds]
        return min(peers, key=lambda lane: lane.median_s, default=None)

    @property
    def ratio(self) -> float | None:
        """How many times faster than the best peer we are."""
        if self.ours is None or self.best is None:
            return None
        return self.best.median_s / self.ours.median_s

    @property
    def roofline(self) -> float | None:
        """Our speed as a fraction of what the ceilings allow; above 1 where caches hold it."""
        if self.ours is None or self.ceilings is None:
            return None
        return self.ceilings.seconds(self.flops, self.bytes) / self.ours.median_s


OURS = "avial"


@dataclass(frozen=True)
class Sheet:
    """All heats of a race. `notes`: what was left out, and why."""

    size: str
    heats: tuple[Heat, ...]
    ceilings: tuple[Ceilings, ...]
    notes: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """The sheet for another program to read; times in seconds, no name of this machine."""
        return {
            "size": self.size,
            "architecture": platform.machine(),
            "ceilings": [
                {
                    "threads": c.threads,
                    "element": c.element,
                    "flops_per_s": c.flops_per_s,
                    "bytes_per_s": c.bytes_per_s,
                }
                for c in self.ceilings
            ],
            "heats": [_heat_facts(heat) for heat in self.heats],
            "geometric_means": [
                {"ranks": ranks, "threads": threads, "element": element, "ratio": mean, "of": count}
                for ranks, threads, element, mean, count in geometric_means(self.heats)
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        lines = [*text_table(self.heats)]
        for ranks, threads, element, mean, count in geometric_means(self.heats):
            lines.append(
                f"geometric mean, {element}, {ranks} rank{'s' if ranks > 1 else ''}, "
                f"{threads} thread{'s' if threads > 1 else ''}: "
                f"{mean:.2f} × the best peer ({count} kernel{'s' if count > 1 else ''})"
            )
        lines += [f"ceilings, {ceilings}" for ceilings in self.ceilings]
        lines += [
            f"{heat.kernel}: {lane.contestant}: {lane.fault}"
            for heat in self.heats
            for lane in heat.lanes
            if lane.fault
        ]
        return "\n".join([*lines, *self.notes])


def geometric_means(heats: Iterable[Heat]) -> Iterator[tuple[int, int, str, float, int]]:
    """ranks, threads, element, geometric mean of the ratios to the best peer, kernels counted."""
    ratios: dict[tuple[int, int, str], list[float]] = {}
    for heat in heats:
        if heat.ratio is not None:
            ratios.setdefault((heat.ranks, heat.threads, heat.element), []).append(heat.ratio)
    for (ranks, threads, element), values in ratios.items():
        mean = math.exp(math.fsum(map(math.log, values)) / len(values))
        yield ranks, threads, element, mean, len(values)


def text_table(heats: Sequence[Heat]) -> list[str]:
    """A line for each heat, times in milliseconds; `×` is the best peer's time over ours."""
    names = list(dict.fromkeys(lane.contestant for heat in heats for lane in heat.lanes))
    head = ["kernel", "type", "ranks", "threads", *names, "×", "GFLOP/s", "GB/s", "roofline"]
    rows = [head, *(_row(heat, names) for heat in heats)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(heat: Heat, names: Sequence[str]) -> list[str]:
    lanes = {lane.contestant: lane for lane in heat.lanes}
    ours, ratio, roofline = heat.ours, heat.ratio, heat.roofline
    rates = ["-", "-"]
    if ours is not None:
        rates = [f"{work / ours.median_s / 1e9:.2f}" for work in (heat.flops, heat.bytes)]
    return [
        heat.kernel,
        heat.element,
        str(heat.ranks),
        str(heat.threads),
        *(_time(lanes.get(name)) for name in names),
        "-" if ratio is None else f"{ratio:.2f}",
        *rates,
        "-" if roofline is None else f"{roofline:.0%}",
    ]


def _time(lane: Lane | None) -> str:
    if lane is None:
        return "-"
    return f"{lane.median_s * 1e3:.3f}" if lane.seconds else "fault"


def _heat_facts(heat: Heat) -> dict[str, Any]:
    best = heat.best
    return {
        "kernel": heat.kernel,
        "element": heat.element,
        "sizes": dict(heat.sizes),
        "ranks": heat.ranks,
        "threads": heat.threads,
        "flops": heat.flops,
        "bytes": heat.bytes,
        "best_peer": None if best is None else best.contestant,
        "ratio": heat.ratio,
        "roofline": heat.roofline,
        "lanes": [
            {
                "contestant": lane.contestant,
                "median_s": lane.median_s if lane.seconds else None,
                "seconds": list(lane.seconds),
                "compile_s": lane.compile_s,
                "fault": lane.fault or None,
            }
            for lane in heat.lanes
        ],
    }

"""Which degrees of data, horizontal and pipeline parallelism, and how many micro-batches.

Model, batch, numbers of devices -> a row for each configuration, infeasible ones with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from avial_lab.core.errors import OptionError
from avial_lab.core.table import Table
from avial_lab.core.words import brief, count, format_bytes, format_seconds, shortened
from avial_lab.planning.distir_costs import Mlp, evaluated
from avial_lab.planning.model_search import over_memory

COSTS = ("distir",)
"""What times and memory are told by: DistIR's own model of a V100 with links of 25 Gbit/s."""

MICROBATCHES = (2, 4, 8, 16, 32, 64, 128)
MOST_DEVICES = 1 << 16


@dataclass(frozen=True)
class StrategyRow:
    """One configuration of a batch: `d` data, `h` horizontal, `p` pipeline degree, `k` turns.
    `latency_s` of a training step and `peak_bytes` of the fullest device; None where it cannot be,
    for `reason`.
    """

    batch: int
    d: int
    h: int
    p: int
    k: int
    reason: str = ""
    latency_s: float | None = None
    peak_bytes: int | None = None

    @property
    def feasible(self) -> bool:
        return not self.reason

    @property
    def name(self) -> str:
        return f"{self.d}/{self.h}/{self.p}/{self.k}"

    def __repr__(self) -> str:
        told = self.reason or f"{format_seconds(self.latency_s or 0)}, {self.peak_bytes:,} B"
        return brief(self, f"{self.name}: {told}")


@dataclass(frozen=True)
class StrategySearch:
    """All rows, in the order of batches and degrees; one batch is compared with no other."""

    model: Mlp
    rows: tuple[StrategyRow, ...] = field(repr=False)

    @property
    def ranked(self) -> tuple[StrategyRow, ...]:
        """Feasible rows, the fastest for a row of the batch first; of equally fast ones that with
        less memory.
        """
        there = [row for row in self.rows if row.feasible]
        return tuple(
            sorted(there, key=lambda row: ((row.latency_s or 0) / row.batch, row.peak_bytes))
        )

    @property
    def best(self) -> StrategyRow | None:
        return next(iter(self.ranked), None)

    @property
    def front(self) -> tuple[StrategyRow, ...]:
        """The rows of which none is faster with as little memory, the fastest first."""
        kept: list[StrategyRow] = []
        for row in self.ranked:
            if not kept or (row.peak_bytes or 0) < (kept[-1].peak_bytes or 0):
                kept.append(row)
        return tuple(kept)

    def __str__(self) -> str:
        shown = [
            (f"{row.batch:,}", row.name, format_seconds(row.latency_s or 0), f"{row.peak_bytes:,}",
             "front" if row in self.front else "")
            for row in self.ranked[:10]
        ]  # fmt: skip
        infeasible = len(self.rows) - len(self.ranked)
        head = (
            f"{self.model}: {count(len(self.rows), 'configuration')}, "
            f"{infeasible:,} infeasible; data/horizontal/pipeline/micro-batches"
        )
        columns = ("batch", "d/h/p/k", "a step", "peak bytes", "")
        table = Table(head, columns, tuple(shown), frozenset(("batch", *columns[2:4]))).to_text()
        reasons = dict.fromkeys(row.reason for row in self.rows if not row.feasible)
        told = [f"infeasible: {reason}" for reason in list(reasons)[:5]]
        return "\n".join([table if shown else head, *told, *([] if shown else self._least())])

    def explain(self, name: str, against: str = "") -> str:
        """How much faster one configuration (d/h/p/k) is than another, by default the best one, or
        what it lacks. OptionError for one that is not there.
        """
        row = self._called(name)
        lines = [] if row.feasible else [f"{row.name} cannot be: {row.reason}", *self._least()]
        rival = next((each for each in self.ranked if each != row), None)
        other = self._called(against) if against else rival
        if other is None or row.latency_s is None or other.latency_s is None:
            return "\n".join(lines or [f"{row.name} is compared with none: there is no other"])
        fast, slow = sorted((row, other), key=lambda each: each.latency_s or 0)
        ratio = (slow.latency_s or 0) / (fast.latency_s or 1)
        held = [f"{each.name} holds {format_bytes(each.peak_bytes or 0)}" for each in (row, other)]
        lines.append(
            f"{fast.name} takes {format_seconds(fast.latency_s or 0)}, {slow.name} "
            f"{format_seconds(slow.latency_s or 0)}: {ratio:.2f} times as long; {', '.join(held)}"
        )
        return "\n".join(lines)

    def _called(self, name: str) -> StrategyRow:
        found = next((row for row in self.rows if row.name == name.strip()), None)
        if found is None:
            raise OptionError(
                f"'{shortened(name, 60)}' is no configuration of this search",
                hint=f"write d/h/p/k as the table has it: {self.rows[0].name}",
            )
        return found

    def _least(self) -> list[str]:
        """Which of those that are too large is the smallest."""
        known = [row for row in self.rows if row.peak_bytes is not None]
        if not known:
            return []
        least = min(known, key=lambda row: row.peak_bytes or 0)
        return [f"the least that would do: {format_bytes(least.peak_bytes or 0)}, {least.name}"]


def model_called(text: str) -> Mlp:
    """`mlp:8x512`: 8 layers of width 512. OptionError for anything else."""
    match = re.fullmatch(r"mlp:(\d{1,6})x(\d{1,9})", text)
    if match is None or not int(match[1]) or not int(match[2]):
        raise OptionError(
            f"there is no model '{shortened(text, 60)}'",
            hint="write mlp:LAYERSxWIDTH, mlp:8x512 for example",
        )
    return Mlp(int(match[1]), int(match[2]))


def search_strategies(
    model: Mlp,
    batches: Sequence[int],
    devices: Sequence[int],
    *,
    memory_bytes: float | None = None,
    microbatches: Sequence[int] = MICROBATCHES,
) -> StrategySearch:
    """Every factorisation d · h · p of each number of devices; pipelines with each number of
    micro-batches. All with the same (p, k) are evaluated at once.
    """
    _check(batches, devices, microbatches)
    rows: dict[tuple[int, int, int, int, int], StrategyRow] = {}
    groups: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for batch in batches:
        for d, h, p, k in _configurations(devices, microbatches):
            reason = _reason(model, batch, d, h, p, k)
            rows[batch, d, h, p, k] = StrategyRow(batch, d, h, p, k, reason)
            if not reason:
                groups.setdefault((p, k), []).append((batch, d, h))
    for (p, k), configurations in groups.items():
        seconds, peaks = evaluated(model, configurations, p, k)
        for (batch, d, h), latency, peak in zip(configurations, seconds, peaks, strict=True):
            over = memory_bytes is not None and peak > memory_bytes
            reason = over_memory(peak - (memory_bytes or 0)) if over else ""
            row = StrategyRow(batch, d, h, p, k, reason, float(latency), int(peak))
            rows[batch, d, h, p, k] = row
    return StrategySearch(model, tuple(rows.values()))


def _check(batches: Sequence[int], devices: Sequence[int], microbatches: Sequence[int]) -> None:
    for what, numbers, most in (
        ("rows of a batch", batches, 1 << 40),
        ("devices", devices, MOST_DEVICES),
        ("micro-batches", microbatches, 1 << 12),
    ):
        wrong = next((n for n in numbers if not 1 <= n <= most), None)
        if wrong is not None or not numbers:
            shown = wrong if numbers else "no"
            raise OptionError(f"{shown} {what}", hint=f"give numbers from 1 to {most:,}")


def _configurations(
    devices: Sequence[int], microbatches: Sequence[int]
) -> Iterator[tuple[int, int, int, int]]:
    for number in devices:
        for d in _divisors(number):
            for h in _divisors(number // d):
                p = number // d // h
                for k in microbatches if p > 1 else (1,):
                    yield d, h, p, k


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _reason(model: Mlp, batch: int, d: int, h: int, p: int, k: int) -> str:
    """Why DistIR cannot do it; "" where it can."""
    for members in (d, h):
        if members & (members - 1):
            return f"DistIR has no all-reduce of {members} devices"
    if model.layers % p:
        return f"{model.layers} layers do not make {p} equal stages"
    if model.width % h:
        return f"a width of {model.width} is not divisible by {h}"
    if batch % (d * k):
        return f"a batch of {batch} rows is not divisible by {d} x {k}"
    return ""

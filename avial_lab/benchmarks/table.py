"""What a race says: times, ratios, and how far from the machine's ceilings.

Results, Ceilings -> Report -> text. As plain data: facts.py; as a page: sheet_page.py.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from avial_lab.core.words import brief, count, format_seconds, listed
from avial_lab.machine.host import Machine
from avial_lab.machine.roofline import Ceilings

OURS = "avial"

ALONE = "avial 1×1"
"""Our own program on one rank with one thread, beside one on several ranks."""


@dataclass(frozen=True)
class Result:
    """One contestant's part in one round.

    seconds: of every run, in order. compile_s: apart from them. fault: why there are no times.
    note: what is to be known of those there are.
    """

    contestant: str
    seconds: tuple[float, ...] = ()
    compile_s: float = 0.0
    fault: str = ""
    note: str = ""

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)

    def __repr__(self) -> str:
        runs = count(len(self.seconds), "run")
        times = f"{format_seconds(self.median_s)}, median of {runs}" if self.seconds else "no times"
        return brief(self, f"of {self.contestant}: {self.fault or times}")

    @property
    def is_ours(self) -> bool:
        return self.contestant in (OURS, ALONE)


@dataclass(frozen=True)
class Round:
    """One kernel at one size, raced by all contestants with the same ranks and threads.

    flops, bytes: the kernel's own counts; bytes are the traffic when nothing stays in a cache
    between two sweeps over the arrays.
    """

    kernel: str
    element: str
    sizes: Mapping[str, int]
    ranks: int
    threads: int
    flops: int
    bytes: int
    results: tuple[Result, ...]
    ceilings: Ceilings | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        ranks = f"{count(self.ranks, 'rank')} of {count(self.threads, 'thread')}"
        ratio = "no ratio" if self.ratio is None else f"{self.ratio:.2f} × the best peer"
        return brief(self, f"of {self.kernel} ({self.element}; {sizes}) on {ranks}: {ratio}")

    @property
    def home(self) -> tuple[Result, ...]:
        """The results that have times."""
        return tuple(result for result in self.results if result.seconds)

    @property
    def ours(self) -> Result | None:
        """Our own result, if it has times."""
        return next((result for result in self.home if result.contestant == OURS), None)

    @property
    def best(self) -> Result | None:
        """The fastest peer."""
        peers = [result for result in self.home if not result.is_ours]
        return min(peers, key=lambda result: result.median_s, default=None)

    @property
    def ratio(self) -> float | None:
        """How many times faster than the best peer we are."""
        return None if self.best is None else self.ratio_to(self.best)

    @property
    def least_ratio(self) -> float | None:
        """As `ratio`, of everybody's fastest run: what other work on the machine disturbs less."""
        least = [min(result.seconds) for result in self.home if not result.is_ours]
        return min(least) / min(self.ours.seconds) if self.ours and least else None

    def ratio_to(self, result: Result) -> float | None:
        """How many times faster than that result's contestant we are; None without times."""
        if self.ours is None or not result.seconds:
            return None
        return result.median_s / self.ours.median_s

    def roofline(self, result: Result | None) -> float | None:
        """That result's speed as a fraction of what the ceilings allow; above 1 where caches hold
        what is counted as traffic, or a time loop is tiled.
        """
        if result is None or not result.seconds or self.ceilings is None:
            return None
        return self.ceilings.seconds(self.flops, self.bytes) / result.median_s

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes


@dataclass(frozen=True)
class Mean:
    """What the ratios of some rounds with the same ranks, threads and element type come to.

    against: a contestant, or empty for the best peer of each kernel. ratio: the geometric mean.
    """

    ranks: int
    threads: int
    element: str
    against: str
    ratio: float
    kernels: int
    worst_kernel: str
    worst_ratio: float

    def __str__(self) -> str:
        return (
            f"geometric mean, {self.element}, {self.ranks} rank{'s' if self.ranks > 1 else ''}, "
            f"{self.threads} thread{'s' if self.threads > 1 else ''}: {self.ratio:.2f} × "
            f"{self.against or 'the best peer'} "
            f"({self.kernels} kernel{'s' if self.kernels > 1 else ''}, "
            f"worst {self.worst_kernel} {self.worst_ratio:.2f} ×)"
        )


@dataclass(frozen=True)
class Report:
    """All rounds of a race. `notes`: what was left out, and why. `whole`: nobody stopped it."""

    size: str
    rounds: tuple[Round, ...]
    ceilings: tuple[Ceilings, ...]
    machine: Machine
    notes: tuple[str, ...] = ()
    whole: bool = True

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(
            f"{raced.kernel}: {result.contestant}: {result.fault}"
            for raced in self.rounds
            for result in raced.results
            if result.fault
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """The results' notes, each once, and the report's own."""
        own = [
            f"{x.contestant}: {x.note}" for raced in self.rounds for x in raced.results if x.note
        ]
        return (*dict.fromkeys(own), *self.notes)

    def __str__(self) -> str:
        lines = [*text_table(self.rounds), "", *compile_table(self.rounds), ""]
        lines += map(str, means(self.rounds))
        lines += [str(self.machine)]
        lines += [f"ceilings, {ceilings}" for ceilings in self.ceilings]
        return "\n".join([*lines, *self.faults, *self.remarks])

    def __repr__(self) -> str:
        kernels = listed(list(dict.fromkeys(raced.kernel for raced in self.rounds)))
        return brief(self, f"of {count(len(self.rounds), 'raced')} at size {self.size}: {kernels}")


def contestants(rounds: Iterable[Round]) -> tuple[str, ...]:
    """Everybody who was there, ourselves first."""
    names = dict.fromkeys(result.contestant for raced in rounds for result in raced.results)
    return tuple(sorted(names, key=lambda name: name not in (OURS, ALONE)))


def means(rounds: Iterable[Round]) -> Iterator[Mean]:
    """Of like with like: against the best peer first, then against each contestant."""
    ratios: dict[tuple[int, int, str], dict[str, dict[str, float]]] = {}
    for raced in rounds:
        key = (raced.ranks, raced.threads, raced.element)
        by_peer = ratios.setdefault(key, {"": {}})
        if raced.ratio is not None:
            by_peer[""][raced.kernel] = raced.ratio
        for result in raced.results:
            ratio = raced.ratio_to(result)
            if ratio is not None and result.contestant != OURS:
                by_peer.setdefault(result.contestant, {})[raced.kernel] = ratio
    for key, by_peer in ratios.items():
        for against, of in by_peer.items():
            if of:
                worst = min(of, key=lambda kernel: of[kernel])
                mean = math.exp(math.fsum(map(math.log, of.values())) / len(of))
                yield Mean(*key, against, mean, len(of), worst, of[worst])


def text_table(rounds: Sequence[Round]) -> list[str]:
    """A line for each round, medians in milliseconds; `×` is the best peer's over ours, `×least`
    that of the fastest runs.
    """
    names = contestants(rounds)
    head = [
        "kernel",
        "type",
        "ranks",
        "threads",
        *names,
        "×",
        "×least",
        "GFLOP/s",
        "GB/s",
        "roofline",
    ]
    return columns([head, *(_row(raced, names) for raced in rounds)])


def compile_table(rounds: Sequence[Round]) -> list[str]:
    """Seconds to build, a line for each round."""
    names = contestants(rounds)
    rows = [["compile, s", "type", "ranks", "threads", *names]]
    for raced in rounds:
        results = {result.contestant: result for result in raced.home}
        times = [f"{results[n].compile_s:.2f}" if n in results else "-" for n in names]
        rows.append([raced.kernel, raced.element, str(raced.ranks), str(raced.threads), *times])
    return columns(rows)


def columns(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0, 1)) -> list[str]:
    """Aligned: those `left` at their beginning, all others, which are numbers, at their end."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(raced: Round, names: Sequence[str]) -> list[str]:
    results = {result.contestant: result for result in raced.results}
    ours, ratio, roofline = raced.ours, raced.ratio, raced.roofline(raced.ours)
    rates = ["-", "-"]
    if ours is not None:
        rates = [f"{work / ours.median_s / 1e9:.2f}" for work in (raced.flops, raced.bytes)]
    return [
        raced.kernel,
        raced.element,
        str(raced.ranks),
        str(raced.threads),
        *(_time(results.get(name)) for name in names),
        "-" if ratio is None else f"{ratio:.2f}",
        "-" if raced.least_ratio is None else f"{raced.least_ratio:.2f}",
        *rates,
        "-" if roofline is None else f"{roofline:.0%}",
    ]


def _time(result: Result | None) -> str:
    if result is None:
        return "-"
    return f"{result.median_s * 1e3:.3f}" if result.seconds else "fault"

"""Kernels predicted, then run: how far off the simulator is, on this machine as it was measured.

Names of kernels, a size, numbers of ranks -> a table. Each prediction is made before the program's
first run: from the roofline alone, and from runs at the next smaller size; a third one from the
profile of the first half of the runs, held against the other half. Runs on all numbers of ranks
take turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from avial_lab.benchmarks.kernel_suite import POLYBENCH, SIZES, element_of, kernel_program
from avial_lab.core.table import Table
from avial_lab.core.words import format_seconds
from avial_lab.machine.host import busy, this_machine
from avial_lab.machine.measured import Measured, kept
from avial_lab.machine.steadiness import watched
from avial_lab.program import compilation
from avial_lab.program.program import Program
from avial_lab.runtime.launch.cluster import Cluster
from avial_lab.runtime.launch.discovery import measure_machine

ELEMENTS = ("f64", "i64")
"""The first of these that a kernel has a version of."""

RUNS = 6
"""For the profile, and as many more to hold it against."""


@dataclass(frozen=True)
class Predicted:
    """A kernel on so many ranks: seconds by the roofline, by runs of a smaller size, by the
    profile, and those of all runs, of which the first half made the profile.
    """

    kernel: str
    ranks: int
    roofline_s: float
    smaller_s: float
    profile_s: float
    runs_s: tuple[float, ...]
    doubts: tuple[str, ...] = ()
    """Why its times may be off: a neighbour, a clock that dropped."""

    @property
    def first_s(self) -> float:
        """The median of the runs of the profile."""
        return median(self.runs_s[: len(self.runs_s) // 2])

    @property
    def later_s(self) -> float:
        return median(self.runs_s[len(self.runs_s) // 2 :])

    @property
    def spread(self) -> float:
        """How far the runs were apart, as a part of their median."""
        return (max(self.runs_s) - min(self.runs_s)) / median(self.runs_s)

    @property
    def off_roofline(self) -> float:
        return abs(self.roofline_s / self.first_s - 1)

    @property
    def off_smaller(self) -> float:
        return abs(self.smaller_s / self.first_s - 1)

    @property
    def off_profile(self) -> float:
        return abs(self.profile_s / self.later_s - 1)


def bench_predict(names: Sequence[str], size: str, ranks: Sequence[int]) -> int:
    """Print each kernel as it is done, then the table and its medians."""
    for why in busy():
        print(why)
    known = kept()
    measured = measure_machine(print) if known is None or known.notes else known
    print(f"{this_machine()}\n{measured}", flush=True)
    found: list[Predicted] = []
    with Cluster.start(cpu=max(ranks), gpu=0) as cluster:
        for name in names or POLYBENCH:
            found += list(_of_kernel(name, size, ranks, measured, cluster))
            print(f"  {name} {size}", flush=True)
    print(predicted_table(found, f"{size}, {' or '.join(ELEMENTS)}, {2 * RUNS} runs of each"))
    print(summary(found))
    return 0


def _of_kernel(
    name: str, size: str, ranks: Iterable[int], measured: Measured, cluster: Cluster
) -> Iterator[Predicted]:
    programs = {n: _program(name, size, n) for n in ranks}
    roofline = {n: p.simulate(measured.topology(n)).makespan_s for n, p in programs.items()}
    for n in programs if size != SIZES[0] else ():
        _program(name, SIZES[SIZES.index(size) - 1], n).compare(cluster, runs=RUNS)
    smaller = {n: p.simulate().makespan_s for n, p in programs.items()}
    taken: dict[int, list[float]] = {n: [] for n in programs}
    profile: dict[int, float] = {}
    with watched(measured.pace) as watch:
        for turn in range(2 * RUNS):
            for n, program in programs.items():
                if turn == RUNS:
                    profile[n] = program.simulate().makespan_s
                taken[n].append(program.run(cluster).makespan_s)
            watch.look()
    for n in programs:
        yield Predicted(name, n, roofline[n], smaller[n], profile[n], tuple(taken[n]), watch.doubts)


def _program(name: str, size: str, ranks: int) -> Program:
    made = kernel_program(name, size=size, element=element_of(name, ELEMENTS), numbers={}, seed=0)
    return compilation.compile(
        made.text,
        arrays=made.arrays,
        scalars=made.scalars,
        function=made.function,
        ranks=ranks,
        name=name,
    )


def predicted_table(found: Sequence[Predicted], title: str) -> Table:
    """Times and errors, in the order of the races."""
    rows = tuple(
        (
            each.kernel,
            str(each.ranks),
            format_seconds(each.roofline_s),
            format_seconds(median(each.runs_s)),
            f"{each.roofline_s / each.first_s:.2f}",
            f"{each.smaller_s / each.first_s:.2f}",
            f"{each.profile_s / each.later_s:.2f}",
            f"{100 * each.spread:.0f} %",
            "; ".join(each.doubts),
        )
        for each in found
    )
    head = (
        "kernel", "ranks", "predicted", "measured", "by roofline", "by a smaller size",
        "by profile", "spread",
    )  # fmt: skip
    return Table(title, (*head, "doubts"), rows, frozenset(head[1:]))


def summary(found: Sequence[Predicted]) -> str:
    """Medians over all rows, and whether slower was said to be slower."""
    roofline = median(each.off_roofline for each in found)
    smaller = median(each.off_smaller for each in found)
    profile = median(each.off_profile for each in found)
    spread = median(each.spread for each in found)
    order = spearman([e.roofline_s for e in found], [median(e.runs_s) for e in found])
    return (
        f"median error {100 * roofline:.0f} % by the roofline, {100 * smaller:.0f} % by runs of a "
        f"smaller size, {100 * profile:.0f} % by a profile of the same size; "
        f"runs {100 * spread:.0f} % apart; Spearman {order:.2f}"
    )


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of ranks (Spearman 1904), without ties.

    >>> spearman([1, 2, 3], [10, 20, 40]), spearman([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    n = len(first)
    if n < 2:
        return 1.0
    ranks = [np.argsort(np.argsort(np.array(values))) for values in (first, second)]
    apart = float(((ranks[0] - ranks[1]) ** 2).sum())
    return 1 - 6 * apart / (n * (n**2 - 1))

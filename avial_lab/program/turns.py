"""The turns of a program of loops, and what they cost.

Build, Built, demands -> Turns, PhaseCosts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from avial_lab.artifact.explanation import LoopReport
from avial_lab.artifact.kernels import KernelRow
from avial_lab.compiler.requests import Build, Built, LoopTimes, Walk, Weighed
from avial_lab.core.errors import OptionError
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.topology import Topology
from avial_lab.planning.phase_costs import PhaseCosts
from avial_lab.planning.turns import Turns
from avial_lab.program.compiler_client import shared_compiler

DEFAULT_TRIPS = 2
"""Turns of a loop whose end depends on data, where nothing is known of it."""

MOST_TRIPS = 1_000_000


@dataclass(frozen=True)
class Walked:
    """A run before it happens: what the ranks of `topology` do, and what that costs."""

    turns: Turns
    costs: PhaseCosts
    topology: Topology


def turns_of(question: Build, built: Built | None, trips: int) -> Turns:
    """Of the program that `built` is, or of one that is lowered for it as `question` says."""
    if not 1 <= trips <= MOST_TRIPS:
        raise OptionError(f"trips must be from 1 to {MOST_TRIPS:,}; got {trips}")
    return shared_compiler().ask(Walk(question, built, trips))


def trips_in(question: Build, built: Built, begun: Mapping[str, int]) -> int:
    """How many turns a loop whose end depends on data took in a run that began its phases so often:
    what a phase in it is begun more often for one turn more is the same for every turn.
    """
    two, three = (turns_of(question, built, trips).begun for trips in (2, 3))
    for phase, times in begun.items():
        each = three.get(phase, 0) - two.get(phase, 0)
        if each > 0:
            return max(1, DEFAULT_TRIPS + round((times - two[phase]) / each))
    return DEFAULT_TRIPS


def whole_demands(
    begun: Mapping[str, int], reports: Sequence[LoopReport], weighed: Weighed
) -> dict[str, Demand]:
    """Of each phase as it is begun, over all its turns: with what was fused with it, which is the
    loop around those, or the first of them.
    """
    found: dict[str, Demand] = {}
    around: list[LoopReport] = []
    last = ""
    for report in reports:
        around = [*around[: report.depth], report]
        name = next((each.name for each in reversed(around) if each.name in begun), last)
        demand = weighed.demands.get(report.name)
        if not name or demand is None:
            continue
        last = name
        times = weighed.runs.get(report.name, begun[name])
        if report.name == name:
            times = begun[name]
        known = found.get(name, Demand(0, 0, "f32"))
        found[name] = Demand(
            known.flops + round(times * demand.flops),
            known.nbytes + round(times * demand.nbytes),
            max(known.element, demand.element),
            known.loaded_bytes + round(times * demand.loaded_bytes),
        )
    return found


def whole_times(begun: Mapping[str, int], times: LoopTimes) -> dict[str, CoreTime]:
    """Of each phase over all its turns."""
    return {name: each.times(begun[name]) for name, each in times.phases.items() if name in begun}


def launches_by_phase(kernels: Iterable[KernelRow]) -> dict[str, float]:
    """Of all kernels that a turn of a phase launches, by the phase's name as symbols have it."""
    found: dict[str, float] = {}
    for kernel in kernels:
        found[kernel.launcher] = found.get(kernel.launcher, 0.0) + kernel.launches
    return found

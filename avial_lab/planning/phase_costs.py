"""What the phases of a program of loops cost: seconds of every rank's part, turn by turn.

Turns, demands over the whole run, a profile -> seconds of each share of each pattern.

A rank's part of the operations is its part of the iterations (by their work, where the compiler
knows it); its bytes are those that it touches. From turn to turn a phase that shrinks or grows is
taken to do so as the largest box that it touches does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from avial_lab.core.words import brief, count
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.platform import Node
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import CostSource, core_busy_s, seconds_on_gpu
from avial_lab.planning.turns import Pattern, Turns


@dataclass(frozen=True, eq=False)
class ShareCost:
    """Of each share of a pattern: seconds alone at its place, and the bytes that go through the
    node's memory meanwhile. launches: of kernels, for each part of it that a device does.
    """

    seconds: np.ndarray
    memory_bytes: np.ndarray
    launches: float = 1.0


@dataclass(frozen=True)
class PhaseCosts:
    """demands: of all turns of a phase together. profile: seconds by phase and device's name, of
    all turns together, of earlier runs of this program. launches: of kernels in a turn of a phase
    on a device, where it is not one.
    """

    demands: Mapping[str, Demand] = field(default_factory=dict[str, Demand])
    profile: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    launches: Mapping[str, float] = field(default_factory=dict[str, float])
    loops: Mapping[int, Mapping[str, CoreTime]] = field(
        default_factory=dict[int, Mapping[str, CoreTime]]
    )
    """By a number of cores and by phase: how long the compiled loops keep those busy, all turns of
    it together."""
    other_size: bool = False
    """Whether the profile is of runs at another size or on other ranks, and only scaled to this."""

    def __repr__(self) -> str:
        known = f"{count(len(self.demands), 'phase')} by the roofline"
        measured = len({phase for phase, _ in self.profile})
        return brief(self, f"of {known}, {count(measured, 'phase')} measured")

    @cached_property
    def _profiled(self) -> frozenset[str]:
        return frozenset(phase for phase, _ in self.profile)

    def source(self, phase: str) -> CostSource:
        """Where the seconds of a phase come from."""
        if phase in self._profiled:
            return CostSource.SCALED if self.other_size else CostSource.PROFILE
        return CostSource.ROOFLINE if phase in self.demands else CostSource.GUESSED

    def of(self, turns: Turns, topology: Topology) -> list[ShareCost]:
        """For each pattern, on the ranks of `topology`."""
        size = _sizes(turns)
        whole = np.zeros(len(turns.phases))
        for pattern, times, one in zip(turns.patterns, turns.times, size, strict=True):
            whole[pattern.phase] += times * one
        found: list[ShareCost] = []
        for pattern, one in zip(turns.patterns, size, strict=True):
            part = one / whole[pattern.phase] if whole[pattern.phase] else 0.0
            phase = turns.phases[pattern.phase]
            demand = self.demands.get(phase) if len(pattern.shares) else None
            loops = {
                cores: times[phase].times(part)
                for cores, times in self.loops.items()
                if phase in times
            }
            cost = _modelled(pattern, demand, loops, part, topology)
            found.append(replace(cost, launches=self.launches.get(phase, 1.0)))
        found = _as_written(turns, found, topology)
        return self._scaled(turns, found, topology) if self.profile else found

    def seconds(self, turns: Turns, topology: Topology) -> dict[tuple[str, str], float]:
        """Of each phase on each device, of all turns together."""
        whole = _by_place(turns, self.of(turns, topology))
        return {
            (phase, device.name): float(whole[k, topology.place_of(device.name)])
            for k, phase in enumerate(turns.phases)
            for device in topology.devices
            if topology.place_of(device.name) < turns.places
        }

    def off(self, turns: Turns, topology: Topology) -> dict[str, float]:
        """How many times as long as modelled each phase took in the runs of the profile."""
        modelled = replace(self, profile={}).seconds(turns, topology)
        taken, said = dict[str, float](), dict[str, float]()
        for (phase, device), seconds in self.profile.items():
            taken[phase] = taken.get(phase, 0.0) + seconds
            said[phase] = said.get(phase, 0.0) + modelled.get((phase, device), 0.0)
        return {phase: taken[phase] / said[phase] for phase in taken if said[phase] > 0}

    def times(self, factors: Mapping[str, float], turns: Turns, topology: Topology) -> PhaseCosts:
        """As modelled, times those factors of phases."""
        profile = {
            (phase, device): seconds * factors[phase]
            for (phase, device), seconds in self.seconds(turns, topology).items()
            if phase in factors and seconds > 0
        }
        return replace(self, profile=profile, other_size=bool(profile))

    def _scaled(
        self, turns: Turns, found: Sequence[ShareCost], topology: Topology
    ) -> list[ShareCost]:
        """What was measured, divided among the turns as the model has it."""
        modelled = _by_place(turns, found)
        factor = np.ones_like(modelled)
        number = {name: k for k, name in enumerate(turns.phases)}
        places = {device.name: topology.place_of(device.name) for device in topology.devices}
        for (phase, device), seconds in self.profile.items():
            place = places.get(device)
            if phase in number and place is not None and place < turns.places:
                said = modelled[number[phase], place]
                if said > 0:
                    factor[number[phase], place] = seconds / said
        return [
            replace(cost, seconds=cost.seconds * factor[pattern.phase, pattern.places])
            for pattern, cost in zip(turns.patterns, found, strict=True)
        ]


def _by_place(turns: Turns, costs: Sequence[ShareCost]) -> np.ndarray:
    """Seconds of all turns together; (phases, places)."""
    whole = np.zeros((len(turns.phases), turns.places))
    for pattern, times, cost in zip(turns.patterns, turns.times, costs, strict=True):
        np.add.at(whole[pattern.phase], pattern.places, times * cost.seconds)
    return whole


def _sizes(turns: Turns) -> list[float]:
    """How much of its phase a turn of each pattern is, in bytes of the largest box of each part."""
    return [
        float(pattern.shares[:, 7].max(initial=0))
        if pattern.everywhere
        else float(np.maximum(pattern.shares[:, 7], 1).sum())
        for pattern in turns.patterns
    ]


def _modelled(
    pattern: Pattern,
    demand: Demand | None,
    loops: Mapping[int, CoreTime],
    part: float,
    topology: Topology,
) -> ShareCost:
    """By the roofline, of each place for its part of a turn. loops: of all places together, by the
    cores of one.
    """
    touched = pattern.shares[:, 6].astype(np.float64)
    work, n = pattern.work, len(pattern.shares)
    divided = np.ones(n) if pattern.everywhere else work / max(work.sum(), 1e-300)
    flops, through, element, loaded = np.zeros(n), touched, "f64", np.zeros(n)
    if demand is not None:
        flops = demand.flops * part * divided
        # What a rank has to read in whole it touches whole, and never more than all ranks together.
        touched = np.minimum(touched, demand.nbytes * part) if part else touched
        through, element = np.maximum(touched, demand.nbytes * part * divided), demand.element
        loaded = demand.loaded_bytes * part * divided
    seconds, memory = np.zeros(n), np.zeros(n)
    hosts = np.flatnonzero(pattern.places < topology.ranks)
    hardware = topology.rank_hardware[0][pattern.places[hosts]]
    for kind, (node, cores) in enumerate(topology.rank_hardware[1]):
        at = hosts[hardware == kind]
        if at.size:
            seconds[at], memory[at] = roofline(
                core_busy_s(flops[at], divided[at], element, loops.get(cores), node, cores),
                touched[at], through[at], node, cores,
            )  # fmt: skip
    there: list[int] = np.flatnonzero(pattern.places >= topology.ranks).tolist()
    for at in there:
        device = topology.accelerators[int(pattern.places[at]) - topology.ranks]
        gpu = topology.accelerator_of(device)
        if gpu is not None:
            seconds[at] = seconds_on_gpu(flops[at], through[at], loaded[at], element, gpu)
            continue
        one = slice(at, at + 1)
        node = topology.seen_by(device.rank)
        busy_s = core_busy_s(flops[one], divided[one], element, loops.get(1), node, cores=1)
        seconds[one], memory[one] = roofline(busy_s, touched[one], through[one], node, cores=1)
    return ShareCost(seconds, memory)


def _as_written(turns: Turns, costs: Sequence[ShareCost], topology: Topology) -> list[ShareCost]:
    """With what a run finds in caches and in memory: the caller has written all arrays before it,
    so that each lies in the cache that holds them all, or in memory; phases bring what none of them
    has touched before nearer in their first turns.
    """
    found, left = list(costs), float(sum(storage.nbytes for storage in turns.storages))
    which, hardware = topology.rank_hardware
    rates = np.array([node.foreign_bytes_per_s(left, cores) for node, cores in hardware])
    seen: set[int] = set()
    rows: list[list[int]] = turns.turns.tolist()
    for phase, number, *_ in rows:
        pattern, cost = turns.patterns[number], costs[number]
        if phase in seen or not len(pattern.shares):
            continue
        seen.add(phase)
        touched = pattern.shares[:, 6].astype(np.float64)
        whole = float(touched.max() if pattern.everywhere else touched.sum())
        cold = min(left, whole)
        left -= cold
        rank = turns.driver[pattern.places]
        hosts = pattern.places < topology.ranks
        first = np.where(hosts, touched * (cold / max(whole, 1.0)) / rates[which[rank]], 0.0)
        more = np.maximum(first - cost.seconds, 0.0) / turns.times[number]
        found[number] = replace(cost, seconds=cost.seconds + more)
    return found


def roofline(
    busy_s: np.ndarray, touched: np.ndarray, through: np.ndarray, node: Node, cores: int
) -> tuple[np.ndarray, np.ndarray]:
    """Seconds on so many cores of a node, and the bytes through its memory. busy_s: of arithmetic.
    `touched` lie in the smallest cache that holds them, or in memory; `through` is what goes
    through the cores' own caches where it is more: a part that is gone through several times.
    """
    rate = np.full(touched.shape, min(node.core_bytes_per_s * cores, node.memory_bytes_per_s))
    in_memory = np.ones(touched.shape, bool)
    for room, cache_rate in reversed(node.caches):
        inside = touched <= room * cores
        rate[inside] = cache_rate * cores
        in_memory &= ~inside
    stream_s = touched / rate
    if node.caches:
        fastest = node.caches[0][1] * cores
        stream_s = np.maximum(stream_s, np.where(through > touched, through / fastest, 0))
    return np.maximum(busy_s, stream_s), np.where(in_memory, touched, 0.0)

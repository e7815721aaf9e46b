"""What a task costs: seconds on a device, and where that number comes from.

Demands of the tasks, a profile of earlier runs, the platform -> Cost of a task on a device.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from avial_lab.core.regions import size
from avial_lab.core.words import brief, count, format_bytes, format_seconds
from avial_lab.machine.constants import (
    GPU_CACHE_BYTES_PER_FLOP,
    REACHED_OF_GPU_MEMORY,
    REACHED_OF_PEAK,
)
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.devices import GPU_FAMILY
from avial_lab.machine.platform import Accelerator, Node
from avial_lab.machine.topology import Device, Topology
from avial_lab.planning.task_graph import Task, TaskGraph


class CostSource(enum.Enum):
    """Where a number comes from, the most certain first."""

    MEASURED = "measured"  # given with the graph: how long it took somewhere
    PROFILE = "profile"  # the median of earlier runs of this very program here
    SCALED = "another size"  # the roofline, times what it was off by at another size or ranks here
    ROOFLINE = "roofline"  # operations and bytes, on the ceilings of the device
    GUESSED = "guessed"  # only the bytes of what it touches are known


@dataclass(frozen=True)
class Cost:
    """Seconds of a task alone on a device, on `cores` of them; it goes through `memory_bytes` of
    the node's memory meanwhile (0: it stays in the caches).
    """

    seconds: float
    source: CostSource
    why: str
    cores: int = 1
    memory_bytes: float = 0.0

    def touching_first(self, nbytes: int, written: int, node: Node) -> Cost:
        """Where so much of what it touches has only been written by the caller, with all else that
        he wrote: from the cache that holds it all, or from memory. What was measured stays.
        """
        cores = max(1, self.cores)
        first_s = nbytes / node.foreign_bytes_per_s(written, cores)
        if first_s <= self.seconds or self.source not in (CostSource.ROOFLINE, CostSource.GUESSED):
            return self
        memory = node.in_memory(written, cores)
        where = "memory" if memory else "a cache that the caller filled"
        why = f"{self.why}; {format_bytes(nbytes)} of it first come from {where}"
        through = float(nbytes) if memory else self.memory_bytes
        return replace(self, seconds=first_s, why=why, memory_bytes=through)

    def __repr__(self) -> str:
        return brief(self, f"{format_seconds(self.seconds)} ({self.source.value}): {self.why}")


@dataclass(frozen=True)
class Costs:
    """What is known of the tasks of a graph. demands: of one run of a task. profile: seconds by
    task and device's name, of earlier runs; those of another device of its kind do as well. given:
    seconds of a task on a core of the fastest node.
    """

    demands: Mapping[str, Demand] = field(default_factory=dict[str, Demand])
    profile: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    given: Mapping[str, float] = field(default_factory=dict[str, float])
    matrix: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, Mapping[str, float]]
    )
    """Seconds of a task by the device's name, where they are known for each."""
    loops: Mapping[int, Mapping[str, CoreTime]] = field(
        default_factory=dict[int, Mapping[str, CoreTime]]
    )
    """By a number of cores and by task: how long the compiled loops keep those busy."""
    other_size: bool = False
    """Whether the profile is of runs at another size, and only scaled to this."""

    def of(self, task: Task, device: Device, graph: TaskGraph, topology: Topology) -> Cost:
        """What `task` costs on `device` of `topology`."""
        if task.name in self.matrix:
            seconds = self.matrix[task.name][device.name]
            return Cost(seconds, CostSource.MEASURED, f"given for {device.name}")
        if task.name in self.given:
            return self._as_given(task, device, topology)
        known = self._profiled(task, device, topology)
        modelled = self._modelled(task, device, graph, topology)
        if known is None:
            return modelled
        source, why = CostSource.PROFILE, "the median of earlier runs here"
        if self.other_size:
            source, why = CostSource.SCALED, "as earlier runs at another size were off the model"
        return Cost(
            known,
            source,
            why,
            modelled.cores,
            min(modelled.memory_bytes, known * _node(device, topology).memory_bytes_per_s),
        )

    def _profiled(self, task: Task, device: Device, topology: Topology) -> float | None:
        """On that device, else on the first of its kind."""
        times = self._by_task.get(task.name, {})
        if device.name in times:
            return times[device.name]
        kinds = {each.name: each.kind for each in topology.devices}
        return next((s for name, s in times.items() if kinds.get(name) is device.kind), None)

    @cached_property
    def _by_task(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for (task, device), seconds in self.profile.items():
            found.setdefault(task, {})[device] = seconds
        return found

    def alike(self, device: Device, topology: Topology) -> tuple[object, ...]:
        """Devices for which this is equal cost the same."""
        named = device.name in self._named
        cores = topology.cores_of_rank[device.rank]
        gpu, hardware = topology.accelerator_of(device), _node(device, topology).hardware
        return device.kind.name, hardware, cores, gpu, device.name if named else ""

    @cached_property
    def _named(self) -> frozenset[str]:
        """The devices whose names tell costs apart."""
        by_device = {name for seconds in self.matrix.values() for name in seconds}
        return frozenset({name for _, name in self.profile} | by_device)

    def _as_given(self, task: Task, device: Device, topology: Topology) -> Cost:
        fastest = topology.speeds.fastest_flops_per_s
        return _given_cost(self.given[task.name], _node(device, topology).core_flops_per_s, fastest)

    def _modelled(self, task: Task, device: Device, graph: TaskGraph, topology: Topology) -> Cost:
        demand, source = self.demands.get(task.name), CostSource.ROOFLINE
        if demand is None:
            demand, source = Demand(0, _touched_bytes(task, graph)), CostSource.GUESSED
        gpu = topology.accelerator_of(device)
        if gpu is not None:
            return _on_gpu(demand, gpu, source)
        node = _node(device, topology)
        cores = 1 if device.kind.family == GPU_FAMILY else topology.cores_of_rank[device.rank]
        cost = _on_cores(demand, self._loops_of(task.name, cores), node, cores, source)
        return replace(cost, why=f"{cost.why}, emulated") if device.emulated else cost

    def _loops_of(self, task: str, cores: int) -> CoreTime | None:
        """On so many cores; else on as many of them as somebody asked for."""
        known = max((n for n in self.loops if n <= cores), default=0)
        return self.loops.get(known, {}).get(task)


@lru_cache(maxsize=4096)
def _given_cost(given_s: float, flops_per_s: float, fastest: float) -> Cost:
    """(Made once for all tasks that take as long: to make one takes longer than to look it up.)"""
    slower = flops_per_s < fastest
    why = "given with the graph" + (", for the fastest node's cores" if slower else "")
    return Cost(given_s * fastest / flops_per_s, CostSource.MEASURED, why)


def _on_gpu(demand: Demand, gpu: Accelerator, source: CostSource) -> Cost:
    seconds = seconds_on_gpu(demand.flops, demand.nbytes, demand.loaded_bytes, demand.element, gpu)
    return Cost(seconds, source, f"{_words(demand, source)}, on {gpu.name}", cores=0)


def seconds_on_gpu(
    flops: float, nbytes: float, loaded: float, element: str, gpu: Accelerator
) -> float:
    """Seconds, on the ceilings of its arithmetic, of its memory for what is touched once, and of
    its caches for all that threads load.
    """
    peak = gpu.flops_per_s * (2 if element == "f32" else 1) * REACHED_OF_PEAK
    streamed = nbytes / (gpu.memory_bytes_per_s * REACHED_OF_GPU_MEMORY)
    return max(flops / peak, streamed, loaded / (gpu.flops_per_s * GPU_CACHE_BYTES_PER_FLOP))


def _on_cores(
    demand: Demand, loops: CoreTime | None, node: Node, cores: int, source: CostSource
) -> Cost:
    """(An emulated GPU is one core of its rank.)"""
    busy_s = float(core_busy_s(np.array(demand.flops), 1.0, demand.element, loops, node, cores))
    stream_s = demand.nbytes / node.stream_bytes_per_s(demand.nbytes, cores)
    bound = "memory"
    if busy_s >= stream_s:
        bound = "arithmetic" if loops is None else "its loops, as they are compiled"
    through = float(demand.nbytes) if node.in_memory(demand.nbytes, cores) else 0.0
    source = CostSource.ROOFLINE if loops is not None else source
    why = f"{_words(demand, source)}, on {count(cores, 'core')}, bound by {bound}"
    return Cost(max(busy_s, stream_s), source, why, cores, through)


def core_busy_s(
    flops: np.ndarray,
    part: np.ndarray | float,
    element: str,
    loops: CoreTime | None,
    node: Node,
    cores: int,
) -> np.ndarray:
    """Seconds of arithmetic of parts of a whole: as its compiled loops have it, with threads that
    begin, and never faster than cores compute; of what has no loops, as many operations of its
    `flops` as loops usually reach. flops: of each part, (n,); loops: of the whole; part: of that.
    """
    at_most = node.core_flops_per_s * cores * (2 if element == "f32" else 1)
    if loops is None:
        return flops / (at_most * REACHED_OF_PEAK)
    cycle_s = this_cpu().flops_per_cycle / node.core_flops_per_s
    busy_s = loops.cycles * part * cycle_s + loops.teams * node.team_s
    return np.maximum(busy_s, flops / at_most)


def _words(demand: Demand, source: CostSource) -> str:
    if source is CostSource.GUESSED:
        return f"{format_bytes(demand.nbytes)} touched, operations not known"
    return f"{demand.flops:,} flops on {format_bytes(demand.nbytes)}"


def _touched_bytes(task: Task, graph: TaskGraph) -> int:
    itemsize = {storage.name: storage.itemsize for storage in graph.storages}
    return sum(size(access.region) * itemsize[access.storage] for access in task.accesses)


def _node(device: Device, topology: Topology) -> Node:
    """As the device's rank sees it."""
    return topology.seen_by(device.rank)

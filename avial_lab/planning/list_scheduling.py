"""List scheduling on devices of different speed: what the policies share.

TaskGraph, Topology, Costs -> Problem (arrays) -> Timetable -> placements. Messages take their
latency and their bytes, and do not slow each other: that is the model of the papers, and what the
simulator then judges.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from avial_lab.core.words import brief, count, format_seconds
from avial_lab.machine.topology import Device, Target, Topology
from avial_lab.planning.candidates import fitting_devices
from avial_lab.planning.costs import Costs
from avial_lab.planning.schedule import Placement
from avial_lab.planning.simulator.native import native
from avial_lab.planning.task_graph import Hazard, TaskGraph

INFINITE = float("inf")


@dataclass(frozen=True)
class Problem:
    """n tasks in program order, d devices. cost_s: (n, d), infinite where a task may not run.
    before[k]: (task, bytes) that task k waits for, earlier ones all. latency_s, s_per_byte: (d, d)
    of a message from device to device, 0 within a rank.
    """

    cost_s: np.ndarray
    before: tuple[tuple[tuple[int, int], ...], ...]
    latency_s: np.ndarray
    s_per_byte: np.ndarray

    @property
    def tasks(self) -> int:
        return self.cost_s.shape[0]

    @property
    def devices(self) -> int:
        return self.cost_s.shape[1]

    def arrival_s(self, source: int, nbytes: int) -> np.ndarray:
        """How long so many bytes take from a device to each; (d,)."""
        if not nbytes:
            return np.zeros(self.devices)
        return self.latency_s[source] + nbytes * self.s_per_byte[source]

    @cached_property
    def after(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """(task, bytes) that wait for task k."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.tasks)]
        for k, edges in enumerate(self.before):
            for source, nbytes in edges:
                found[source].append((k, nbytes))
        return tuple(map(tuple, found))

    @cached_property
    def mean_cost_s(self) -> np.ndarray:
        """Over the devices that a task may run on; (n,)."""
        allowed = np.isfinite(self.cost_s)
        return np.where(allowed, self.cost_s, 0).sum(axis=1) / allowed.sum(axis=1)

    def mean_message_s(self, nbytes: int) -> float:
        """Between two devices that are not one; 0 where there is one device only."""
        if not nbytes:
            return 0.0
        return self._mean_latency_s + nbytes * self._mean_s_per_byte

    @cached_property
    def _mean_latency_s(self) -> float:
        return _mean_off_diagonal(self.latency_s)

    @cached_property
    def _mean_s_per_byte(self) -> float:
        return _mean_off_diagonal(self.s_per_byte)

    @cached_property
    def upward_s(self) -> np.ndarray:
        """Upward ranks: a task's mean cost, and the longest way to the end from there; (n,)
        (Topcuoglu, Hariri, Wu 2002, equation 5).
        """
        found = np.zeros(self.tasks)
        for k in reversed(range(self.tasks)):
            rest = (self.mean_message_s(nbytes) + found[j] for j, nbytes in self.after[k])
            found[k] = self.mean_cost_s[k] + max(rest, default=0.0)
        return found

    @cached_property
    def allowed(self) -> list[list[int]]:
        """The devices that each task may run on."""
        rows: list[list[bool]] = np.isfinite(self.cost_s).tolist()
        return [[device for device, fits in enumerate(row) if fits] for row in rows]

    @property
    def by_upward(self) -> list[int]:
        """The tasks by falling upward ranks; ties by program order, along which edges point."""
        return np.argsort(-self.upward_s, kind="stable").tolist()

    def __repr__(self) -> str:
        return brief(self, f"of {count(self.tasks, 'task')} on {count(self.devices, 'device')}")


def _mean_off_diagonal(values: np.ndarray) -> float:
    devices = values.shape[0]
    if devices < 2:
        return 0.0
    return float(values.sum() - np.trace(values)) / (devices * (devices - 1))


def problem_of(graph: TaskGraph, topology: Topology, costs: Costs) -> Problem:
    """Raises ScheduleError for a target that no device satisfies."""
    number = {task.name: k for k, task in enumerate(graph.tasks)}
    moved: list[dict[int, int]] = [{} for _ in graph.tasks]
    for edge in graph.dependencies:
        source, waits = number[edge.before], moved[number[edge.after]]
        reads = edge.hazard is Hazard.READ_AFTER_WRITE
        waits[source] = waits.get(source, 0) + (edge.nbytes if reads else 0)
    latency_s, s_per_byte = _between(topology)
    return Problem(
        _cost_matrix(graph, topology, costs),
        tuple(tuple(waits.items()) for waits in moved),
        latency_s,
        s_per_byte,
    )


def _cost_matrix(graph: TaskGraph, topology: Topology, costs: Costs) -> np.ndarray:
    """Devices that are alike cost the same, and are asked for once."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for k, device in enumerate(topology.devices):
        alike.setdefault(costs.alike(device, topology), []).append(k)
    groups = [(topology.devices[places[0]], np.array(places)) for places in alike.values()]
    fitting: dict[Target, np.ndarray] = {}
    found = np.full((len(graph.tasks), len(topology.devices)), INFINITE)
    for k, task in enumerate(graph.tasks):
        if task.target not in fitting:
            fits = set(fitting_devices(task, topology))
            fitting[task.target] = np.array([device in fits for device in topology.devices])
        for device, places in groups:
            there = places[fitting[task.target][places]]
            if there.size:
                found[k, there] = costs.of(task, device, graph, topology).seconds
    return found


def _between(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    """Latency and seconds per byte, from device to device."""
    platform, devices = topology.speeds, topology.devices
    number: dict[str, int] = {}
    node = np.array([number.setdefault(device.node, len(number)) for device in devices])
    latency, rate = platform.between(list(number))
    rank = np.array([device.rank for device in devices])
    apart = rank[:, None] != rank[None, :]
    pairs = np.ix_(node, node)
    return np.where(apart, latency[pairs], 0.0), np.where(apart, 1 / rate[pairs], 0.0)


class Evaluator:
    """The makespan of placements and orders, one after the other (`lists.c`)."""

    def __init__(self, problem: Problem) -> None:
        self._function = _list_makespan()
        edges = [edge for waits in problem.before for edge in waits]
        begin = np.cumsum([0, *(len(waits) for waits in problem.before)], dtype=np.int64)
        self._kept = (
            np.ascontiguousarray(problem.cost_s, np.float64),
            begin,
            np.array([source for source, _ in edges], np.int32),
            np.array([nbytes for _, nbytes in edges], np.float64),
            np.ascontiguousarray(problem.latency_s, np.float64),
            np.ascontiguousarray(problem.s_per_byte, np.float64),
            np.zeros(problem.devices),
            np.zeros(problem.tasks),
        )
        self._addresses = [each.ctypes.data for each in self._kept]
        self._sizes = (problem.tasks, problem.devices)

    def makespan_s(self, order: np.ndarray, device: np.ndarray) -> float:
        """order: every task once, along the edges; device: of each task; both int32."""
        order_at, device_at = order.ctypes.data, device.ctypes.data
        return self._function(*self._sizes, order_at, device_at, *self._addresses)

    @property
    def end_s(self) -> np.ndarray:
        """Of each task, at the last call."""
        return self._kept[-1]


@cache
def _list_makespan() -> Callable[..., float]:
    function = native("lists.c").avial_list_makespan
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_int64, ctypes.c_int64, *([ctypes.c_void_p] * 10)]
    return function


# Tasks get their time one by one ------------------------------------------------------------------


@dataclass
class Timetable:
    """Which task runs where from when to when; a device does one after the other."""

    problem: Problem
    device: np.ndarray = field(init=False)
    start_s: np.ndarray = field(init=False)
    end_s: np.ndarray = field(init=False)
    order: list[int] = field(default_factory=list[int])
    """In which the tasks were placed."""

    def __post_init__(self) -> None:
        self.device = np.full(self.problem.tasks, -1)
        self.start_s, self.end_s = np.zeros(self.problem.tasks), np.zeros(self.problem.tasks)
        self._busy: list[list[tuple[float, float]]] = [[] for _ in range(self.problem.devices)]
        self._free_s = np.zeros(self.problem.devices)

    def ready_s(self, task: int) -> np.ndarray:
        """When all that the task waits for has arrived, by device; (d,)."""
        found = np.zeros(self.problem.devices)
        for source, nbytes in self.problem.before[task]:
            arrived = self.end_s[source] + self.problem.arrival_s(int(self.device[source]), nbytes)
            np.maximum(found, arrived, out=found)
        return found

    def finish_s(self, task: int) -> tuple[np.ndarray, np.ndarray]:
        """When it could begin and end on each device, in a gap if it fits into one; (d,) each."""
        ready, cost = self.ready_s(task), self.problem.cost_s[task]
        start = np.maximum(ready, self._free_s)
        for device in np.flatnonzero((ready + cost < self._free_s) & np.isfinite(cost)):
            start[device] = self._gap(int(device), float(ready[device]), float(cost[device]))
        return start, start + cost

    def put(self, task: int, device: int, start_s: float) -> None:
        end_s = start_s + float(self.problem.cost_s[task, device])
        self.device[task], self.start_s[task], self.end_s[task] = device, start_s, end_s
        if end_s > start_s:
            busy = self._busy[device]
            busy.insert(bisect_left(busy, (start_s, end_s)), (start_s, end_s))
        self._free_s[device] = max(self._free_s[device], end_s)
        self.order.append(task)

    @property
    def makespan_s(self) -> float:
        return float(self.end_s.max(initial=0.0))

    def in_order(self) -> list[int]:
        """The tasks by their start; one that takes no time before what waits for it."""
        place = {task: k for k, task in enumerate(self.order)}
        return sorted(self.order, key=lambda task: (self.start_s[task], place[task]))

    def _gap(self, device: int, ready_s: float, cost_s: float) -> float:
        """The earliest begin from `ready_s` on in which nothing else runs."""
        busy = self._busy[device]
        k = bisect_left(busy, (ready_s, INFINITE))
        begin = max(ready_s, busy[k - 1][1]) if k else ready_s
        for start, end in busy[k:]:
            if begin + cost_s <= start:
                return begin
            begin = max(begin, end)
        return begin


def placed_by(
    policy: str,
    timetable: Callable[[Problem], tuple[Timetable, np.ndarray]],
    graph: TaskGraph,
    topology: Topology,
    costs: Costs,
) -> tuple[Placement, ...]:
    """What a list policy's timetable says, which gives also when each task would have ended on each
    device; (n, d).
    """
    problem = problem_of(graph, topology, costs)
    times, ends = timetable(problem)
    reasons = [
        finish_reason(policy, topology.devices, ends[k], int(times.device[k]))
        for k in range(problem.tasks)
    ]
    return placements_of(graph, topology, times, reasons)


def placements_of(
    graph: TaskGraph, topology: Topology, times: Timetable, reasons: Sequence[str]
) -> tuple[Placement, ...]:
    """What the timetable says, in the order of its starts."""
    found: list[Placement] = []
    for k in times.in_order():
        task, device = graph.tasks[k], topology.devices[int(times.device[k])]
        level = graph.level_of[task.name]
        found.append(Placement(task.name, device.name, device.rank, level, reasons[k]))
    return tuple(found)


def finish_reason(policy: str, devices: Sequence[Device], ends: np.ndarray, chosen: int) -> str:
    """`heft: finishes at 3 ms here; 4 ms on cpu1, 5 ms on cpu2`: with the nearest alternatives."""
    earliest: list[int] = np.argsort(ends, kind="stable").tolist()
    others = [k for k in earliest if k != chosen]
    told = [
        f"{format_seconds(ends[k])} on {devices[k].name}" for k in others[:2] if ends[k] < INFINITE
    ]
    here = f"{policy}: would finish at {format_seconds(float(ends[chosen]))} here"
    if not told:
        return f"{here}, the only device for it"
    return f"{here}; {', '.join(told)}"

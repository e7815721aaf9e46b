"""The critical path on the device that is fastest for all of it; everything else near its data.

The first half is CPOP's (Topcuoglu, Hariri, Wu 2002, section 4.2); the second takes, among devices
that end a task about as early, the one that needs fewest bytes from elsewhere.
"""

from __future__ import annotations

import numpy as np

from avial_lab.core.words import format_bytes
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import (
    Problem,
    Timetable,
    finish_reason,
    placements_of,
    problem_of,
)
from avial_lab.planning.schedule import Placement
from avial_lab.planning.task_graph import TaskGraph

NEAR = 1.1
"""Within this factor of the earliest end a device may be taken for its data."""


def place(graph: TaskGraph, topology: Topology, costs: Costs) -> tuple[Placement, ...]:
    problem = problem_of(graph, topology, costs)
    times, reasons = Timetable(problem), [""] * problem.tasks
    path = critical_path(problem)
    fast = _fastest(problem, path)
    ranks = np.array([device.rank for device in topology.devices])
    for k in problem.by_upward:
        starts, ends = times.finish_s(k)
        if k in path and fast is not None:
            device = fast
            words = "critical-locality: the critical path stays on one device"
        else:
            missing = _missing_bytes(problem, times, ranks, k)
            near = ends <= ends.min() * NEAR
            device = int(np.lexsort((ends, np.where(near, missing, np.inf)))[0])
            words = finish_reason("critical-locality", topology.devices, ends, device)
            words += f"; {format_bytes(int(missing[device]))} from other ranks"
        times.put(k, device, float(starts[device]))
        reasons[k] = words
    return placements_of(graph, topology, times, reasons)


def critical_path(problem: Problem) -> frozenset[int]:
    """The tasks on a longest way, by mean costs."""
    if not problem.tasks:
        return frozenset()
    task = int(np.argmax(problem.upward_s))
    path = [task]
    while problem.after[task]:
        task = max(
            problem.after[task],
            key=lambda edge: (
                problem.mean_message_s(edge[1]) + problem.upward_s[edge[0]],
                -edge[0],
            ),
        )[0]
        path.append(task)
    return frozenset(path)


def _fastest(problem: Problem, path: frozenset[int]) -> int | None:
    """The device that may run all of the path and does so first; None where none may."""
    total = problem.cost_s[sorted(path)].sum(axis=0)
    device = int(np.argmin(total)) if total.size else -1
    return device if device >= 0 and np.isfinite(total[device]) else None


def _missing_bytes(problem: Problem, times: Timetable, ranks: np.ndarray, task: int) -> np.ndarray:
    """What would have to come from other ranks, by device; (d,)."""
    found = np.zeros(problem.devices)
    for source, nbytes in problem.before[task]:
        found += np.where(ranks == ranks[times.device[source]], 0, nbytes)
    return found

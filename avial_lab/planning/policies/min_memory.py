"""The fullest rank as empty as may be: every task to where it adds least to what is held.

A rank holds what its tasks touch until the run ends (`runtime/rank`), so that its bytes are those
of all regions together.
"""

from __future__ import annotations

import numpy as np

from avial_lab.core.words import format_bytes
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import Timetable, placements_of, problem_of
from avial_lab.planning.memory import HeldMemory
from avial_lab.planning.schedule import Placement
from avial_lab.planning.task_graph import TaskGraph


def place(graph: TaskGraph, topology: Topology, costs: Costs) -> tuple[Placement, ...]:
    """By upward ranks; of devices that leave the fullest rank as it is, the one that adds least; of
    equal ones the emptiest rank, then the earliest end.
    """
    problem = problem_of(graph, topology, costs)
    times, held = Timetable(problem), HeldMemory(graph, topology.ranks)
    ranks = np.array([device.rank for device in topology.devices])
    reasons = [""] * problem.tasks
    for k in problem.by_upward:
        task = graph.tasks[k]
        starts, ends = times.finish_s(k)
        there = held.after(task)
        fullest = np.maximum(there, max(held.nbytes, default=0))[ranks].astype(float)
        fullest[~np.isfinite(ends)] = np.inf
        added = (there - np.array(held.nbytes))[ranks]
        device = int(np.lexsort((ends, there[ranks], added, fullest))[0])
        times.put(k, device, float(starts[device]))
        held.add(task, int(ranks[device]))
        total = format_bytes(held.nbytes[int(ranks[device])])
        new = format_bytes(int(added[device]))
        reasons[k] = f"min-memory: {new} more on rank {ranks[device]}, which then holds {total}"
    return placements_of(graph, topology, times, reasons)

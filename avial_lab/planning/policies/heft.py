"""Heterogeneous earliest finish time: the longest way to the end goes first, each task to where it
ends first (Topcuoglu, Hariri, Wu 2002, section 4.1).
"""

from __future__ import annotations

import numpy as np

from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import Problem, Timetable, placed_by
from avial_lab.planning.schedule import Placement
from avial_lab.planning.task_graph import TaskGraph


def place(graph: TaskGraph, topology: Topology, costs: Costs) -> tuple[Placement, ...]:
    """By upward ranks, with insertion into gaps."""
    return placed_by("heft", timetable, graph, topology, costs)


def timetable(problem: Problem) -> tuple[Timetable, np.ndarray]:
    """The schedule, and when each task would have ended on each device; (n, d)."""
    times = Timetable(problem)
    ends = np.zeros((problem.tasks, problem.devices))
    for task in problem.by_upward:
        starts, ends[task] = times.finish_s(task)
        device = int(np.argmin(ends[task]))
        times.put(task, device, float(starts[device]))
    return times, ends

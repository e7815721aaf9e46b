"""Predict earliest finish time: a device counts with what it makes of the tasks that follow
(Arabnejad, Barbosa 2014).
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import Problem, Timetable, placed_by
from avial_lab.planning.schedule import Placement
from avial_lab.planning.task_graph import TaskGraph


def place(graph: TaskGraph, topology: Topology, costs: Costs) -> tuple[Placement, ...]:
    """By the mean of the optimistic cost table, with insertion into gaps."""
    return placed_by("peft", timetable, graph, topology, costs)


def timetable(problem: Problem) -> tuple[Timetable, np.ndarray]:
    """The schedule, and when each task would have ended on each device; (n, d)."""
    table = optimistic_costs(problem)
    priority = table.mean(axis=1)
    times = Timetable(problem)
    ends = np.zeros((problem.tasks, problem.devices))
    waits = [len(edges) for edges in problem.before]
    ready = [(-float(priority[k]), k) for k in range(problem.tasks) if not waits[k]]
    ready.sort()
    while ready:
        _, task = heappop(ready)
        starts, ends[task] = times.finish_s(task)
        device = int(np.argmin(ends[task] + table[task]))
        times.put(task, device, float(starts[device]))
        for after, _ in problem.after[task]:
            waits[after] -= 1
            if not waits[after]:
                heappush(ready, (-float(priority[after]), after))
    return times, ends


def optimistic_costs(problem: Problem) -> np.ndarray:
    """The longest way from a task's end to the last, each task on its best device; (n, d) by the
    device that the task itself is on (their equation 4).
    """
    table = np.zeros((problem.tasks, problem.devices))
    for task in reversed(range(problem.tasks)):
        for after, nbytes in problem.after[task]:
            elsewhere = table[after] + problem.cost_s[after] + problem.mean_message_s(nbytes)
            here = table[after] + problem.cost_s[after]
            # On the device itself there is no message.
            best = np.minimum(here, elsewhere.min())
            np.maximum(table[task], best, out=table[task])
    return table

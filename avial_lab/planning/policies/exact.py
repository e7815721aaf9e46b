"""The optimum, proven, of a few tasks: a model with optional intervals for CP-SAT (OR-tools).

Each task has an interval on each device that it may run on, one of which is there; intervals of a
device do not overlap; a message takes its latency and bytes, and slows no other.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from avial_lab.core.errors import AvialError, ScheduleError
from avial_lab.core.words import format_seconds
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import Problem, Timetable, placements_of, problem_of
from avial_lab.planning.policies import heft
from avial_lab.planning.schedule import Placement
from avial_lab.planning.task_graph import TaskGraph

MOST_TASKS = 30
LIMIT_S = 60.0
TICKS = 10**7
"""Of the clock in the longest schedule that is looked at: its numbers are whole."""


def place(graph: TaskGraph, topology: Topology, costs: Costs) -> tuple[Placement, ...]:
    """Raises ScheduleError for more tasks than it can do, AvialError without OR-tools."""
    if len(graph.tasks) > MOST_TASKS:
        raise ScheduleError(
            f"policy 'exact' is for at most {MOST_TASKS} tasks, and there are {len(graph.tasks)}",
            hint="use --policy search",
        )
    problem = problem_of(graph, topology, costs)
    times, proven = timetable(problem)
    other = heft.timetable(problem)[0].makespan_s
    best = times.makespan_s
    more = f"; heft is {100 * (other / best - 1):.0f} % above" if best else ""
    what = "the optimum" if proven else "the best found"
    reason = f"exact: {format_seconds(best)} in all, {what} without contention{more}"
    return placements_of(graph, topology, times, [reason] * problem.tasks)


def timetable(problem: Problem) -> tuple[Timetable, bool]:
    """The best schedule found, and whether there is proof that none is better."""
    cp_model = _cp_sat()
    start_from = heft.timetable(problem)[0]
    tick_s = _tick_s(problem, start_from.makespan_s)
    model: Any = cp_model.CpModel()
    horizon = max(1, round(start_from.makespan_s / tick_s))
    starts: list[Any] = [model.new_int_var(0, horizon, f"s{k}") for k in range(problem.tasks)]
    there: list[dict[int, Any]] = []
    lengths: list[Any] = []
    on_device: list[list[Any]] = [[] for _ in range(problem.devices)]
    for k in range(problem.tasks):
        there.append({})
        for device in np.flatnonzero(np.isfinite(problem.cost_s[k])).tolist():
            chosen = model.new_bool_var(f"x{k}_{device}")
            ticks = round(problem.cost_s[k, device] / tick_s)
            interval = model.new_optional_fixed_size_interval_var(
                starts[k], ticks, chosen, f"i{k}_{device}"
            )
            there[k][device] = chosen
            on_device[device].append(interval)
        model.add_exactly_one(there[k].values())
        lengths.append(sum(x * round(problem.cost_s[k, d] / tick_s) for d, x in there[k].items()))
    for intervals in on_device:
        model.add_no_overlap(intervals)
    makespan = model.new_int_var(0, horizon, "makespan")
    for k in range(problem.tasks):
        model.add(makespan >= starts[k] + lengths[k])
        for source, nbytes in problem.before[k]:
            _after(model, problem, (source, k, nbytes), starts, lengths, there, tick_s)
    model.minimize(makespan)
    solver: Any = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = LIMIT_S
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return start_from, False  # rounding left no room: what the list scheduler found is as good
    begun = [solver.value(each) for each in starts]
    device = [next(d for d, x in row.items() if solver.value(x)) for row in there]
    return _timetable(problem, begun, device), status == cp_model.OPTIMAL


def _after(
    model: Any,  # noqa: ANN401  OR-tools has no types here
    problem: Problem,
    edge: tuple[int, int, int],
    starts: list[Any],
    lengths: list[Any],
    there: list[dict[int, Any]],
    tick_s: float,
) -> None:
    """`source` ends, and its message arrives, before `task` begins."""
    source, task, nbytes = edge
    model.add(starts[task] >= starts[source] + lengths[source])
    for here, x in there[source].items():
        ways = problem.arrival_s(here, nbytes)
        for dest, y in there[task].items():
            ticks = round(float(ways[dest]) / tick_s)
            if ticks:
                begins = starts[task] >= starts[source] + lengths[source] + ticks
                model.add(begins).only_enforce_if([x, y])


def _tick_s(problem: Problem, horizon_s: float) -> float:
    """1 where all times are whole, so that nothing is rounded; else a part of the horizon."""
    finite = problem.cost_s[np.isfinite(problem.cost_s)]
    messages = np.concatenate(
        [
            problem.arrival_s(d, nbytes)
            for edges in problem.before
            for _, nbytes in edges
            for d in range(problem.devices)
        ]
        or [np.zeros(1)]
    )
    whole = np.concatenate([finite, messages])
    if horizon_s >= 1 and np.array_equal(whole, np.round(whole)):
        return 1.0
    return horizon_s / TICKS if horizon_s else 1.0


def _timetable(problem: Problem, begun: list[int], device: list[int]) -> Timetable:
    """The same order on the same devices, each as early as it can be, in unrounded times."""
    times = Timetable(problem)
    free = np.zeros(problem.devices)
    for k in sorted(range(problem.tasks), key=lambda k: (begun[k], k)):
        start = max(float(times.ready_s(k)[device[k]]), float(free[device[k]]))
        times.put(k, device[k], start)
        free[device[k]] = times.end_s[k]
    return times


def _cp_sat() -> Any:  # noqa: ANN401
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError:
        raise AvialError(
            "policy 'exact' needs OR-tools",
            hint='install it: pip install "avial_lab[exact]", or pip install ortools',
        ) from None

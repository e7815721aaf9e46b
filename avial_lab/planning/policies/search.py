"""Local search from the best list schedule: tasks move to other devices and other places in the
order, and the simulator is the judge of what is found.

Threshold accepting (Dueck, Scheuer 1990): a move that makes the whole longer is kept as long as it
is within a threshold that falls to nothing. Moves are judged without contention (`lists.c`); the
best of them, and every list schedule, are then simulated with it. From the best of those few moves
more are made that are simulated, each: placements as good without contention differ with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from avial_lab.core.words import format_seconds
from avial_lab.machine.topology import Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import Evaluator, Problem, problem_of
from avial_lab.planning.placement import schedule_by_hand
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Placement
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import TaskGraph

BUDGET_S = 2.0
"""By default: what somebody waits for at a compilation."""

MOST_MOVES, MOST_WORK = 30_000, 20_000_000
"""Moves, and moves times tasks: about a second, so that the budget seldom decides and the same seed
finds the same."""

MOVED, SWAPPED = 0.4, 0.55
"""Of moves the part in which a task goes to another device, and that together with the part in
which two tasks exchange theirs; in the others one is shifted in the order."""

CONTENDED = 1.001
"""Where the best simulated takes as many times as long as the best without contention, there may be
a better one."""

SIMULATED_MOVES, SIMULATED_WORK = 400, 6_000
"""The same of moves that are simulated, each some ms."""

FIRST_THRESHOLD = 0.05
"""Of the makespan."""

Progress = Callable[[float, float], None]
"""Called with the part of the work that is done, and the best makespan so far in seconds."""

Judge = Callable[[np.ndarray, np.ndarray], float]
"""Seconds that an order of tasks takes on those devices."""

_LISTS = (Policy.HEFT, Policy.PEFT, Policy.CRITICAL_LOCALITY, Policy.MIN_MEMORY, Policy.LEVELS)


@dataclass
class _Tour:
    """An order of all tasks and a device for each; both int32. whole: whether the search for it
    came to its end, and not to a Ctrl-C.
    """

    order: np.ndarray
    device: np.ndarray
    whole: bool = True


def place(
    graph: TaskGraph,
    topology: Topology,
    costs: Costs,
    *,
    seed: int = 0,
    budget_s: float = BUDGET_S,
    progress: Progress | None = None,
) -> tuple[Placement, ...]:
    """The best found within the budget; the same for the same seed where that is not used up.

    Ctrl-C ends the search with the best so far.
    """
    candidates = [policy.place(graph, topology, costs) for policy in _LISTS]
    problem = problem_of(graph, topology, costs)
    start = min(candidates, key=lambda each: _judged(graph, topology, costs, each))
    number = {device.name: k for k, device in enumerate(topology.devices)}
    task = {each.name: k for k, each in enumerate(graph.tasks)}
    tours = [_tour(each, task, number) for each in (start, *candidates)]
    evaluator = Evaluator(problem)
    first = min(tours, key=lambda tour: evaluator.makespan_s(tour.order, tour.device))
    ends = time.monotonic() + budget_s
    found = improved(problem, first, seed=seed, budget_s=budget_s, progress=progress)
    candidates.append(_placements(graph, topology, found))
    times = [_judged(graph, topology, costs, each) for each in candidates]
    alone_s = evaluator.makespan_s(found.order, found.device)
    if found.whole and min(times) > alone_s * CONTENDED:

        def judge(order: np.ndarray, device: np.ndarray) -> float:
            placements = _placements(graph, topology, _Tour(order, device))
            return _judged(graph, topology, costs, placements)

        moves = min(SIMULATED_MOVES, SIMULATED_WORK // max(problem.tasks, 1))
        best_tour = _tour(candidates[int(np.argmin(times))], task, number)
        left_s = ends - time.monotonic()
        found = improved(problem, best_tour, seed=seed, budget_s=left_s, judge=judge, moves=moves)
        candidates.append(_placements(graph, topology, found))
        times.append(_judged(graph, topology, costs, candidates[-1]))
    best = int(np.argmin(times))
    origin = _LISTS[best].value if best < len(_LISTS) else "moves from these"
    reason = f"search: {format_seconds(times[best])} in all, from {origin}; "
    lists = zip(_LISTS, times, strict=False)
    reason += ", ".join(f"{policy.value} {format_seconds(each)}" for policy, each in lists)
    return tuple(replace(placement, reason=reason) for placement in candidates[best])


def improved(
    problem: Problem,
    first: _Tour,
    *,
    seed: int = 0,
    budget_s: float = BUDGET_S,
    progress: Progress | None = None,
    judge: Judge | None = None,
    moves: int | None = None,
) -> _Tour:
    """The best tour that so many moves from `first` come by; `judge` is by default the one that
    knows no contention.
    """
    if moves is None:
        moves = min(MOST_MOVES, MOST_WORK // max(problem.tasks, 1))
    if problem.tasks < 2:
        return first
    rng, makespan_s = np.random.default_rng(seed), judge or Evaluator(problem).makespan_s
    allowed = problem.allowed
    neighbours = _Neighbours(problem)
    now = _Tour(first.order.copy(), first.device.copy())
    length = best_length = makespan_s(now.order, now.device)
    best = _Tour(now.order.copy(), now.device.copy())
    tasks: list[int] = rng.integers(0, problem.tasks, moves).tolist()
    dice = rng.random((moves, 2)).tolist()
    ends = time.monotonic() + budget_s
    try:
        for k, task in enumerate(tasks):
            if k % 64 == 0 or judge is not None:
                if time.monotonic() > ends:
                    break
                if progress is not None:
                    progress(k / moves, best_length)
            kind, where = dice[k]
            old = now
            if kind < MOVED and len(allowed[task]) > 1:
                now = _Tour(old.order, old.device.copy())
                now.device[task] = allowed[task][int(where * len(allowed[task]))]
            elif kind < SWAPPED:
                other = int(where * problem.tasks)
                now = _Tour(old.order, old.device.copy())
                if old.device[other] in allowed[task] and old.device[task] in allowed[other]:
                    now.device[[task, other]] = old.device[[other, task]]
            else:
                now = _Tour(neighbours.shifted(old.order, task, where), old.device)
            new = makespan_s(now.order, now.device)
            threshold = FIRST_THRESHOLD * best_length * max(0.0, 1 - 1.25 * k / moves)
            if new <= length + threshold:
                length = new
                if new < best_length:
                    best_length, best = new, _Tour(now.order.copy(), now.device.copy())
                continue
            now = old
    except KeyboardInterrupt:
        best.whole = False  # what was found so far is kept
    return best


class _Neighbours:
    """How far a task may be shifted in an order."""

    def __init__(self, problem: Problem) -> None:
        self._before = [np.array([k for k, _ in each], np.int64) for each in problem.before]
        self._after = [np.array([k for k, _ in each], np.int64) for each in problem.after]

    def shifted(self, order: np.ndarray, task: int, where: float) -> np.ndarray:
        """The order with the task elsewhere, between what it waits for and what waits for it."""
        position = np.empty(order.size, np.int64)
        position[order] = np.arange(order.size)
        before, after = self._before[task], self._after[task]
        low = int(position[before].max()) + 1 if before.size else 0
        high = int(position[after].min()) - 1 if after.size else order.size - 1
        new, old = low + int(where * (high - low + 1)), int(position[task])
        made = order.copy()
        if new < old:
            made[new + 1 : old + 1] = order[new:old]
        else:
            made[old:new] = order[old + 1 : new + 1]
        made[new] = task
        return made


def _tour(placements: Sequence[Placement], task: dict[str, int], number: dict[str, int]) -> _Tour:
    order = np.array([task[each.task] for each in placements], np.int32)
    device = np.zeros(order.size, np.int32)
    device[order] = [number[each.device] for each in placements]
    return _Tour(order, device)


def _placements(graph: TaskGraph, topology: Topology, tour: _Tour) -> tuple[Placement, ...]:
    found: list[Placement] = []
    order: list[int] = tour.order.tolist()
    for k in order:
        task, device = graph.tasks[k], topology.devices[int(tour.device[k])]
        level = graph.level_of[task.name]
        found.append(Placement(task.name, device.name, device.rank, level, ""))
    return tuple(found)


def _judged(
    graph: TaskGraph, topology: Topology, costs: Costs, placements: Sequence[Placement]
) -> float:
    """The makespan with all that contends."""
    devices = {placement.task: placement.device for placement in placements}
    order = [placement.task for placement in placements]
    schedule = schedule_by_hand(graph, topology, devices, order=order)
    return simulated(schedule, costs).makespan_s

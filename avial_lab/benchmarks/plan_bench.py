"""The bench of the planner: CPU time of the simulator, the policies and the schedule, by goals.

Nothing -> Figures. Random layered graphs, the same for the same seed; CPU time of this process, so
that a neighbour counts little. For comparison, measured or published by others per task or
operation: SimGrid 3.32 from Python 260 µs, DistIR 34 to 55 µs.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from avial_lab.benchmarks.self_bench import Figure
from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.regions import Box
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import Evaluator, Problem
from avial_lab.planning.placement import schedule_tasks
from avial_lab.planning.policies import heft
from avial_lab.planning.simulator.activities import Activities, simulate
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import Access, Task, TaskGraph, build_dag

T = TypeVar("T")

PREDECESSORS, NEAR = 3, 4
"""A task waits for so many of the last `NEAR` times as many as there are hosts."""

LINK_BYTES_PER_S, LATENCY_S, FLOPS_PER_S = 1.25e9, 1e-5, 1e9


def bench_plan() -> int:
    """Print each figure; 0 where all goals are met."""
    met = True
    for figure in _figures():
        print(figure, flush=True)
        met = met and figure.met
    print("     beside: SimGrid 3.32 from Python 260 µs a task, DistIR 34 to 55 µs an operation")
    return 0 if met else 1


def _figures() -> Iterator[Figure]:
    for tasks, hosts, goal in ((1_000, 16, 0.5), (10_000, 64, 0.5), (100_000, 1_024, np.inf)):
        made = random_activities(tasks, hosts)
        seconds, events = _cpu_s(lambda made=made: simulate(made).events, 3)
        what = f"an event, {tasks:,} tasks on {hosts:,} hosts, contention"
        yield Figure(what, seconds / events * 1e6, "µs", goal)
    yield _million_figure()
    problem = _random_problem(10_000, 64)
    times = heft.timetable(problem)[0]
    yield Figure("HEFT, 10,000 tasks on 64", _cpu_s(lambda: heft.timetable(problem), 1)[0], "s", 2)
    evaluator = Evaluator(problem)
    order, device = np.array(times.in_order(), np.int32), times.device.astype(np.int32)
    move_s, _ = _cpu_s(lambda: evaluator.makespan_s(order, device), 20)
    full_s, _ = _cpu_s(lambda: simulate(random_activities(10_000, 64)), 3)
    yield Figure("a move of the search, of a simulation", 100 * move_s / full_s, "%", 5)
    graph, topology = _graph(1_000), Topology.local(16)
    gc.collect()
    gc.disable()  # as in the compiler's process
    placing_s, schedule = _cpu_s(lambda: schedule_tasks(graph, topology), 3)
    gc.enable()
    yield Figure("schedule_tasks, a task and its messages", placing_s / 1_000 * 1e3, "ms", 0.1)
    costs = Costs(given={task.name: 1e-3 for task in graph.tasks})
    seconds, _ = _cpu_s(lambda: simulated(schedule, costs), 3)
    yield Figure("1,000 tasks of a schedule to their trace", seconds * 1e3, "ms", 10)


def _million_figure() -> Figure:
    begun = time.process_time()
    simulate(random_activities(1_000_000, 64))
    return Figure("1,000,000 tasks, arrays and times", time.process_time() - begun, "s", 5)


def random_activities(tasks: int, hosts: int, *, seed: int = 0) -> Activities:
    """Tasks on hosts in their order, and a message over two links for each edge between hosts."""
    rng = np.random.default_rng(seed)
    host = rng.integers(0, hosts, tasks)
    dest = np.repeat(np.arange(1, tasks), PREDECESSORS)
    back = rng.integers(0, NEAR * hosts, dest.size)
    source = dest - 1 - np.minimum(back, dest - 1)
    messages = dest.size
    apart = host[source] != host[dest]
    size = rng.choice([1e3, 1e6, 1e8], messages) * rng.uniform(0.5, 2, messages)
    uses = np.concatenate([np.zeros(tasks, np.int64), np.where(apart, 2, 0)])
    last_on = _last_on_host(host)
    waits = np.concatenate([(last_on >= 0) + _given(tasks), np.ones(messages, np.int64)])
    after_begin = np.concatenate([[0], np.cumsum(waits)])
    after = np.zeros(after_begin[-1], np.int32)
    there = np.flatnonzero(last_on >= 0)
    after[after_begin[there]] = last_on[there]
    place = np.tile(np.arange(PREDECESSORS), tasks - 1)
    after[after_begin[dest] + (last_on[dest] >= 0) + place] = tasks + np.arange(messages)
    after[after_begin[tasks:-1]] = source
    return Activities(
        amount=np.concatenate([rng.uniform(1e6, 1e9, tasks), np.where(apart, size, 0)]),
        latency_s=np.concatenate([np.zeros(tasks), np.where(apart, LATENCY_S, 0)]),
        cap=np.concatenate([np.full(tasks, FLOPS_PER_S), np.full(messages, np.inf)]),
        use_begin=np.concatenate([[0], np.cumsum(uses)]),
        use_resource=np.stack([host[source], hosts + host[dest]], 1)[apart]
        .ravel()
        .astype(np.int32),
        capacity=np.full(2 * hosts, LINK_BYTES_PER_S),
        after_begin=after_begin,
        after=after,
    )


def _given(tasks: int) -> np.ndarray:
    found = np.full(tasks, PREDECESSORS)
    found[0] = 0
    return found


def _last_on_host(host: np.ndarray) -> np.ndarray:
    """The task before each on its host; -1 for the first there."""
    order = np.argsort(host, kind="stable")
    found = np.full(host.size, -1)
    same = host[order][1:] == host[order][:-1]
    found[order[1:][same]] = order[:-1][same]
    return found


def _random_problem(tasks: int, devices: int) -> Problem:
    rng = np.random.default_rng(0)
    before = tuple(
        tuple((int(k), 10**6) for k in np.unique(rng.integers(max(0, t - 200), t, PREDECESSORS)))
        if t
        else ()
        for t in range(tasks)
    )
    apart = 1 - np.eye(devices)
    cost = rng.uniform(1e-3, 1e-1, (tasks, devices))
    return Problem(cost, before, LATENCY_S * apart, apart / LINK_BYTES_PER_S)


def _graph(tasks: int) -> TaskGraph:
    """Each task writes an array of its own, and reads those of three before it."""
    shape, everything = (1_000,), (Box((0,), (1_000,)),)
    names = [f"a{k}" for k in range(tasks)]
    accesses = [Access(name, name, everything) for name in names]
    rng = np.random.default_rng(0)
    made = [
        Task(
            f"t{k}",
            Target("any"),
            tuple(accesses[int(j)] for j in np.unique(rng.integers(max(0, k - 64), k, 3)))
            if k
            else (),
            (accesses[k],),
        )
        for k in range(tasks)
    ]
    buffers = [Buffer(name, shape, "f64", name, (1,)) for name in names]
    return build_dag(made, buffers, [Storage(name, shape, 8, (name,)) for name in names])


def _cpu_s(work: Callable[[], T], times: int) -> tuple[float, T]:
    """The median, and what it returned last."""
    taken: list[float] = []
    while True:
        begun = time.process_time()
        found = work()
        taken.append(time.process_time() - begun)
        if len(taken) >= times:
            return statistics.median(taken), found

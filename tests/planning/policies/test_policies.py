"""Placements that were chosen: published examples, and what holds of all policies."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import avial_lab
from avial_lab.core.errors import AvialError, ScheduleError
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.list_scheduling import Evaluator, Problem
from avial_lab.planning.memory import held_bytes
from avial_lab.planning.placement import schedule_tasks
from avial_lab.planning.policies import Policy, exact, heft, peft, search
from avial_lab.planning.schedule import Sync
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import TaskGraph
from tests.memory import Memory, run_task
from tests.planning.test_schedule import VirtualRanks, chain
from tests.plot import by_hand
from tests.quick import examples
from tests.strategies import task_graphs, topologies

COSTS = """14 16 9 / 13 19 18 / 11 13 19 / 13 8 17 / 12 13 10 / 13 16 9 / 7 15 11 / 5 11 14 /
18 12 20 / 21 7 16"""
EDGES = """1-2 18, 1-3 12, 1-4 9, 1-5 11, 1-6 14, 2-8 19, 2-9 16, 3-7 23, 4-8 27, 4-9 23, 5-9 13,
6-8 15, 7-10 17, 8-10 11, 9-10 13"""


def published() -> Problem:
    """The example of Topcuoglu, Hariri, Wu 2002, figure 2: 10 tasks, 3 processors."""
    cost = np.array([[float(each) for each in row.split()] for row in COSTS.split("/")])
    before: list[list[tuple[int, int]]] = [[] for _ in cost]
    for edge in EDGES.split(","):
        ends, units = edge.split()
        source, dest = map(int, ends.split("-"))
        before[dest - 1].append((source - 1, int(units)))
    return Problem(cost, tuple(map(tuple, before)), np.zeros((3, 3)), 1 - np.eye(3))


def test_heft_is_as_published() -> None:
    problem = published()
    want = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
    assert problem.upward_s.tolist() == pytest.approx(want, abs=1e-3)
    assert heft.timetable(problem)[0].makespan_s == 80


def test_peft_by_its_definition() -> None:
    assert peft.timetable(published())[0].makespan_s == 85


def test_search_finds_the_optimum_of_the_example() -> None:
    problem = published()
    times, _ = heft.timetable(problem)
    order = np.array(times.in_order(), np.int32)
    first = search._Tour(order, times.device.astype(np.int32))
    assert Evaluator(problem).makespan_s(first.order, first.device) == 80
    found = search.improved(problem, first, seed=1, budget_s=60)
    assert Evaluator(problem).makespan_s(found.order, found.device) == 73


def _optimum(problem: Problem) -> float:
    """Branch and bound over all orders and devices, each task as early as it can be."""
    best, cost = float("inf"), problem.cost_s.tolist()

    def extended(ends: dict[int, float], on: dict[int, int], free: list[float]) -> None:
        nonlocal best
        if len(ends) == problem.tasks:
            best = min(best, max(ends.values()))
            return
        for k in range(problem.tasks):
            if k in ends or any(source not in ends for source, _ in problem.before[k]):
                continue
            for device in range(problem.devices):
                arrived = [
                    ends[source] + (on[source] != device) * nbytes
                    for source, nbytes in problem.before[k]
                ]
                end = max([free[device], *arrived]) + cost[k][device]
                if end < best:
                    after = [*free[:device], end, *free[device + 1 :]]
                    extended({**ends, k: end}, {**on, k: device}, after)

    extended({}, {}, [0.0] * problem.devices)
    return best


@pytest.mark.parametrize("seed", range(4))
def test_search_finds_the_optimum_of_few_tasks(seed: int) -> None:
    rng = random.Random(seed)
    before = [[(j, rng.randint(1, 9)) for j in range(k) if rng.random() < 0.4] for k in range(7)]
    cost = np.array([[rng.randint(1, 20) for _ in range(2)] for _ in before], np.float64)
    problem = Problem(cost, tuple(map(tuple, before)), np.zeros((2, 2)), 1 - np.eye(2))
    order = np.arange(7, dtype=np.int32)
    found = search.improved(problem, search._Tour(order, np.zeros(7, np.int32)), budget_s=60)
    assert Evaluator(problem).makespan_s(found.order, found.device) == _optimum(problem)


def test_search_is_as_good_as_every_other_policy() -> None:
    graph, machine = by_hand.layers(4, 3), by_hand.machine(2)
    costs = Costs(given={task.name: 1.0 for task in graph.tasks})
    times = {
        policy: avial_lab.plan(graph, machine, policy=policy, costs=costs).makespan_s
        for policy in Policy
        if policy is not Policy.EXACT
    }
    assert times[Policy.SEARCH] == min(times.values())


def test_an_interrupted_search_keeps_the_best_so_far() -> None:
    problem = published()
    times, _ = heft.timetable(problem)
    first = search._Tour(np.array(times.in_order(), np.int32), times.device.astype(np.int32))

    def stop(part: float, _best_s: float) -> None:
        if part > 0.05:
            raise KeyboardInterrupt

    found = search.improved(problem, first, budget_s=60, progress=stop)
    assert sorted(found.order.tolist()) == list(range(10))
    assert Evaluator(problem).makespan_s(found.order, found.device) <= 80


def test_exact_proves_the_optimum() -> None:
    pytest.importorskip("ortools.sat.python.cp_model", reason="OR-tools is not installed")
    times, proven = exact.timetable(published())
    assert (times.makespan_s, proven) == (73, True)


def test_exact_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    with pytest.raises(AvialError, match="needs OR-tools"):
        schedule_tasks(chain(3), Topology.local(2), policy=Policy.EXACT)
    with pytest.raises(ScheduleError, match="at most 30 tasks, and there are 40"):
        schedule_tasks(chain(40), Topology.local(2), policy=Policy.EXACT)


CHOOSING = [Policy.HEFT, Policy.PEFT, Policy.MIN_MEMORY, Policy.CRITICAL_LOCALITY]


@given(
    task_graphs(),
    topologies(),
    st.sampled_from(CHOOSING),
    st.sampled_from(Sync),
    st.integers(0, 2**32),
)
@settings(max_examples=examples(25), deadline=None)
def test_every_placement_is_legal_and_gives_program_orders_values(
    graph: TaskGraph, topology: Topology, policy: Policy, sync: Sync, seed: int
) -> None:
    schedule = schedule_tasks(graph, topology, policy=policy, sync=sync)
    for placement in schedule.placements:
        device = topology.device(placement.device)
        assert device.satisfies(graph.by_name[placement.task].target)
        assert device.rank == placement.rank
        assert placement.reason.startswith(policy.value)
    expected = Memory(graph)
    for task in graph.tasks:
        run_task(expected, task)
    assert VirtualRanks(schedule, random.Random(seed)).run() == expected


@pytest.mark.parametrize("policy", [*CHOOSING, Policy.SEARCH])
def test_the_same_input_gives_the_same_schedule(policy: Policy) -> None:
    graph, topology = by_hand.layers(3, 3), by_hand.machine(3, gpus=1)
    costs = Costs(given={task.name: 1.0 + len(task.name) for task in graph.tasks})
    first, again = (
        schedule_tasks(graph, topology, policy=policy, costs=costs).placements for _ in range(2)
    )
    assert first == again


def test_search_is_never_worse_than_the_lists() -> None:
    graph, topology = by_hand.layers(5, 6), by_hand.machine(3, gpus=1)
    costs = Costs(given={t.name: 1e-4 * (1 + k % 7) for k, t in enumerate(graph.tasks)})

    def makespan_s(policy: Policy) -> float:
        schedule = schedule_tasks(graph, topology, policy=policy, costs=costs)
        return simulated(schedule, costs).makespan_s

    assert makespan_s(Policy.SEARCH) <= min(map(makespan_s, (Policy.LEVELS, *CHOOSING)))


def test_least_memory_keeps_the_fullest_rank_emptier() -> None:
    graph, topology = by_hand.layers(3, 8), by_hand.machine(4, gpus=1)
    least = schedule_tasks(graph, topology, policy=Policy.MIN_MEMORY)
    others = schedule_tasks(graph, topology, policy=Policy.LEVELS)
    assert max(held_bytes(least)) <= max(held_bytes(others))


def test_a_program_is_placed_by_what_its_tasks_cost() -> None:
    """Two short tasks and a long one on two ranks: in turn the long one shares a rank."""
    text = 'avial.schedule %a, %b, %c, %d {\n  %cpu = avial.target {arch = "cpu"}\n'
    for name, size in (("b", 64), ("c", 64), ("d", 4096)):
        text += f"""  %t_{name} = avial.task %cpu, %a, %{name} {{
    scf.for %i = 0 to {size} {{
      %x = memref.load %a[%i]
      memref.store %x, %{name}[%i]
    }}
  }}\n"""
    arrays = {name: np.zeros(4096) for name in "abcd"}

    def rank_of(policy: str) -> dict[str, int]:
        program = avial_lab.compile(f"{text}}}\n", arrays=arrays, ranks=2, policy=policy)
        return {placed.task: placed.rank for placed in program.schedule.placements}

    assert rank_of("levels") == {"t_b": 0, "t_c": 1, "t_d": 0}
    chosen = rank_of("heft")
    assert chosen["t_b"] == chosen["t_c"] != chosen["t_d"]


@settings(max_examples=examples(20), deadline=None)
@given(graph=task_graphs(), data=st.data())
def test_every_policy_keeps_to_pins(graph: TaskGraph, data: st.DataObject) -> None:
    topology = Topology.local(3, gpus=1)
    pinned = data.draw(st.sampled_from(graph.tasks))
    devices = [device.name for device in topology.satisfying(pinned.target)]
    place = {pinned.name: data.draw(st.sampled_from(devices))}
    policies = [each for each in Policy if each not in (Policy.EXACT, Policy.SEARCH)]
    for policy in policies:
        made = avial_lab.plan(graph, topology, policy=policy, place=place)
        assert made.placement_of[pinned.name].device == place[pinned.name]
    made = avial_lab.plan(graph, topology, policy="search", budget_s=0.05, place=place)
    assert made.placement_of[pinned.name].device == place[pinned.name]


@pytest.mark.parametrize("policy", [each for each in Policy if each is not Policy.EXACT])
def test_every_policy_keeps_to_the_rank_of_a_target(policy: Policy) -> None:
    graph = by_hand.deck()
    on_one = replace(graph.tasks[0], target=Target("any", rank=1))
    asked = replace(graph, tasks=(on_one, *graph.tasks[1:]))
    made = avial_lab.plan(asked, Topology.local(3, gpus=1), policy=policy, budget_s=0.05)
    assert made.placement_of[on_one.name].rank == 1
    with pytest.raises(ScheduleError, match="cpu on rank 1"):
        avial_lab.plan(asked, Topology.local(1, gpus=1), policy=policy)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ({"tsk1": "cpu0"}, "there is no task 'tsk1'\nHint: did you mean 'task1'"),
        ({"task1": "cpu9"}, "there is no device 'cpu9'\nHint: did you mean"),
        ({"task1": "gpu0"}, "(x86_64 on gpu0)"),
    ],
)
def test_an_impossible_pin_is_refused(place: dict[str, str], words: str) -> None:
    with pytest.raises(ScheduleError) as raised:
        avial_lab.plan(by_hand.deck(), Topology.local(2, gpus=1), place=place)
    assert words in str(raised.value)

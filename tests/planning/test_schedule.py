"""Schedules: every placement fits, every rank's steps give program order's values, and no rank ever
blocks for good.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.errors import ScheduleError
from avial_lab.core.regions import Box
from avial_lab.machine.presets import preset
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.placement import (
    is_by_hand,
    on_the_same_ranks,
    schedule_by_hand,
    schedule_tasks,
)
from avial_lab.planning.policies import Policy
from avial_lab.planning.schedule import Schedule, StepKind, Sync
from avial_lab.planning.task_graph import Access, Task, TaskGraph, build_dag
from tests.memory import Memory, indices, run_task
from tests.strategies import task_graphs, topologies


class VirtualRanks:
    """Runs every rank's steps in a random interleaving.

    Messages are rendezvous: a send is over only when its receive has been posted, the hardest case
    MPI allows.
    """

    def __init__(self, schedule: Schedule, rng: random.Random) -> None:
        self.schedule = schedule
        self.rng = rng
        self.at = [0] * schedule.topology.ranks
        self.memory = [Memory(schedule.graph) for _ in self.at]
        for rank, memory in enumerate(self.memory):
            caller = Memory(schedule.graph)
            memory.forget()
            for piece in schedule.inputs:
                if piece.rank == rank:
                    for index in indices((piece.box,)):
                        memory.values[piece.storage][index] = caller.values[piece.storage][index]
        self.posted: set[int] = set()
        self.sent: dict[int, dict[tuple[int, ...], int | None]] = {}
        self.busy: list[dict[int, tuple[str, tuple[int, ...]]]] = [{} for _ in self.at]

    def run(self) -> Memory:
        while any(k < len(p) for k, p in zip(self.at, self.schedule.programs, strict=True)):
            able = [rank for rank in range(len(self.at)) if self._can_step(rank)]
            assert able, f"deadlock at {self.at}: {self.schedule.programs}"
            self._step(self.rng.choice(able))
        result = Memory(self.schedule.graph)
        for piece in self.schedule.results:
            held = self.memory[piece.rank].values[piece.storage]
            for index in indices((piece.box,)):
                result.values[piece.storage][index] = held[index]
        return result

    def _can_step(self, rank: int) -> bool:
        program = self.schedule.programs[rank]
        if self.at[rank] >= len(program):
            return False
        step = program[self.at[rank]]
        if step.kind is StepKind.WAIT_RECEIVED:
            return step.transfer in self.sent and step.transfer in self.posted
        if step.kind is StepKind.WAIT_SENT:
            return step.transfer in self.posted
        if step.kind is StepKind.BARRIER:
            return (
                self._barriers_passed(rank)
                == min(
                    self._barriers_passed(other) + self._at_barrier(other)
                    for other in range(len(self.at))
                )
                - 1
            )
        return True

    def _barriers_passed(self, rank: int) -> int:
        passed = self.schedule.programs[rank][: self.at[rank]]
        return sum(step.kind is StepKind.BARRIER for step in passed)

    def _at_barrier(self, rank: int) -> bool:
        program = self.schedule.programs[rank]
        return self.at[rank] < len(program) and program[self.at[rank]].kind is StepKind.BARRIER

    def _step(self, rank: int) -> None:
        step = self.schedule.programs[rank][self.at[rank]]
        memory = self.memory[rank]
        if step.kind is StepKind.RUN:
            run_task(memory, self.schedule.graph.by_name[step.task])
        elif step.kind is StepKind.BARRIER:
            # All ranks pass together.
            for other in range(len(self.at)):
                self.at[other] += 1
            return
        elif step.transfer >= 0:
            transfer = self.schedule.transfers[step.transfer]
            values = memory.values[transfer.storage]
            where = list(indices((transfer.box,)))
            if step.kind is StepKind.SEND:
                assert rank == transfer.source
                self.sent[step.transfer] = {index: values[index] for index in where}
            elif step.kind is StepKind.POST:
                assert rank == transfer.dest
                self.posted.add(step.transfer)
                # What is there may be overwritten from now on at any time.
                for index in where:
                    values[index] = None
            elif step.kind is StepKind.WAIT_RECEIVED:
                values.update(self.sent[step.transfer])
            elif step.kind is StepKind.WAIT_SENT:
                # The memory sent from must have stayed as it was until here.
                assert {index: values[index] for index in where} == self.sent[step.transfer]
        self.at[rank] += 1


@given(task_graphs(), topologies(), st.sampled_from(Sync), st.randoms(use_true_random=False))
def test_every_run_gives_program_orders_values(
    graph: TaskGraph, topology: Topology, sync: Sync, rng: random.Random
) -> None:
    expected = Memory(graph)
    for task in graph.tasks:
        run_task(expected, task)
    schedule = schedule_tasks(graph, topology, sync=sync)
    assert VirtualRanks(schedule, rng).run() == expected


@st.composite
def topological_orders(draw: st.DrawFn, graph: TaskGraph) -> list[str]:
    """Any order of the tasks in which none comes before one that it depends on."""
    waits: dict[str, set[str]] = {task.name: set() for task in graph.tasks}
    for edge in graph.dependencies:
        waits[edge.after].add(edge.before)
    order: list[str] = []
    while len(order) < len(waits):
        ready = [name for name in waits if name not in order and waits[name] <= set(order)]
        order.append(draw(st.sampled_from(ready)))
    return order


@given(task_graphs(), topologies(most_ranks=7), st.sampled_from(Sync), st.data())
def test_any_order_and_place_gives_program_orders_values(
    graph: TaskGraph, topology: Topology, sync: Sync, data: st.DataObject
) -> None:
    """Whatever a planner decides: the virtual ranks end, with the right values."""
    expected = Memory(graph)
    for task in graph.tasks:
        run_task(expected, task)
    order = data.draw(topological_orders(graph))
    devices = {
        task.name: data.draw(st.sampled_from(topology.satisfying(task.target))).name
        for task in graph.tasks
    }
    schedule = schedule_by_hand(graph, topology, devices, order=order, sync=sync)
    assert [placement.task for placement in schedule.placements] == order
    ranks = VirtualRanks(schedule, data.draw(st.randoms(use_true_random=False)))
    assert ranks.run() == expected


def chain(count: int) -> TaskGraph:
    """t0 → t1 → …, each reads and writes the same array."""
    whole = (Box((0,), (4,)),)
    both = (Access("a", "a", whole),)
    tasks = [Task(f"t{k}", Target("cpu"), both, both) for k in range(count)]
    return build_dag(
        tasks, (Buffer("a", (4,), "f32", "a", (1,)),), (Storage("a", (4,), 4, ("a",)),)
    )


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            ["t1", "t0", "t2"],
            r"'t1' comes before 't0' in the order, and depends on it \(RAW of a\)",
        ),
        (["t0", "t1"], "names every task once, and 't2' is missing"),
        (["t0", "t1", "t2", "t3"], "'t3' is unknown"),
        (["t0", "t1", "t0", "t2"], "'t0' is named twice"),
    ],
)
def test_an_order_against_the_graph_is_refused(order: list[str], message: str) -> None:
    devices = dict.fromkeys(["t0", "t1", "t2"], "cpu0")
    with pytest.raises(ScheduleError, match=message):
        schedule_by_hand(chain(3), Topology.local(1), devices, order=order)


def test_what_is_placed_by_hand_keeps_its_ranks_on_another_machine() -> None:
    """By levels the chain would be on one rank."""
    graph, devices = chain(3), {"t0": "cpu1", "t1": "cpu0", "t2": "cpu1"}
    schedule = schedule_by_hand(graph, Topology.local(2), devices)
    assert is_by_hand(schedule)
    assert not is_by_hand(schedule_tasks(graph, Topology.local(2)))
    there = on_the_same_ranks(schedule, preset("fat-tree-1024"))
    assert [placed.rank for placed in there.placements] == [1, 0, 1]
    assert there.bytes_moved == schedule.bytes_moved > 0
    with pytest.raises(ScheduleError, match=r"is divided over 2 ranks, and .* has 1"):
        on_the_same_ranks(schedule, Topology.local(1))


def test_barriers_stand_where_the_level_changes_in_any_order() -> None:
    """In program order the two chains come one after the other, and each level twice."""
    tasks = [
        Task(f"{name}{k}", Target("cpu"), (), (), after=(f"{name}{k - 1}",) * bool(k))
        for name in "ab"
        for k in range(2)
    ]
    graph, names = build_dag(tasks, (), ()), [task.name for task in tasks]
    devices = {name: f"cpu{k % 2}" for k, name in enumerate(names)}
    by_level = schedule_by_hand(graph, Topology.local(2), devices, sync=Sync.LEVELS)
    in_order = schedule_by_hand(graph, Topology.local(2), devices, order=names, sync=Sync.LEVELS)
    assert [" ".join(map(str, program)) for program in by_level.programs] == [
        "run a0 run b0 barrier barrier", "barrier run a1 run b1 barrier",
    ]  # fmt: skip
    assert [" ".join(map(str, program)) for program in in_order.programs] == [
        "run a0 barrier barrier run b0 barrier barrier",
        "barrier run a1 barrier barrier run b1 barrier",
    ]


@given(task_graphs(), topologies())
def test_placements_fit_and_follow_the_levels(graph: TaskGraph, topology: Topology) -> None:
    schedule = schedule_tasks(graph, topology)
    assert sorted(p.task for p in schedule.placements) == sorted(t.name for t in graph.tasks)
    order = [(p.level, graph.tasks.index(graph.by_name[p.task])) for p in schedule.placements]
    assert order == sorted(order)
    for placement in schedule.placements:
        device = topology.device(placement.device)
        assert device.satisfies(graph.by_name[placement.task].target)
        assert device.rank == placement.rank
        assert placement.reason


@given(task_graphs(), topologies())
def test_nothing_moves_to_the_rank_it_comes_from_or_twice(
    graph: TaskGraph, topology: Topology
) -> None:
    schedule = schedule_tasks(graph, topology)
    moved: set[tuple[str, str, int, tuple[int, ...]]] = set()
    for transfer in schedule.transfers:
        assert transfer.source != transfer.dest
        for index in indices((transfer.box,)):
            element = (transfer.storage, transfer.producer, transfer.dest, index)
            assert element not in moved
            moved.add(element)


@given(task_graphs(), topologies())
def test_one_rank_moves_nothing(graph: TaskGraph, topology: Topology) -> None:
    assert schedule_tasks(graph, Topology.local(1, gpus=1)).transfers == ()


def test_tasks_of_a_level_take_turns_over_the_devices() -> None:
    tasks = [Task(f"t{k}", Target("cpu"), (), ()) for k in range(5)]
    schedule = schedule_tasks(build_dag(tasks, (), ()), Topology.local(3))
    assert [p.device for p in schedule.placements] == ["cpu0", "cpu1", "cpu2", "cpu0", "cpu1"]


def two_nodes(ranks: int) -> Topology:
    """As many ranks on each."""
    devices = Topology.local(2 * ranks).devices
    named = tuple(replace(d, node="node1" if d.rank < ranks else "node2") for d in devices)
    return Topology(2 * ranks, named)


@pytest.mark.parametrize("policy", [Policy.LEVELS, Policy.HEFT])
def test_an_edge_inside_a_host_is_better_than_one_between(policy: Policy) -> None:
    """Two chains, whose second tasks are in the other order: c → d, a → b.

    node1   a ─► b
    node2   c ─► d
    """
    whole = (Box((0,), (1 << 20,)),)
    arrays = [Access(name, name, whole) for name in "ab"]
    order = [("a", 0), ("c", 1), ("d", 1), ("b", 0)]
    tasks = [Task(n, Target("cpu"), (arrays[k],), (arrays[k],)) for n, k in order]
    buffers = [Buffer(name, (1 << 20,), "f32", name, (1,)) for name in "ab"]
    storages = [Storage(name, (1 << 20,), 4, (name,)) for name in "ab"]
    graph = build_dag(tasks, tuple(buffers), tuple(storages))
    machine = two_nodes(1)
    placed = {p.task: p.rank for p in schedule_tasks(graph, machine, policy=policy).placements}
    assert (placed["a"], placed["c"]) == (placed["b"], placed["d"])
    assert policy is Policy.HEFT or len(set(placed.values())) == 2  # both hosts have work


def test_between_hosts_of_which_nothing_is_known_a_message_is_slower() -> None:
    latency, rate = two_nodes(2).speeds.between(["node1", "node2"])
    assert latency[0, 1] > latency[0, 0]
    assert rate[0, 1] < rate[0, 0]


def test_a_target_nobody_satisfies_lists_the_devices() -> None:
    graph = build_dag([Task("t", Target("gpu", "sm_90"), (), ())], (), ())
    with pytest.raises(ScheduleError, match="no device satisfies target %gpu") as raised:
        schedule_tasks(graph, Topology.local(2, arch="x86_64"))
    assert "cpu0 (x86_64, rank 0 on localhost)" in str(raised.value)
    assert "--gpus 1" in str(raised.value)

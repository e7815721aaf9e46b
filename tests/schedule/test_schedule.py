"""Schedules: every placement fits, every rank's steps give program order's values, and no rank ever
blocks for good.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avial_lab.dag import Task, TaskGraph, build_dag
from avial_lab.errors import ScheduleError
from avial_lab.schedule import Schedule, StepKind, Sync, schedule_tasks
from avial_lab.topology import Target, Topology
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


def test_a_target_nobody_satisfies_lists_the_devices() -> None:
    graph = build_dag([Task("t", Target("gpu", "sm_90"), (), ())], (), ())
    with pytest.raises(ScheduleError, match="no device satisfies target %gpu") as raised:
        schedule_tasks(graph, Topology.local(2, arch="x86_64"))
    assert "cpu0 (x86_64, rank 0 on localhost)" in str(raised.value)
    assert "--gpus 1" in str(raised.value)

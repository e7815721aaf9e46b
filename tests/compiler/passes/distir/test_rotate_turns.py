"""Memory of micro-batches: as many places as are in flight, and what is told is what is held."""

from __future__ import annotations

import re

import pytest

from avial_lab.compiler.passes.distir.memories import Memory
from avial_lab.compiler.passes.distir.rotate_turns import rotate_turns
from avial_lab.compiler.passes.distir.task_order import Job, Part
from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import graph_of, parse
from avial_lab.compiler.worker.placed import ranks_of_tasks, schedule_on_ranks, told_of_division
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.regions import Box
from avial_lab.core.words import format_bytes
from avial_lab.machine.topology import Topology
from avial_lab.planning.memory import held_bytes
from avial_lab.planning.schedule import Schedule, Sync
from tests.compiler.passes.distir.divided import assert_divided_is_the_same
from tests.compiler.passes.distir.training_step import arrays_of, training_step

STAGES, TURNS, WIDTHS = 3, 6, (4,) * 7
slow = pytest.mark.slow


def planned(parallel: str, rows: int = TURNS) -> tuple[Schedule, list[str]]:
    """The schedule, and what each device is told to hold."""
    source = Source(training_step(rows, WIDTHS), "t", bind_arrays(arrays_of(rows, WIDTHS)),
                    parallel=parallel)  # fmt: skip
    module = parse(source)
    told = "\n".join(told_of_division(module.operation))
    graph, ranks = graph_of(module, source), ranks_of_tasks(module)
    topology = Topology.local(1 + max(ranks.values()))
    schedule = schedule_on_ranks(graph, topology, ranks, sync=Sync.EDGES)
    return schedule, re.findall(r"works on (.*) of arrays", told)


def places(schedule: Schedule, rank: int) -> int:
    """Of values that only tasks of that rank touch and that are there once for every micro-batch
    in flight: how many.
    """
    users: dict[str, set[int]] = {}
    for task in schedule.graph.tasks:
        for access in task.accesses:
            users.setdefault(access.storage, set()).add(schedule.placement_of[task.name].rank)
    mine = {name for name, ranks in users.items() if ranks == {rank}}
    temporary = {b.storage for b in schedule.graph.buffers if b.temporary}
    shapes = [s.shape for s in schedule.graph.storages if s.name in mine & temporary]
    return max(shape[0] for shape in shapes if len(shape) == 3 or shape[0] == TURNS)


@pytest.mark.parametrize(
    ("schedule", "flying"),
    [
        ("1f1b", (3, 2)),
        ("1f1b most 2", (2, 2)),
        pytest.param("gpipe", (TURNS, TURNS), marks=slow),
        pytest.param("gpipe most 2", (2, 2), marks=slow),
        pytest.param("zero-bubble", (3, 3), marks=slow),
    ],
)
def test_as_many_places_as_micro_batches_in_flight(schedule: str, flying: tuple[int, ...]) -> None:
    """One row each. (The last stage goes back at once and keeps nothing.)"""
    made, told = planned(f"pipeline {STAGES} x {TURNS} {schedule}")
    assert tuple(places(made, rank) for rank in range(STAGES - 1)) == flying
    assert told == [format_bytes(nbytes) for nbytes in held_bytes(made) if nbytes]


@slow
@pytest.mark.parametrize(
    "parallel",
    [
        "pipeline 3 x 5 1f1b",
        "data 2, pipeline 3 x 5 interleaved 2",
        "horizontal 2 w0:1, pipeline 3 x 5 zero-bubble",
        "pipeline 3 x 5 gpipe most 2, data 2",
    ],
)
def test_ragged_micro_batches_in_shared_memory(parallel: str) -> None:
    """Of one and two rows, of replicas of as many or one more."""
    text, arrays = training_step(17, WIDTHS), arrays_of(17, WIDTHS)
    assert_divided_is_the_same(text, arrays, parallel, terms=512)
    made, told = planned(parallel, 17)
    assert told == [format_bytes(nbytes) for nbytes in held_bytes(made) if nbytes]


def jobs_of(reads: list[tuple[int, int]]) -> tuple[Memory, list[Job]]:
    """Four turns write a row each; job k then reads the rows of `reads[k]`, in its turn."""
    memory = Memory((4, 2), None, turned=0)  # pyright: ignore[reportArgumentType]

    def part(start: int, stop: int) -> list[Part]:
        return [Part((memory, 0), Box((start, 0), (stop, 2)))]

    jobs: list[Job] = []
    for turn, (start, stop) in enumerate(reads):
        write = Job("w", 0, 0, turn, [], part(turn, turn + 1), lambda: None)
        read = Job("r", 0, 1, turn, part(start, stop), [], lambda: None)
        jobs += [write, read]
    return memory, jobs


def test_a_turn_that_reads_another_keeps_all() -> None:
    memory, jobs = jobs_of([(0, 1), (1, 2), (2, 3), (3, 4)])
    rotate_turns(jobs, ())
    assert memory.rotation is not None
    assert memory.stored_shape == [1, 1, 2]
    assert memory.rotation.located(Box((2, 1), (3, 2))) == (0, Box((0, 1), (1, 2)))
    for kept, reads in ((True, [(0, 1), (1, 2)]), (False, [(0, 1), (0, 2)])):
        memory, jobs = jobs_of(reads)
        rotate_turns(jobs, [memory] if kept else ())
        assert memory.rotation is None

"""Overlap: the same values; sums that move while the next gradient is computed."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import graph_of, parse
from avial_lab.compiler.worker.placed import (
    ranks_of_tasks,
    schedule_on_ranks,
    told_of_division,
)
from avial_lab.core.buffers import bind_arrays
from avial_lab.core.errors import ScheduleError
from avial_lab.machine.topology import Topology
from avial_lab.planning.parallelism import Strategy, spelled
from avial_lab.planning.schedule import Schedule, StepKind, Sync
from tests.compiler.passes.distir.divided import assert_divided_is_the_same
from tests.compiler.passes.distir.training_step import arrays_of, training_step

ROWS, WIDTHS = 7, (4, 4, 4, 4)
slow = pytest.mark.slow


@pytest.mark.parametrize(
    "parallel",
    [
        "data 3, overlap",
        pytest.param("data 2, overlap 100B", marks=slow),
        pytest.param("horizontal 2 w1:1, data 2, overlap", marks=slow),
        pytest.param("data 7, overlap", marks=slow),
    ],
)
def test_the_values_are_the_same(parallel: str) -> None:
    text = training_step(ROWS, WIDTHS)
    assert_divided_is_the_same(text, arrays_of(ROWS, WIDTHS), parallel, terms=256)


def scheduled(parallel: str, ranks: int) -> tuple[Schedule, tuple[str, ...]]:
    return divided(training_step(ROWS, WIDTHS), arrays_of(ROWS, WIDTHS), parallel, ranks)


def divided(
    text: str, arrays: dict[str, np.ndarray], parallel: str, ranks: int
) -> tuple[Schedule, tuple[str, ...]]:
    source = Source(text, "t", bind_arrays(arrays), parallel=parallel)
    module = parse(source)
    graph, topology = graph_of(module, source), Topology.local(ranks)
    schedule = schedule_on_ranks(graph, topology, ranks_of_tasks(module), sync=Sync.EDGES)
    return schedule, told_of_division(module.operation)


def computed_meanwhile(schedule: Schedule) -> dict[int, list[str]]:
    """Between the send of a message and the wait for it at its reader: segments there."""
    found: dict[int, list[str]] = {}
    for transfer in schedule.transfers:
        steps = schedule.program(transfer.dest)
        sent = schedule.program(transfer.source)
        at = next(
            k
            for k, s in enumerate(sent)
            if s.kind is StepKind.SEND and s.transfer == transfer.index
        )
        before = {s.task for s in sent[:at] if s.kind is StepKind.RUN}
        wait = next(
            k
            for k, s in enumerate(steps)
            if s.kind is StepKind.WAIT_RECEIVED and s.transfer == transfer.index
        )
        done = [s.task for s in steps[:wait] if s.kind is StepKind.RUN]
        level = max((_segment(task) for task in before), default=0)
        found[transfer.index] = [task for task in done if _segment(task) > level]
    return found


def _segment(task: str) -> int:
    name = task.split("_")[0]
    return int(name[1:]) if name[0] == "S" else 0


def test_messages_of_sums_are_waited_for_behind_the_next_segment() -> None:
    """On two devices: a gradient's other half comes while the next gradient is computed."""
    plain, told = scheduled("data 2", 2)
    assert not any(computed_meanwhile(plain).values())
    assert not any(line.startswith("overlap") for line in told)
    schedule, told = scheduled("data 2, overlap", 2)
    assert schedule.bytes_moved == plain.bytes_moved
    hidden = {
        schedule.transfers[k].producer: tasks
        for k, tasks in computed_meanwhile(schedule).items()
        if tasks
    }
    assert {"S2_on0": ["S3_on1"], "S2_on1": ["S3_on0"]}.items() <= hidden.items()
    # The loss and two gradients; the first layer's is the last thing that is computed.
    assert (
        "overlap: 7 segments, 4 sums of partial results (196 B): 132 B move while the next segment "
        "is computed, for 64 B nothing is left to compute"
    ) in told


def test_buckets_are_filled() -> None:
    plain, _ = scheduled("data 2, overlap", 2)
    buckets, _ = scheduled("data 2, overlap 128B", 2)
    segments = [
        {task.name for task in each.graph.tasks if task.name.startswith("S")}
        for each in (buckets, plain)
    ]
    assert len(segments[0]) < len(segments[1])


def test_spelling() -> None:
    assert spelled("data 2, overlap 4MB") == "data 2, overlap 4MB"
    assert Strategy.parse("overlap").most_bytes == 0
    with pytest.raises(ScheduleError, match="says no size of a bucket"):
        Strategy.parse("overlap w1")


def test_a_pipeline_has_nothing_to_cut() -> None:
    with pytest.raises(ScheduleError, match="no sum of partial results could move"):
        scheduled("data 2, pipeline 2 x 2, overlap", 4)

"""Pipelines: which stage has which weight, in which order devices take micro-batches, how many of
them are in flight.
"""

from __future__ import annotations

import pytest

from avial_lab.compiler.passes.distir.stages import balanced
from avial_lab.compiler.passes.distir.task_order import Job, Part, in_pipeline_order, link
from avial_lab.core.regions import Box


def jobs_of(stages: int, turns: int) -> list[Job]:
    """Forward and backward passes of a pipeline; the last stage does both at once."""
    jobs: list[Job] = []
    whole = Box((0,), (1,))

    def part(kind: str, stage: int, turn: int) -> Part:
        return Part((kind, stage, turn), whole)

    depths = 2 * stages - 1
    for depth in range(depths):
        stage = min(depth, depths - 1 - depth)
        for turn in range(turns):
            before = [part("value", depth - 1, turn)] if depth else []
            jobs.append(
                Job(f"{depth}.{turn}", stage, depth, turn, before, [part("value", depth, turn)],
                    lambda: None)
            )  # fmt: skip
    link(jobs)
    return jobs


def in_flight(order: list[Job], stage: int, stages: int) -> int:
    """The most micro-batches that a stage has begun and not ended."""
    last = 2 * stages - 2 - stage
    flying: set[int] = set()
    most = 0
    for job in order:
        if job.device == stage and job.depth != last:
            flying.add(job.turn)
        most = max(most, len(flying))
        if job.device == stage and job.depth == last:
            flying.discard(job.turn)
    return most


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("turns", [1, 5, 8])
def test_micro_batches_in_flight(stages: int, turns: int) -> None:
    stage_of = {stage: stage for stage in range(stages)}
    for schedule in ("1f1b", "gpipe"):
        order = in_pipeline_order(jobs_of(stages, turns), stage_of, schedule)
        assert len(order) == (2 * stages - 1) * turns
        for stage in range(stages - 1):
            most = min(turns, stages - stage if schedule == "1f1b" else turns)
            assert in_flight(order, stage, stages) == most


def test_an_order_respects_what_is_read() -> None:
    jobs = jobs_of(3, 4)
    for schedule in ("1f1b", "gpipe"):
        done: set[str] = set()
        for job in in_pipeline_order(jobs, {0: 0, 1: 1, 2: 2}, schedule):
            assert {jobs[k].name for k in job.before} <= done
            done.add(job.name)


def test_stages_are_balanced() -> None:
    assert balanced([1, 1, 1, 1], 2) == [0, 0, 1, 1]
    assert max(balanced([5, 1, 1, 1], 3)) == 2
    assert balanced([5, 1, 1, 1], 2) == [0, 1, 1, 1]

"""Pipelines: which stage has which weight, in which order devices take micro-batches, how many of
them are in flight.
"""

from __future__ import annotations

import itertools

import pytest
from mlir import ir

from avial_lab.compiler.analysis.placements.reading import Reading
from avial_lab.compiler.passes.distir.stages import in_order_of_use
from avial_lab.compiler.passes.distir.task_order import (
    Job,
    Part,
    PipelineOrder,
    in_pipeline_order,
    link,
)
from avial_lab.core.regions import Box
from avial_lab.planning.stage_balance import balanced


def jobs_of(stages: int, turns: int, *, devices: int = 0, apart: bool = False) -> list[Job]:
    """Forward and backward passes of a pipeline; the last stage does both at once. `apart`: the
    gradients of weights are jobs of their own.
    """
    devices = devices or stages
    jobs: list[Job] = []
    whole = Box((0,), (1,))

    def part(kind: str, stage: int, turn: int) -> Part:
        return Part((kind, stage, turn), whole)

    depths = 2 * stages - 1
    for depth in range(depths):
        stage = min(depth, depths - 1 - depth)
        for turn in range(turns):
            before = [part("value", depth - 1, turn)] if depth else []
            made = [part("value", depth, turn)]
            jobs.append(
                Job(f"{depth}.{turn}", stage % devices, depth, turn, before, made,
                    lambda: None, stage=stage)
            )  # fmt: skip
            if apart and depth >= stages - 1:
                jobs.append(
                    Job(f"W{depth}.{turn}", stage % devices, depth, turn, made, [],
                        lambda: None, stage=stage, late=True)
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


def order_of(schedule: str, stages: int, turns: int, **more: int) -> tuple[list[Job], int]:
    """The jobs in order, and when the last ends: a forward pass takes 1, a backward pass 2 of which
    gradients of weights are one half.
    """
    devices = more.get("devices", stages)
    apart = schedule == "zero-bubble"
    places = {device: device for device in range(devices)}
    order = PipelineOrder(schedule, stages, devices, more.get("flight", 0))
    jobs = in_pipeline_order(jobs_of(stages, turns, devices=devices, apart=apart), places, order)
    ends: dict[object, int] = {}
    free = dict.fromkeys(range(devices), 0)
    for job in jobs:
        forward = 1 if job.depth < stages and not job.late else 0
        back = (1 if apart else 2) if job.depth >= stages - 1 or job.late else 0
        begin = max([free[job.device], *(ends[part.memory] for part in job.reads)])
        free[job.device] = begin + forward + back
        ends.update((part.memory, free[job.device]) for part in job.writes)
    return jobs, max(free.values())


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("turns", [1, 5, 8])
def test_micro_batches_in_flight(stages: int, turns: int) -> None:
    for schedule in ("1f1b", "gpipe"):
        order, _ = order_of(schedule, stages, turns)
        assert len(order) == (2 * stages - 1) * turns
        for stage in range(stages - 1):
            most = min(turns, stages - stage if schedule == "1f1b" else turns)
            assert in_flight(order, stage, stages) == most
            capped, _ = order_of(schedule, stages, turns, flight=2)
            assert in_flight(capped, stage, stages) == min(most, 2)


@pytest.mark.parametrize(("devices", "turns"), [(2, 4), (2, 8), (3, 6), (4, 4), (4, 8)])
def test_bubbles(devices: int, turns: int) -> None:
    """What is lost of the time, in units of a forward pass of a stage: (p - 1)/(k + p - 1) of it
    for GPipe and 1F1B, (p - 1)/(v k + p - 1) with v stages a device; a third with zero bubble H1.
    """
    lost = 3 * (devices - 1)
    assert order_of("1f1b", devices, turns)[1] == 3 * turns + lost
    assert order_of("gpipe", devices, turns)[1] == 3 * turns + lost
    for chunks in (2, 3):
        _, end = order_of("interleaved", devices * chunks, turns, devices=devices)
        assert end == 3 * turns * chunks + lost
    assert order_of("zero-bubble", devices, turns)[1] == 3 * turns + devices - 1


def test_an_order_respects_what_is_read() -> None:
    for schedule in ("1f1b", "gpipe", "interleaved", "zero-bubble"):
        for turns in (1, 4, 5):
            done: set[str] = set()
            jobs = jobs_of(6, turns, devices=3, apart=schedule == "zero-bubble")
            order = PipelineOrder(schedule, 6, 3)
            for job in in_pipeline_order(jobs, {0: 0, 1: 1, 2: 2}, order):
                assert {jobs[k].name for k in job.before} <= done
                done.add(job.name)
            assert len(done) == len(jobs)


def test_stages_are_balanced() -> None:
    assert balanced([1, 1, 1, 1], 2) == [0, 0, 1, 1]
    assert max(balanced([5, 1, 1, 1], 3)) == 2
    assert balanced([5, 1, 1, 1], 2) == [0, 1, 1, 1]
    for costs in itertools.product((0, 1, 3), repeat=5):
        for parts in range(1, 6):
            cuts = itertools.combinations(range(1, 5), parts - 1)
            ends = ((0, *each, 5) for each in cuts)
            most = min(max(sum(costs[a:b]) for a, b in itertools.pairwise(e)) for e in ends)
            found = balanced(costs, parts)
            assert sorted({*found}) == list(range(parts))
            assert found == sorted(found)
            assert most == max(
                sum(c for c, s in zip(costs, found, strict=True) if s == part)
                for part in range(parts)
            )


def test_weights_that_meet_the_batch_at_once_are_in_their_order() -> None:
    names = [f"%w{k}" for k in range(9)]
    arguments = ", ".join(f"{name}: tensor<4xf32>" for name in ("%x", *names))
    maps = ", ".join(["affine_map<(d) -> (d)>"] * 11)
    kinds = ", ".join(["tensor<4xf32>"] * 10)
    scalars = ", ".join(f"%s{k}: f32" for k in range(11))
    text = f"""func.func @f({arguments}) -> tensor<4xf32> {{
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel"]}}
        ins(%x, {", ".join(names)} : {kinds}) outs(%e : tensor<4xf32>) {{
      ^bb0({scalars}): linalg.yield %s0 : f32 }} -> tensor<4xf32>
      return %y : tensor<4xf32> }}"""
    with ir.Context():
        module = ir.Module.parse(text)
        block = module.body.operations[0].operation.regions[0].blocks[0]
        reading = Reading()
        uses = {view.operation: reading.used(view.operation) for view in block.operations}
        x, *weights = block.arguments
        order, _ = in_order_of_use(uses, {w: (w,) for w in weights}, {x}, reading)
        assert order == list(weights)

"""Stages of a pipeline that are divided by themselves: other degrees, the same results."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import parse
from avial_lab.compiler.worker.placed import ranks_of_tasks
from avial_lab.core.errors import AvialError
from avial_lab.planning.parallelism import devices_of, spelled
from avial_lab.program.compilation import compile as compile_program
from tests.compiler.passes.distir.divided import assert_divided_is_the_same
from tests.compiler.passes.distir.training_step import arrays_of, training_step

WIDTHS = (5, 6, 4, 6, 3)

CASES = {
    "columns": "pipeline 2 x 2, horizontal 2 in 1 w2:1",
    "first": "pipeline 2 x 2, horizontal 2 in 0 w0:1",
    "rows": "pipeline 2 x 3, data 2 in 0",
    "middle": "pipeline 3 x 2 gpipe, data 3 in 1",
    "each-by-itself": "pipeline 2 x 2, data 2 in 1, horizontal 2 in 0 w0:1",
    "both-in-one": "pipeline 2 x 2, data 2 in 1, horizontal 2 in 1 w2:1",
    "before": "data 2, pipeline 2 x 2, horizontal 2 in 1 w2:1",
    "behind": "pipeline 2 x 2, data 3 in 0, data 2",
    "interleaved": "pipeline 2 x 2 interleaved 2, data 2 in 1",
    "zero-bubble": "pipeline 2 x 2 zero-bubble, data 2 in 0, recompute",
}


@pytest.mark.slow
@pytest.mark.quick("columns", "each-by-itself")
@pytest.mark.parametrize("parallel", CASES.values(), ids=CASES)
def test_a_ragged_batch(parallel: str) -> None:
    assert_divided_is_the_same(training_step(7, WIDTHS), arrays_of(7, WIDTHS), parallel)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_any_degrees_on_up_to_seven_devices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = int(rng.integers(2, 5))
    widths = [int(n) for n in rng.integers(3, 8, layers + 1)]
    rows, stages = int(rng.integers(4, 10)), int(rng.integers(2, layers + 1))
    parts = [f"pipeline {stages} x {rng.integers(1, 4)} {rng.choice(['1f1b', 'gpipe'])}"]
    for stage in range(stages):
        more = [*parts, f"data {rng.integers(1, 4)} in {stage}"]
        if devices_of(spelled(more)) <= 7:
            parts = more
    assert_divided_is_the_same(
        training_step(rows, widths), arrays_of(rows, widths, seed=seed), spelled(parts)
    )


@pytest.mark.slow
@pytest.mark.parametrize("parallel", CASES.values(), ids=CASES)
def test_it_takes_as_many_devices_as_are_said(parallel: str) -> None:
    text = training_step(7, WIDTHS)
    module = parse(Source(text, "test", parallel=parallel))
    assert set(ranks_of_tasks(module).values()) == set(range(devices_of(parallel)))


@pytest.mark.mpi
@pytest.mark.slow
def test_a_run_on_three_ranks() -> None:
    program = compile_program(
        training_step(8, WIDTHS), arrays=arrays_of(8, WIDTHS), ranks=3,
        parallel="pipeline 2 x 2, data 2 in 1",
    )  # fmt: skip
    program.run(check=True, oversubscribe=True)


def test_words_are_written_as_they_are_read() -> None:
    assert spelled("horizontal 2 in 1 w2:1, data 3 in 0") == "horizontal 2 in 1 w2:1, data 3 in 0"


@pytest.mark.parametrize(
    ("parallel", "said"),
    [
        ("data 2 in 1", "there is no stage 1"),
        ("pipeline 2 x 2, data 2 in 7", "the stages are 0 to 1"),
        ("data 2 in x", "names no dimension"),
    ],
)
def test_a_stage_that_is_not_there(parallel: str, said: str) -> None:
    text = training_step(4, (2, 3, 2))
    with pytest.raises(AvialError) as caught:
        parse(Source(text, "test", parallel=parallel))
    assert said in str(caught.value)

"""Divided functions on real ranks: the values of the sequential function, on 1 to 7 of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import avial_lab
from avial_lab.core.errors import OptionError, PassError, ScheduleError
from avial_lab.planning.parallelism import Strategy, spelled, strategies
from tests.compiler.passes.distir.training_step import arrays_of, training_step

WIDTHS = (5, 6, 4)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("ranks", "parallel"),
    [
        (3, "data 3"),
        pytest.param(1, "data 1", marks=pytest.mark.slow),
        pytest.param(2, "horizontal 2 w0:1", marks=pytest.mark.slow),
        pytest.param(4, "data 2, pipeline 2 x 3 gpipe", marks=pytest.mark.slow),
        pytest.param(6, "pipeline 2 x 2, horizontal 3 w0:1", marks=pytest.mark.slow),
        pytest.param(7, "data 7", marks=pytest.mark.slow),
    ],
)
def test_a_training_step_on_ranks(ranks: int, parallel: str) -> None:
    program = avial_lab.compile(
        training_step(7, WIDTHS), arrays=arrays_of(7, WIDTHS), ranks=ranks, parallel=parallel
    )
    program.run(check=True, oversubscribe=True)
    assert program.check_report is not None
    assert "equal to the sequential reference" in program.check_report
    told = str(program.explain())
    assert "distir.all_reduce" in told or ranks == 1
    assert "works on" in told


def test_more_devices_than_ranks() -> None:
    with pytest.raises(ScheduleError, match="name device 3, and there are 2 ranks"):
        avial_lab.compile(
            training_step(7, WIDTHS), arrays=arrays_of(7, WIDTHS), ranks=2, parallel="data 4"
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sideways 2", "'sideways 2' is no strategy"),
        ("data", "'data' is no strategy"),
        ("data 0", "divides by no such number"),
        ("data 2 x 4", "data parallelism has no micro-batches"),
        ("pipeline 2 x 4 zigzag", "'zigzag' is no schedule of a pipeline"),
        ("horizontal 2 w0", "names no dimension to divide"),
        ("zero 4", "'zero 4' is no level of ZeRO"),
        ("recompute 2MB w0", "'recompute 2MB w0' says nothing to recompute"),
    ],
)
def test_what_is_no_strategy(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        strategies(text)


def test_programs_that_are_not_divided() -> None:
    tasks = """avial.schedule %x {
      %cpu = avial.target {arch = "cpu"}
      %t = avial.task %cpu, %x { affine.for %i = 0 to 4 { affine.store %z, %x[%i] } }
    }"""
    wrong: tuple[dict[str, Any], ...] = ({"parallel": "data 2"}, {"gradient": "x"})
    for options in wrong:
        with pytest.raises(OptionError, match="are for functions on tensors"):
            avial_lab.compile(tasks, arrays={"x": np.zeros(4)}, **options)
    number = """func.func @f(%x: tensor<4xf64>) -> f64 {
      %c0 = arith.constant 0 : index
      %y = tensor.extract %x[%c0] : tensor<4xf64>
      return %y : f64
    }"""
    with pytest.raises(PassError, match="a function on several devices returns f64"):
        avial_lab.compile(number, arrays={"x": np.zeros(4)}, parallel="data 2")
    open_ = """func.func @f(%x: tensor<?xf64>) -> tensor<?xf64> {
      %y = math.tanh %x : tensor<?xf64>
      return %y : tensor<?xf64>
    }"""
    with pytest.raises(PassError, match="has a size that is not known"):
        avial_lab.compile(open_, arrays={"x": np.zeros(4)}, parallel="data 2")


def test_strategies_are_spelled_as_they_are_read() -> None:
    text = "data 2 x:0, zero 2, horizontal 3 w0:1 w2:0, pipeline 2 x 8 gpipe, recompute 1.5MB"
    assert spelled(text) == text
    text = "pipeline 2 x 8 interleaved 3, pipeline 2 x 8 zero-bubble most 2"
    assert spelled(text) == text
    assert spelled([Strategy("data", 2), "pipeline 2"]) == "data 2, pipeline 2 x 1 1f1b"

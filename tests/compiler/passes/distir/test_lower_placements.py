"""Divided functions compute what the sequential ones do: random functions, each transform alone and
composed.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from avial_lab.core.errors import AvialError, ScheduleError
from tests.compiler.passes.distir.divided import assert_divided_is_the_same, results_of
from tests.compiler.passes.distir.training_step import arrays_of, training_step
from tests.quick import examples
from tests.tensor_functions import FunctionText, functions

SETTINGS = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@st.composite
def strategies(draw: st.DrawFn, function: FunctionText) -> str:
    """One to three transforms in any order, of degrees 1, 2, 3; a pipeline once."""
    kinds = draw(
        st.lists(st.sampled_from(("data", "horizontal", "pipeline")), min_size=1, max_size=3)
    )
    assume(kinds.count("pipeline") <= 1)
    parts: list[str] = []
    for kind in kinds:
        degree = draw(st.integers(1, 3))
        if kind == "pipeline":
            rows = function.arguments["%x"][0]
            how = draw(st.sampled_from(("", " gpipe", " interleaved 2", " zero-bubble", " most 1")))
            parts.append(f"pipeline {degree} x {draw(st.integers(1, min(3, rows)))}{how}")
            continue
        name = draw(st.sampled_from(sorted(function.arguments)))
        dim = draw(st.integers(0, 1))
        parts.append(f"{kind} {degree} {name}:{dim}")
    return ", ".join(parts)


def check(function: FunctionText, parallel: str, seed: int) -> None:
    try:
        assert_divided_is_the_same(function.text, function.given(seed), parallel)
    except ScheduleError:
        assume(False)  # more stages than weights


@given(data=st.data())
@settings(SETTINGS, max_examples=examples(4))
def test_random_functions(data: st.DataObject) -> None:
    function = data.draw(functions())
    check(function, data.draw(strategies(function)), 0)


@pytest.mark.slow
@given(data=st.data())
@settings(SETTINGS, max_examples=examples(150))
def test_many_random_functions(data: st.DataObject) -> None:
    function = data.draw(functions())
    check(function, data.draw(strategies(function)), data.draw(st.integers(0, 100)))


ORDERS = (
    pytest.param("pipeline 2 x 4 interleaved 2, horizontal 2 w1:1", marks=pytest.mark.slow),
    pytest.param("data 2, pipeline 3 x 3 zero-bubble", marks=pytest.mark.slow),
    pytest.param("pipeline 2 x 5 interleaved 2 most 3, recompute", marks=pytest.mark.slow),
    pytest.param("data 2, horizontal 2 w0:1, pipeline 2 x 3", marks=pytest.mark.slow),
    pytest.param("pipeline 2 x 3 gpipe, data 2, horizontal 2 w0:1", marks=pytest.mark.slow),
    pytest.param("horizontal 3 w0:1, pipeline 2 x 2, data 2", marks=pytest.mark.slow),
    pytest.param("pipeline 2 x 3, horizontal 2 w0:1", marks=pytest.mark.slow),
    "data 3",
)


@pytest.mark.parametrize("parallel", ORDERS)
def test_a_training_step(parallel: str) -> None:
    text = training_step(rows=7, widths=(5, 6, 4, 3, 2))
    assert_divided_is_the_same(text, arrays_of(7, (5, 6, 4, 3, 2)), parallel, terms=256)


def test_results_that_are_made_of_the_same() -> None:
    """`v5` is made where `v1` is, and that is where `v2` is to be."""
    t, one = "tensor<1xf64>", "tensor<1x1xf64>"
    text = f"""func.func @f(%x: {one}) -> ({t}, {t}) {{
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : {t}
  %z = linalg.fill ins(%zero : f64) outs(%e : {t}) -> {t}
  %v1 = linalg.reduce {{ arith.addf }} ins(%x : {one}) outs(%z : {t}) dimensions = [0]
  %v2 = arith.addf %v1, %v1 : {t}
  %c = arith.constant dense<0.0> : {t}
  %v5 = arith.addf %v1, %c : {t}
  return %v5, %v2 : {t}, {t}
}}"""
    found = results_of(text, {"x": np.array([[0.25]])}, "data 1 %x:1")
    assert (found["result0"], found["result1"]) == (0.25, 0.5)


def test_slices_of_blocks_without_rows() -> None:
    """Three devices and two rows: what one of them has no rows of is cut and put together."""
    text = """func.func @f(%x: tensor<2x4xf64>) -> (tensor<2x3xf64>, tensor<4xf64>) {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<4xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<4xf64>) -> tensor<4xf64>
  %a = tensor.extract_slice %x[0, 1] [2, 2] [1, 1] : tensor<2x4xf64> to tensor<2x2xf64>
  %b = arith.addf %a, %a : tensor<2x2xf64>
  %m = tensor.empty() : tensor<2x3xf64>
  %n = linalg.fill ins(%zero : f64) outs(%m : tensor<2x3xf64>) -> tensor<2x3xf64>
  %y = tensor.insert_slice %b into %n[0, 1] [2, 2] [1, 1] : tensor<2x2xf64> into tensor<2x3xf64>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<2x4xf64>) outs(%z : tensor<4xf64>)
    dimensions = [0]
  return %y, %s : tensor<2x3xf64>, tensor<4xf64>
}"""
    assert_divided_is_the_same(text, {"x": np.arange(8.0).reshape(2, 4)}, "data 3")


def test_a_result_that_is_a_number_and_an_argument_that_is_a_result() -> None:
    t = "tensor<4x2xi64>"
    text = f"""func.func @f(%x: {t}) -> ({t}, {t}, {t}) {{
      %zero = arith.subi %x, %x : {t}
      return %zero, %x, %x : {t}, {t}, {t}
    }}"""
    x = np.arange(8).reshape(4, 2)
    assert_divided_is_the_same(text, {"x": x}, "data 2")
    assert_divided_is_the_same(text, {"x": x}, "data 2, horizontal 2 x:1")


def test_more_stages_than_weights() -> None:
    text = training_step(rows=4, widths=(3, 2))
    with pytest.raises(AvialError, match="2 stages of a function that reads 1 weights"):
        assert_divided_is_the_same(text, arrays_of(4, (3, 2)), "pipeline 2 x 2")


def test_more_micro_batches_than_rows() -> None:
    text = training_step(rows=4, widths=(3, 2, 2))
    with pytest.raises(AvialError, match="5 micro-batches of 4 rows"):
        assert_divided_is_the_same(text, arrays_of(4, (3, 2, 2)), "pipeline 2 x 5")

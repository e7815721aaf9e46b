"""Gradients against differences, operation by operation and of random functions, and against a
training step whose gradients are written by hand; the same after they are divided.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avial_lab.compiler.codegen.math.adjoints import RULES
from tests.compiler.passes.distir.divided import assert_divided_is_the_same, results_of
from tests.compiler.passes.distir.training_step import arrays_of, training_step
from tests.quick import examples
from tests.tensor_functions import functions


def loss_of(text: str, name: str, shape: str) -> str:
    """The function with the sum of the squares of a value as its only result."""
    head, _, _ = text.partition("  return ")
    kind = f"tensor<{shape}f64>"
    rank = shape.count("x")
    dims = ", ".join(map(str, range(rank)))
    begun = "%le = tensor.empty() : tensor<f64>\n  %li = linalg.fill ins(%lz : f64) outs(%le : "
    reduced = (
        f"linalg.reduce ins(%ls : {kind}) outs(%li : tensor<f64>) dimensions = [{dims}] "
        "(%a: f64, %b: f64) { %c = arith.addf %a, %b : f64  linalg.yield %c : f64 }"
    )
    total = reduced if rank else "arith.addf %ls, %li : tensor<f64>"
    first, *rest = head.splitlines()
    first = first[: first.index(") ->")] + ") -> tensor<f64> {"
    return "\n".join(
        [first, *rest, "  %lz = arith.constant 0.0 : f64",
         f"  %ls = arith.mulf {name}, {name} : {kind}",
         f"  {begun}tensor<f64>) -> tensor<f64>", f"  %loss = {total}",
         "  return %loss : tensor<f64>\n}"]
    )  # fmt: skip


def assert_gradient_is_the_difference(
    text: str, arrays: Mapping[str, np.ndarray], name: str, *, rtol: float = 1e-5
) -> None:
    """Central differences along a random direction."""
    got = results_of(text, arrays, gradient=name)
    gradient = got[f"result{len(got) - 1}"]
    direction = np.random.default_rng(1).uniform(-1, 1, gradient.shape)
    step = 1e-6

    def loss(by: float) -> float:
        moved = {**arrays, name: arrays[name] + by * direction}
        return float(results_of(text, moved)["result0"])

    want = (loss(step) - loss(-step)) / (2 * step)
    scale = np.abs(gradient).sum() + abs(loss(0)) + 1
    assert (gradient * direction).sum() == pytest.approx(want, rel=rtol, abs=rtol * scale)


UNARY = ["arith.negf", *sorted(n for n in RULES if n.startswith("math.") and n != "math.fma")]
BINARY = ["arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf",
          "arith.minimumf", "arith.maxnumf", "arith.minnumf"]  # fmt: skip
ALL_RULES = """
func.func @f(%x: tensor<7xf64>, %y: tensor<7xf64>) -> tensor<7xf64> {{
  {body}
  return %r : tensor<7xf64>
}}
"""


def test_every_rule() -> None:
    assert set(UNARY) | set(BINARY) | {"math.fma", "arith.select"} == set(RULES)
    kind = "tensor<7xf64>"
    lines = [f"%u{k} = {op} %x : {kind}" for k, op in enumerate(UNARY)]
    lines += [f"%b{k} = {op} %x, %y : {kind}" for k, op in enumerate(BINARY)]
    lines += [
        f"%f = math.fma %x, %y, %x : {kind}",
        f"%on = arith.cmpf ogt, %x, %y : {kind}",
        f"%s = arith.select %on, %x, %f : tensor<7xi1>, {kind}",
    ]
    terms = [line.split()[0] for line in lines if " cmpf" not in line and "%on =" not in line]
    weighted = terms[0]
    for k, term in enumerate(terms[1:]):
        lines.append(f"%t{k} = arith.addf {weighted}, {term} : {kind}")
        weighted = f"%t{k}"
    lines.append(f"%r = arith.mulf {weighted}, %y : {kind}")
    text = loss_of(ALL_RULES.format(body="\n  ".join(lines)).strip(), "%r", "7x")
    rng = np.random.default_rng(0)
    arrays = {"x": rng.uniform(0.5, 1.5, 7), "y": rng.uniform(0.5, 1.5, 7)}
    for name in arrays:
        assert_gradient_is_the_difference(text, arrays, name)


@pytest.mark.slow
@given(data=st.data())
@settings(deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
def test_random_functions(data: st.DataObject) -> None:
    function = data.draw(functions(element="f64"))
    shape = "".join(f"{n}x" for n in function.shapes[function.results[0]])
    text = loss_of(function.text, function.results[0], shape)
    name = data.draw(st.sampled_from(sorted(function.arguments))).removeprefix("%")
    assert_gradient_is_the_difference(text, function.given(0), name, rtol=1e-4)


def forward_of(text: str) -> str:
    """Of a training step the loss alone."""
    lines = text.splitlines()
    end = next(k for k, line in enumerate(lines) if "linalg.reduce" in line)
    first = lines[0][: lines[0].index(") ->")] + ") -> tensor<f64> {"
    loss = lines[end].split()[0]
    return "\n".join([first, *lines[1 : end + 1], f"  return {loss} : tensor<f64>", "}"])


def test_extremes_and_loops_that_only_an_operand_without_gradient_knows() -> None:
    """Softmax with its maximum, and a sum over a loop that the gradient does not run over."""
    text = """
func.func @f(%x: tensor<4x3xf64>, %b: tensor<4xf64>) -> tensor<f64> {
  %zero = arith.constant 0.0 : f64
  %low = arith.constant 0xFFF0000000000000 : f64
  %e4 = tensor.empty() : tensor<4xf64>
  %m0 = linalg.fill ins(%low : f64) outs(%e4 : tensor<4xf64>) -> tensor<4xf64>
  %m = linalg.reduce ins(%x : tensor<4x3xf64>) outs(%m0 : tensor<4xf64>) dimensions = [1]
    (%a: f64, %t: f64) { %c = arith.maximumf %a, %t : f64  linalg.yield %c : f64 }
  %e = tensor.empty() : tensor<f64>
  %s0 = linalg.fill ins(%zero : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i)>, affine_map<(i, j) -> ()>],
      iterator_types = ["reduction", "reduction"]}
      ins(%x, %m, %b : tensor<4x3xf64>, tensor<4xf64>, tensor<4xf64>) outs(%s0 : tensor<f64>) {
  ^bb0(%v: f64, %top: f64, %d: f64, %t: f64):
    %p = arith.subf %v, %top : f64
    %q = math.exp %p : f64
    %r = arith.addf %q, %top : f64
    %u = arith.addf %r, %d : f64
    %w = arith.addf %t, %u : f64
    linalg.yield %w : f64
  } -> tensor<f64>
  return %s : tensor<f64>
}"""
    rng = np.random.default_rng(0)
    arrays = {"x": rng.uniform(-1, 1, (4, 3)), "b": rng.uniform(-1, 1, 4)}
    for name in arrays:
        assert_gradient_is_the_difference(text, arrays, name)


def test_slices() -> None:
    text = """
func.func @f(%x: tensor<4x3xf64>, %y: tensor<2x3xf64>) -> tensor<f64> {
  %zero = arith.constant 0.0 : f64
  %cut = tensor.extract_slice %x[0, 1] [2, 2] [2, 1] : tensor<4x3xf64> to tensor<2x2xf64>
  %in = tensor.insert_slice %cut into %y[0, 0] [2, 2] [1, 1]
    : tensor<2x2xf64> into tensor<2x3xf64>
  %q = arith.mulf %in, %in : tensor<2x3xf64>
  %e = tensor.empty() : tensor<f64>
  %s0 = linalg.fill ins(%zero : f64) outs(%e : tensor<f64>) -> tensor<f64>
  %s = linalg.reduce ins(%q : tensor<2x3xf64>) outs(%s0 : tensor<f64>) dimensions = [0, 1]
    (%a: f64, %t: f64) { %c = arith.addf %a, %t : f64  linalg.yield %c : f64 }
  return %s : tensor<f64>
}"""
    rng = np.random.default_rng(0)
    arrays = {"x": rng.uniform(-1, 1, (4, 3)), "y": rng.uniform(-1, 1, (2, 3))}
    for name in arrays:
        assert_gradient_is_the_difference(text, arrays, name)


WIDTHS = (5, 6, 4)


def test_a_training_step_that_is_written_by_hand() -> None:
    text, arrays = training_step(7, WIDTHS, element="f64"), arrays_of(7, WIDTHS, dtype=np.float64)
    by_hand = results_of(text, arrays)
    found = results_of(forward_of(text), arrays, gradient="w0+w1")
    for k in range(2):
        # The loss is the sum of squares, by hand it is half of it; a step is an eighth of that.
        step = (arrays[f"w{k}"] - by_hand[f"result{k + 1}"]) / 0.125
        np.testing.assert_allclose(found[f"result{k + 1}"], 2 * step, rtol=1e-10, atol=1e-10)


@pytest.mark.quick("pipeline*")
@pytest.mark.parametrize("parallel", ["data 2", "pipeline 2 x 3, horizontal 2 w0:1"])
def test_gradients_are_divided(parallel: str) -> None:
    text, arrays = training_step(7, WIDTHS, element="f64"), arrays_of(7, WIDTHS, dtype=np.float64)
    assert_divided_is_the_same(forward_of(text), arrays, parallel, gradient="w0+w1", terms=256)


STRIDED = """
func.func @f(%x: tensor<2x3x9x8xf64>, %w: tensor<4x3x3x2xf64>) -> tensor<2x4x3x6xf64> {
  %z = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<2x4x3x6xf64>
  %o = linalg.fill ins(%z : f64) outs(%e : tensor<2x4x3x6xf64>) -> tensor<2x4x3x6xf64>
  %y = linalg.conv_2d_nchw_fchw {strides = dense<[3, 1]> : tensor<2xi64>,
                                 dilations = dense<[1, 2]> : tensor<2xi64>}
      ins(%x, %w : tensor<2x3x9x8xf64>, tensor<4x3x3x2xf64>)
      outs(%o : tensor<2x4x3x6xf64>) -> tensor<2x4x3x6xf64>
  return %y : tensor<2x4x3x6xf64>
}
"""
POOLED = """
func.func @f(%x: tensor<2x3x9x8xf64>, %w: tensor<2x3xf64>) -> tensor<2x3x4x3xf64> {
  %z = arith.constant 0xFFF0000000000000 : f64
  %e = tensor.empty() : tensor<2x3x4x3xf64>
  %o = linalg.fill ins(%z : f64) outs(%e : tensor<2x3x4x3xf64>) -> tensor<2x3x4x3xf64>
  %y = linalg.pooling_nchw_max {strides = dense<2> : tensor<2xi64>,
                                dilations = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<2x3x9x8xf64>, tensor<2x3xf64>)
      outs(%o : tensor<2x3x4x3xf64>) -> tensor<2x3x4x3xf64>
  return %y : tensor<2x3x4x3xf64>
}
"""
WINDOWS = {
    "strided": (STRIDED.strip(), {"x": (2, 3, 9, 8), "w": (4, 3, 3, 2)}, "2x4x3x6x"),
    "pooled": (POOLED.strip(), {"x": (2, 3, 9, 8), "w": (2, 3)}, "2x3x4x3x"),
}


def window_loss(name: str) -> tuple[str, dict[str, np.ndarray]]:
    text, shapes, shape = WINDOWS[name]
    rng = np.random.default_rng(3)
    arrays = {each: rng.uniform(-1, 1, size) for each, size in shapes.items()}
    return loss_of(text, "%y", shape), arrays


@pytest.mark.parametrize("name", WINDOWS)
def test_what_is_read_through_windows(name: str) -> None:
    """Rows that no window reaches have the gradient 0; windows overlap, and have holes."""
    loss, arrays = window_loss(name)
    for argument in ("x", "w") if name == "strided" else ("x",):
        assert_gradient_is_the_difference(loss, arrays, argument)
    found = results_of(loss, arrays, gradient="x")["result1"]
    assert found.any()
    if name == "pooled":
        assert not found[:, :, 8:].any()


@pytest.mark.slow
def test_windows_are_divided() -> None:
    loss, arrays = window_loss("strided")
    assert_divided_is_the_same(loss, arrays, "data 2", gradient="x+w", terms=4096)

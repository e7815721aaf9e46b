"""Data parallelism: which dimension is the batch, and ragged batches."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.core.errors import AvialError
from tests.compiler.passes.distir.divided import assert_divided_is_the_same

SCALED = """
func.func @f(%w: tensor<3xi64>, %x: tensor<5x3xi64>) -> tensor<5x3xi64> {
  %e = tensor.empty() : tensor<5x3xi64>
  %b = linalg.broadcast ins(%w : tensor<3xi64>) outs(%e : tensor<5x3xi64>) dimensions = [0]
  %y = arith.muli %x, %b : tensor<5x3xi64>
  return %y : tensor<5x3xi64>
}
"""
ARRAYS = {"w": np.arange(3), "x": np.arange(15).reshape(5, 3)}


@pytest.mark.parametrize("parallel", ["data 2 x:0", "data 7 x:0", "data 2"])
def test_the_batch_is_divided_raggedly(parallel: str) -> None:
    assert_divided_is_the_same(SCALED, ARRAYS, parallel)


LOOP = """
func.func @f(%x: tensor<5x3xi64>, %n: tensor<5x3xi64>) -> tensor<5x3xi64> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<5x3xi64> {
    %b = arith.addi %a, %n : tensor<5x3xi64>
    scf.yield %b : tensor<5x3xi64>
  }
  %y = arith.muli %r, %n : tensor<5x3xi64>
  return %y : tensor<5x3xi64>
}
"""


def test_a_loop_on_tensors_is_done_whole() -> None:
    x = np.arange(15).reshape(5, 3)
    assert_divided_is_the_same(LOOP, {"x": x, "n": x + 1}, "data 2")


@pytest.mark.parametrize(
    ("of", "message"), [("y:0", "there is no tensor %y"), ("x:2", "it has no dimension 2")]
)
def test_a_batch_that_is_not_there(of: str, message: str) -> None:
    with pytest.raises(AvialError, match=message):
        assert_divided_is_the_same(SCALED, ARRAYS, f"data 2 {of}")

"""Data parallelism: which dimension is the batch, and ragged batches."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.compiler.requests import Source
from avial_lab.compiler.worker.build import parse
from avial_lab.compiler.worker.placed import told_of_division
from avial_lab.core.buffers import bind_arrays
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


PADDED = """
func.func @f(%x: tensor<5x1x4xf32>, %ids: tensor<5x2xi64>, %table: tensor<3x4xf32>)
    -> (tensor<5x2x6xf32>, tensor<5x4xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<5x2x4xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j)>,
      affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids : tensor<5x2xi64>) outs(%e : tensor<5x2x4xf32>) {
  ^bb0(%at: i64, %o: f32):
    %r = arith.index_cast %at : i64 to index
    %k = linalg.index 2 : index
    %v = tensor.extract %table[%r, %k] : tensor<3x4xf32>
    linalg.yield %v : f32
  } -> tensor<5x2x4xf32>
  %p = tensor.empty() : tensor<5x2x6xf32>
  %q = linalg.fill ins(%one : f32) outs(%p : tensor<5x2x6xf32>) -> tensor<5x2x6xf32>
  %padded = tensor.insert_slice %rows into %q[0, 0, 1] [5, 2, 4] [1, 1, 1]
    : tensor<5x2x4xf32> into tensor<5x2x6xf32>
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<5x1x4xf32> into tensor<5x4xf32>
  %twice = arith.addf %flat, %flat : tensor<5x4xf32>
  return %padded, %twice : tensor<5x2x6xf32>, tensor<5x4xf32>
}"""


@pytest.mark.parametrize("parallel", ["data 2 x:0", "data 3 ids:0", "horizontal 2 table:0"])
def test_gathers_paddings_and_dimensions_of_one(parallel: str) -> None:
    """What a body reads by index is needed whole; what a padding leaves alone is divided."""
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.uniform(-1, 1, (5, 1, 4)).astype(np.float32),
        "ids": rng.integers(0, 3, (5, 2)),
        "table": rng.uniform(-1, 1, (3, 4)).astype(np.float32),
    }
    assert_divided_is_the_same(PADDED, arrays, parallel)


def test_what_a_padding_leaves_alone_does_not_move() -> None:
    rng = np.random.default_rng(0)
    arrays = {"x": rng.uniform(-1, 1, (5, 1, 4)).astype(np.float32), "ids": np.zeros((5, 2), int),
              "table": np.zeros((3, 4), np.float32)}  # fmt: skip
    module = parse(Source(PADDED, "test", bind_arrays(arrays), parallel="data 2 ids:0"))
    assert not [line for line in told_of_division(module.operation) if "distir." in line]

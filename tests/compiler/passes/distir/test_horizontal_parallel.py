"""Horizontal parallelism: rows, columns, and both of one product."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.distir.divided import assert_divided_is_the_same

PRODUCT = """
func.func @f(%x: tensor<4x5xi64>, %w: tensor<5x3xi64>) -> tensor<4x3xi64> {
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<4x3xi64>
  %i = linalg.fill ins(%zero : i64) outs(%e : tensor<4x3xi64>) -> tensor<4x3xi64>
  %y = linalg.matmul ins(%x, %w : tensor<4x5xi64>, tensor<5x3xi64>) outs(%i : tensor<4x3xi64>) -> tensor<4x3xi64>
  %s = arith.muli %y, %y : tensor<4x3xi64>
  return %s : tensor<4x3xi64>
}
"""  # noqa: E501
ARRAYS = {"x": np.arange(20).reshape(4, 5), "w": np.arange(15).reshape(5, 3) - 7}


@pytest.mark.parametrize("of", ["w:0", "w:1", "w:1 x:1", "x:0"])
def test_every_way_to_divide_a_product(of: str) -> None:
    assert_divided_is_the_same(PRODUCT, ARRAYS, f"horizontal 3 {of}")

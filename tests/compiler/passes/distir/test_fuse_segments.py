"""Segments that are fused: the same values, fewer tasks or less that is handed on, said so."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.core.errors import ScheduleError
from avial_lab.planning.parallelism import spelled
from tests.compiler.passes.distir.divided import assert_divided_is_the_same
from tests.compiler.passes.distir.test_overlap import divided
from tests.compiler.passes.distir.training_step import arrays_of, training_step

WIDTHS = (5, 6, 4, 6, 3)

PARALLEL = [
    "data 2, fuse",
    "pipeline 2 x 3, fuse",
    "pipeline 3 x 2 gpipe, fuse",
    "pipeline 2 x 4 zero-bubble, fuse",
    "pipeline 2 x 2 interleaved 2, fuse",
    "data 2, pipeline 2 x 2, fuse",
    "horizontal 2 w0:1 w2:1, data 2, fuse",
    "horizontal 3 w0:1, fuse, overlap",
    "pipeline 2 x 3, data 2 in 1, fuse",
    "pipeline 2 x 2, recompute w1, fuse",
    "data 7, overlap, collectives, fuse",
]


@pytest.mark.slow
@pytest.mark.parametrize("parallel", PARALLEL)
def test_the_values_are_the_same(parallel: str) -> None:
    assert_divided_is_the_same(training_step(7, WIDTHS), arrays_of(7, WIDTHS), parallel, terms=256)


KEPT = """
func.func @f(%x: tensor<6x4xf32>, %w: tensor<4x4xf32>) -> tensor<6x4xf32> {
  %z = arith.constant dense<0.0> : tensor<6x4xf32>
  %e = math.exp %x : tensor<6x4xf32>
  %t = math.tanh %x : tensor<6x4xf32>
  %h = linalg.matmul ins(%t, %w : tensor<6x4xf32>, tensor<4x4xf32>) outs(%z : tensor<6x4xf32>)
    -> tensor<6x4xf32>
  %y = arith.mulf %h, %e : tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
"""


def test_less_is_kept() -> None:
    """Rows of %w on two devices: the products are summed, and what multiplies them is made then."""
    arrays = {
        "x": np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4),
        "w": np.eye(4, dtype=np.float32),
    }
    parallel = "horizontal 2 w:0"
    _, told = divided(KEPT, arrays, f"{parallel}, fuse", 2)
    line = next(line for line in told if line.startswith("fuse-segments"))
    assert line == (
        "fuse-segments: 1 operation where they are read: 2 of 2 segments, 192 B of 288 B handed on "
        "between them"
    )
    assert_divided_is_the_same(KEPT, arrays, f"{parallel}, fuse")
    _, told = divided(KEPT, arrays, "data 2, fuse", 2)
    assert any("1 segment left alone" in line for line in told)


def test_spelling() -> None:
    assert spelled("data 2, fuse") == "data 2, fuse"
    with pytest.raises(ScheduleError):
        spelled("data 2, fuse 3")

r"""The whole way for one 8 x 8 matrix product, in a few seconds; runs before every commit.

level 0    upper (rows 0-3 of c)    lower (rows 4-7 of c)
                \                      /
level 1          twice (all of c, in place)
"""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab

TEXT = """
avial.schedule %a, %b, %c {
  %cpu = avial.target {arch = "cpu"}
  %upper = avial.task %cpu, %a, %b, %c {
    scf.for %i = 0 to 4 {
      scf.for %j = 0 to 8 {
        scf.for %k = 0 to 8 {
          %x = memref.load %a[%i, %k]
          %y = memref.load %b[%k, %j]
          %old = memref.load %c[%i, %j]
          %product = arith.mulf %x, %y
          %new = arith.addf %old, %product
          memref.store %new, %c[%i, %j]
        }
      }
    }
  }
  %lower = avial.task %cpu, %a, %b, %c {
    scf.for %i = 4 to 8 {
      scf.for %j = 0 to 8 {
        scf.for %k = 0 to 8 {
          %x = memref.load %a[%i, %k]
          %y = memref.load %b[%k, %j]
          %old = memref.load %c[%i, %j]
          %product = arith.mulf %x, %y
          %new = arith.addf %old, %product
          memref.store %new, %c[%i, %j]
        }
      }
    }
  }
  %twice = avial.task %cpu, %c {
    scf.for %i = 0 to 8 {
      scf.for %j = 0 to 8 {
        %x = memref.load %c[%i, %j]
        %y = arith.addf %x, %x
        memref.store %y, %c[%i, %j]
      }
    }
  }
}
"""


@pytest.mark.mpi
def test_a_matrix_product_on_two_ranks() -> None:
    rng = np.random.default_rng(8)
    # Small whole numbers: every order of the sum gives the same value.
    a, b = (rng.integers(-9, 10, (8, 8)).astype(np.float64) for _ in range(2))
    c = np.zeros((8, 8))
    program = avial_lab.compile(TEXT, arrays={"a": a, "b": b, "c": c}, ranks=2)
    levels = [[task.name for task in level] for level in program.graph.levels]
    assert levels == [["upper", "lower"], ["twice"]]
    assert {placement.rank for placement in program.schedule.placements} == {0, 1}
    trace = program.run(check=True)
    assert trace.ranks == 2
    np.testing.assert_array_equal(c, 2 * (a @ b))

"""Threads and blocks compute what the loops do, whatever their sizes; each guard is needed."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.passes.gpu import form_kernels
from tests.compiler.passes.golden import assert_same, each_case

PASS = "form-kernels"


@each_case("form_kernels")
def test_the_golden_cases_compute_the_same(case: str) -> None:
    assert_same(case, PASS)


SIZED = """
func.func private @S1(%A: memref<90x300xf32>, %n: index, %m: index) attributes {avial.no_alias} {
  %one = arith.constant 1 : index
  %step = arith.constant STEP : index
  scf.for %i = %one to %n step %step {
    scf.for %j = %one to %m step %one {
      %a = memref.load %A[%i, %j] : memref<90x300xf32>
      %b = arith.addf %a, %a : f32
      memref.store %b, %A[%i, %j] : memref<90x300xf32>
    }
  }
  return
}
func.func @sized(%A: memref<90x300xf32>, %n: index, %m: index) {
  call @S1(%A, %n, %m) {avial.launch = array<i64: 0, -1, -1>}
    : (memref<90x300xf32>, index, index) -> ()
  return
}"""


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(
    "sizes", [(0, 5), (1, 300), (2, 2), (5, 64), (4, 65), (6, 66), (7, 257), (89, 299), (90, 300)]
)
def test_sizes_beside_a_block(sizes: tuple[int, int], step: int) -> None:
    n, m = (np.int64(size) for size in sizes)
    assert_same(SIZED.replace("STEP", str(step)), PASS, given={1: n, 2: m})


def test_more_blocks_than_a_grid_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form_kernels, "MOST_BLOCKS", (7, 3, 2))
    for step in ("1", "3"):
        given = {1: np.int64(83), 2: np.int64(290)}
        assert_same(SIZED.replace("STEP", step), PASS, given=given)


def test_a_forgotten_guard_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(_: object, *ends: object, equal: bool = False) -> ir.Value:
        return arith.constant(ir.IntegerType.get_signless(1), 1)

    monkeypatch.setattr(form_kernels._Kernel, "_below", always)
    with pytest.raises(AssertionError):
        assert_same(SIZED.replace("STEP", "1"), PASS, given={1: np.int64(5), 2: np.int64(100)})

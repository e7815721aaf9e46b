"""Threads and blocks compute what the loops do, whatever their sizes; each guard is needed."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.dialects import register
from avial_lab.compiler.passes.gpu import form_kernels
from avial_lab.compiler.passes.gpu.form_kernels import FormKernels
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


FROM = """
func.func private @S1(%A: memref<90x300xf32>, %n: index, %m: index) attributes {avial.no_alias} {
  affine.for %i = 1 to affine_map<()[n] -> (n)>()[%n] {
    affine.for %j = affine_map<()[m] -> (m)>()[%m] to 299 {
      %a = affine.load %A[%i, %j] : memref<90x300xf32>
      %b = arith.addf %a, %a : f32
      affine.store %b, %A[%i, %j] : memref<90x300xf32>
    }
  }
  return
}
func.func @from(%A: memref<90x300xf32>, %n: index, %m: index) {
  call @S1(%A, %n, %m) {avial.launch = array<i64: 0, -1, -1>}
    : (memref<90x300xf32>, index, index) -> ()
  return
}"""
"""Columns from %m on: threads begin at a line of memory before it."""


@pytest.mark.parametrize("begin", [0, 1, 31, 32, 33, 63, 64, 127, 298, 299, 300])
def test_columns_that_begin_within_a_line(begin: int) -> None:
    assert_same(FROM, PASS, given={1: np.int64(90), 2: np.int64(begin)})


def test_threads_before_the_first_column_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    known = form_kernels._Kernel._below

    def unless_equal(kernel: form_kernels._Kernel, *ends: ir.Value, equal: bool = False) -> object:
        if equal:
            return arith.constant(ir.IntegerType.get_signless(1), 1)
        return known(kernel, *ends)

    monkeypatch.setattr(form_kernels._Kernel, "_below", unless_equal)
    with pytest.raises(AssertionError):
        assert_same(FROM, PASS, given={1: np.int64(90), 2: np.int64(33)})


def test_more_rows_where_there_are_blocks_enough() -> None:
    """Eight of f32 for a thread, four where a GPU would have too little to do then."""
    for extent, rows in ((4000, 32), (300, 16)):
        text = FROM.replace("90x300", f"{extent}x{extent}").replace("to 299", f"to {extent}")
        text = text.replace("affine_map<()[n] -> (n)>()[%n]", str(extent))
        text = text.replace("affine_map<()[m] -> (m)>()[%m]", "1")
        context = ir.Context()
        register(context)
        with context:
            module = ir.Module.parse(text).operation
            FormKernels()(module)
            assert f"/ {rows})" in str(module)

"""What phases ask of the machine, and what the roofline says of it."""

from __future__ import annotations

import math
from dataclasses import replace

import islpy as isl
import pytest

import avial_lab
from avial_lab.benchmarks.kernel_suite import kernel_program
from avial_lab.compiler.analysis.costs.demand import points
from avial_lab.machine.demand import Demand
from avial_lab.machine.roofline import Ceilings, estimated_ceilings, predicted

SETS = {
    "a box": "{ [i, j, k] : 0 <= i < 30 and 5 <= j <= 9 and -3 <= k < 0 }",
    "a triangle": "{ [i, j] : 0 <= i < 37 and i < j < 37 }",
    "a pyramid": "{ [i, j, k] : 0 <= i < 23 and 0 <= j < i and j <= k < i }",
    "a line": "{ [i, j] : 0 <= i < 50 and j = 2i }",
    "nothing": "{ [i, j] : 0 <= i < 50 and j < 0 and j > 0 }",
    "a single point": "{ [i, j] : i = 3 and j = 4 }",
    "a wide and a narrow loop": "{ [i, j] : 0 <= i < 2 and 0 <= j < 1000 - i }",
    "of no loops": "{ [] }",
}


@pytest.mark.parametrize("text", SETS.values(), ids=SETS)
def test_points_are_counted_exactly(text: str) -> None:
    wanted = isl.Set(text)
    found: list[isl.Point] = []
    wanted.foreach_point(found.append)
    assert points(wanted) == len(found)


def test_points_of_a_big_box_are_counted_exactly() -> None:
    sides = 2**31 + 11, 2**31 - 1, 3
    box = isl.Set(f"{{ [i, j, k] : 0 <= i < {sides[0]} and 0 <= j < {sides[1]} and 4 <= k < 7 }}")
    assert points(box) == math.prod(sides)


def test_points_are_near_where_a_bound_changes_its_form() -> None:
    bent = isl.Set("{ [i, j] : 0 <= i < 1000 and 0 <= j < 300 and j < i }")
    exact = sum(min(i, 300) for i in range(1000))
    assert points(bent) == pytest.approx(exact, rel=0.02)


def test_points_of_a_loop_with_no_bound_but_its_type_are_estimated_at_once() -> None:
    open_ended = isl.Set("{ [i, j] : 0 <= i < 4294967296 and 0 <= j <= i }")
    exact = 4294967296 * 4294967297 // 2
    assert points(open_ended) == pytest.approx(exact, rel=1e-5)


FROM_A_LOADED_PLACE = """
func.func @moved(%A: memref<8xf64>, %B: memref<100xf64>, %at: memref<i64>) {
  %p = affine.load %at[] : memref<i64>
  %q = arith.index_cast %p : i64 to index
  affine.for %i = 0 to 8 {
    %x = affine.load %A[%i] : memref<8xf64>
    affine.store %x, %B[%i + symbol(%q)] : memref<100xf64>
  }
  return
}"""


def test_no_more_of_an_array_is_touched_than_it_has() -> None:
    told = avial_lab.compile(FROM_A_LOADED_PLACE, ranks=1).explain()
    demands = [each.demand for each in told.reports if each.demand is not None]
    assert [each.nbytes for each in demands] == [8 * 8 + 100 * 8]


def test_the_union_of_overlapping_sets_counts_an_element_once() -> None:
    both = isl.Set("{ [i, j] : 0 <= i < 20 and 0 <= j < 20; [i, j] : 1 <= i < 21 and 0 <= j < 20 }")
    assert points(both) == 21 * 20


@pytest.mark.quick("trmm", "gemm")
@pytest.mark.parametrize("name", ["gemm", "cholesky", "trmm", "atax", "symm"])
def test_operations_are_those_of_the_kernel(name: str) -> None:
    kernel = kernel_program(name, size="MINI", element="f32")
    program = avial_lab.compile(kernel.text, arrays=kernel.arrays, scalars=kernel.scalars, ranks=1)
    demands = [report.demand for report in program.explain().reports]
    flops = sum(demand.flops for demand in demands if demand is not None)
    wanted = kernel.kernel.flops(dict(kernel.sizes))  # pyright: ignore
    assert flops == pytest.approx(wanted, rel=0.02)


def test_loops_around_are_taken_in_the_middle() -> None:
    kernel = kernel_program("gramschmidt", size="MINI", element="f64")
    program = avial_lab.compile(kernel.text, arrays=kernel.arrays, scalars=kernel.scalars, ranks=1)
    demands = [v.demand for v in program.explain().reports if v.demand is not None]
    wanted = kernel.kernel.flops(dict(kernel.sizes))  # pyright: ignore
    assert sum(demand.flops for demand in demands) * kernel.sizes["N"] == pytest.approx(
        wanted, rel=0.15
    )


def test_bytes_are_those_of_the_elements_each_once() -> None:
    kernel = kernel_program("gemm", size="MINI", element="f32")
    program = avial_lab.compile(kernel.text, arrays=kernel.arrays, scalars=kernel.scalars, ranks=1)
    (report,) = program.explain().reports
    n, m, k = (kernel.sizes[name] for name in ("NI", "NJ", "NK"))
    assert report.demand is not None
    assert report.demand.nbytes == 4 * (n * k + k * m + 2 * n * m)  # C is read and written
    assert report.demand.element == "f32"
    slow = Ceilings(1, "f32", 1e9, 1e6)
    (held,) = program.explain(slow).reports
    assert "bound by memory" in held.model
    assert "1 MB/s" in held.model
    assert f"model: {held.model}" in str(program.explain(slow))
    assert replace(held, model=report.model) == report


def test_the_line_says_what_bounds_a_phase() -> None:
    ceilings = Ceilings(1, "f64", 40e9, 10e9)
    assert "bound by arithmetic; 1 ms at least, at 40 GFLOP/s" in predicted(
        Demand(40_000_000, 8), ceilings
    )
    assert "bound by memory; 1 ms at least, at 10 GB/s" in predicted(
        Demand(8, 10_000_000), ceilings
    )
    assert "0 flops a byte" in predicted(Demand(0, 8), ceilings)
    assert predicted(Demand(0, 0), ceilings)


def test_estimated_ceilings_are_some() -> None:
    single, double = estimated_ceilings("f32"), estimated_ceilings("f64")
    assert single.flops_per_s == 2 * double.flops_per_s > 0
    assert double.bytes_per_s > 0


PRODUCT = """
func.func @product(%A: memref<10x20xf64>, %B: memref<20x30xf64>, %C: memref<10x30xf64>) {
  affine.for %i = 0 to 10 {
    affine.for %j = 0 to 30 {
      affine.for %k = 0 to 20 {
        %a = affine.load %A[%i, %k] : memref<10x20xf64>
        %b = affine.load %B[%k, %j] : memref<20x30xf64>
        %c = affine.load %C[%i, %j] : memref<10x30xf64>
        %p = arith.mulf %a, %b : f64
        %s = arith.addf %c, %p : f64
        affine.store %s, %C[%i, %j] : memref<10x30xf64>
      }
    }
  }
  return
}
"""


def test_loads_are_counted_but_for_those_that_inner_loops_do_not_change() -> None:
    program = avial_lab.compile(PRODUCT, ranks=1)
    (demand,) = program._demands.values()
    assert demand.flops == 2 * 10 * 20 * 30
    assert demand.loaded_bytes == 8 * (2 * 10 * 20 * 30 + 10 * 30)

"""Sums by a ring, a tree, or doubling: the same values on 1 to 7 devices, the bytes as told."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.core.errors import ScheduleError
from avial_lab.planning.parallelism import Strategy, spelled
from avial_lab.planning.sum_algorithms import SumBy, cost_of_sum
from avial_lab.program.compilation import compile as compile_program
from tests.compiler.passes.distir.divided import assert_divided_is_the_same
from tests.compiler.passes.distir.test_overlap import divided, scheduled, slow
from tests.compiler.passes.distir.training_step import arrays_of, training_step

WIDTHS = (4, 5, 3)


def check(parallel: str, rows: int = 7, widths: tuple[int, ...] = WIDTHS) -> None:
    text = training_step(rows, widths)
    assert_divided_is_the_same(text, arrays_of(rows, widths), parallel, terms=256)


@pytest.mark.quick("doubling-3", "tree-4")
@pytest.mark.parametrize("devices", range(1, 8))
@pytest.mark.parametrize("by", ["ring", "tree", "doubling"])
def test_the_values_are_the_same(by: str, devices: int) -> None:
    check(f"data {devices}, collectives {by}")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["ring", "tree", "doubling", ""])
@pytest.mark.parametrize(
    "parallel",
    [
        "data 2, horizontal 3 w0:1, collectives {}",
        "horizontal 3 w0:1, data 2, collectives {}",
        "data 3, pipeline 2 x 2, collectives {}",
        "pipeline 2 x 3, data 3 in 1, collectives {}",
        "data 5, overlap, collectives {}",
        "data 3, horizontal 2 w0:1, overlap 64B, collectives {}",
    ],
)
def test_with_other_transforms(parallel: str, by: str) -> None:
    check(parallel.format(by).strip())


ADDED_TO_ALL = """
#all = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>
func.func @f(%x: tensor<12x5xf32>) -> tensor<12x5xf32> {
  %z = arith.constant dense<0.0> : tensor<5xf32>
  %e = tensor.empty() : tensor<12x5xf32>
  %s = linalg.reduce ins(%x : tensor<12x5xf32>) outs(%z : tensor<5xf32>) dimensions = [0]
    (%a: f32, %b: f32) { %c = arith.addf %a, %b : f32  linalg.yield %c : f32 }
  %y = linalg.generic {indexing_maps = [#all, #columns, #all],
    iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<12x5xf32>, tensor<5xf32>) outs(%e : tensor<12x5xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32): %c = arith.addf %a, %b : f32  linalg.yield %c : f32 }
    -> tensor<12x5xf32>
  return %y : tensor<12x5xf32>
}
"""
"""Columns' sums, which every device reads."""


@pytest.mark.parametrize("devices", [3, *(pytest.param(n, marks=slow) for n in (1, 2, 4, 5, 6, 7))])
def test_what_is_sent_is_what_is_told(devices: int) -> None:
    x = np.arange(60, dtype=np.float32).reshape(12, 5)
    for by in SumBy:
        parallel = f"data {devices}, collectives {by.value}"
        schedule, told = divided(ADDED_TO_ALL, {"x": x}, parallel, devices)
        sent = sum(
            each.nbytes for each in schedule.transfers if "R" in (each.producer + each.consumer)
        )
        assert sent == cost_of_sum(by, devices, 4 * 5).sent_bytes
        moves = next(line for line in told if line.startswith("distir.all_reduce"))
        assert devices == 1 or f"up to {sent} B sent" in moves
        assert_divided_is_the_same(ADDED_TO_ALL, {"x": x}, parallel)


def test_it_says_why_it_left_something_alone() -> None:
    _, told = scheduled("data 1, collectives", 1)
    assert all("is left to the ring: nothing moves" in line for line in told if "choose" in line)
    _, told = scheduled("data 2, collectives", 2)
    line = next(line for line in told if line.startswith("choose-collectives"))
    assert "over 2 devices by doubling" in line
    assert "ring" in line
    assert "tree" in line


def test_spelling() -> None:
    assert spelled("data 2, collectives doubling") == "data 2, collectives doubling"
    assert Strategy.parse("collectives").dimensions == ()
    with pytest.raises(ScheduleError, match="says no way to sum"):
        Strategy.parse("collectives bush")


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("parallel", "ranks"),
    [
        *((f"data {n}, collectives doubling, fuse", n) for n in range(1, 8)),
        ("data 3, collectives tree", 3),
        ("data 7, collectives tree", 7),
        ("horizontal 2 w0:1, data 2, collectives doubling, fuse", 4),
        ("pipeline 2 x 3, data 2 in 1, collectives, fuse", 3),
    ],
)
def test_runs_on_ranks(parallel: str, ranks: int) -> None:
    program = compile_program(
        training_step(8, WIDTHS), arrays=arrays_of(8, WIDTHS), ranks=ranks, parallel=parallel
    )
    program.run(check=True, oversubscribe=True)

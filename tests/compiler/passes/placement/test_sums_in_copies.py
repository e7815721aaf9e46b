"""Sums onto elements that the data say, with copies: those of the loop, on any number of GPUs."""

from __future__ import annotations

import numpy as np

import avial_lab
from tests.compiler.passes.golden import assert_same, each_case


@each_case("sums_in_copies")
def test_the_golden_cases_compute_the_same(case: str) -> None:
    assert_same(case, "sums-in-copies{on=gpu}")


TEXT = """
func.func @f(%b: memref<1500xi32>, %w: memref<1500xf32>, %h: memref<5xf32>, %n: memref<5xi32>) {
  affine.for %i = 0 to 1500 {
    %k = affine.load %b[%i] : memref<1500xi32>
    %m = arith.index_cast %k : i32 to index
    %x = affine.load %w[%i] : memref<1500xf32>
    %t = memref.load %h[%m] : memref<5xf32>
    %u = arith.addf %t, %x : f32
    memref.store %u, %h[%m] : memref<5xf32>
    %one = arith.constant 1 : i32
    %c = memref.load %n[%m] : memref<5xi32>
    %d = arith.addi %c, %one : i32
    memref.store %d, %n[%m] : memref<5xi32>
  }
  return
}"""


def test_any_number_of_gpus_has_the_same_bits() -> None:
    rng = np.random.default_rng(5)
    bins, weights = rng.integers(0, 5, 1500, np.int32), rng.uniform(0, 1, 1500).astype(np.float32)
    found: set[bytes] = set()
    for gpus in (1, 3):
        arrays = {"b": bins, "w": weights, "h": np.ones(5, np.float32), "n": np.zeros(5, np.int32)}
        program = avial_lab.compile(TEXT, arrays=arrays, ranks=1, gpus=gpus, on="gpu")
        program.run(check=True)
        np.testing.assert_array_equal(program.arrays["n"], np.bincount(bins))
        assert "runs on the CPU" not in str(program.explain())
        found.add(np.asarray(program.arrays["h"]).tobytes())
    assert len(found) == 1

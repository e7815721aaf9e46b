"""Sums of many threads are those of the loop, within the rounding of another order; and the same
bits whatever number of GPUs.
"""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from tests.compiler.passes.golden import assert_same, each_case


@each_case("sums_in_blocks")
def test_the_golden_cases_compute_the_same(case: str) -> None:
    assert_same(case, "sums-in-blocks{on=gpu}", rtol=1e-13 if "addf" in case else 0)


TEXT = """
func.func @f(%x: memref<Nxf64>, %s: memref<4xf64>) {
  affine.for %i = 0 to N {
    %p = affine.load %x[%i] : memref<Nxf64>
    %t = affine.load %s[2] : memref<4xf64>
    %u = arith.OP %t, %p : f64
    affine.store %u, %s[2] : memref<4xf64>
  }
  return
}"""


@pytest.mark.parametrize(
    ("operation", "size"),
    [
        ("addf", 70001),
        pytest.param("maximumf", 2053, marks=pytest.mark.slow),
        pytest.param("minimumf", 2048, marks=pytest.mark.slow),
    ],
)
def test_any_number_of_gpus_has_the_same_bits(operation: str, size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.uniform(-1, 1, size)
    if operation == "minimumf":
        x[777] = np.nan
    text = TEXT.replace("OP", operation).replace("N", str(size))
    found: set[bytes] = set()
    for gpus in (1, 2):
        arrays = {"x": x.copy(), "s": np.array([1.0, 2.0, -0.5, 3.0])}
        program = avial_lab.compile(text, arrays=arrays, ranks=1, gpus=gpus, on="gpu")
        assert any("combines up to" in line for line in str(program.explain()).splitlines())
        program.run(check=True)
        found.add(np.asarray(program.arrays["s"]).tobytes())
    assert len(found) == 1


BESIDE = """
func.func @f(%x: memref<5000xf32>, %y: memref<5000xf32>, %s: memref<1xf32>,
             %m: memref<1xf32>) {
  affine.for %i = 0 to 5000 {
    %p = affine.load %x[%i] : memref<5000xf32>
    %q = affine.load %y[%i] : memref<5000xf32>
    %r = arith.addf %p, %q : f32
    affine.store %r, %y[%i] : memref<5000xf32>
    %t = affine.load %s[0] : memref<1xf32>
    %u = math.fma %r, %r, %t : f32
    affine.store %u, %s[0] : memref<1xf32>
    %a = math.absf %r : f32
    %v = affine.load %m[0] : memref<1xf32>
    %w = arith.maximumf %v, %a : f32
    affine.store %w, %m[0] : memref<1xf32>
  }
  return
}"""


def test_sums_of_what_the_loop_stores() -> None:
    """As a step of conjugate gradients has them: a sum and an extreme beside the new values."""
    rng = np.random.default_rng(3)
    x, y = (rng.uniform(-1, 1, 5000).astype(np.float32) for _ in range(2))
    found: set[bytes] = set()
    for gpus in (1, 3):
        arrays = {"x": x, "y": y.copy(), "s": np.zeros(1, np.float32)}
        arrays["m"] = np.zeros(1, np.float32)
        program = avial_lab.compile(BESIDE, arrays=arrays, ranks=1, gpus=gpus, on="gpu")
        assert "runs on the CPU" not in str(program.explain())
        program.run(check=True)
        found.add(np.asarray(program.arrays["s"]).tobytes())
    assert len(found) == 1

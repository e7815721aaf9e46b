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
    assert_same(case, "sums-in-blocks{on=gpu}", rtol=1e-13 if "@dot" in case else 0)


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

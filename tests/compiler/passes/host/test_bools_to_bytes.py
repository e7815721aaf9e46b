"""Arrays of truth values are read and written as bytes of 0 and 1."""

from __future__ import annotations

import numpy as np

from avial_lab.compiler.passes.host.bools_to_bytes import BoolsToBytes
from tests.compiler.passes.golden import computed

LESS = """
func.func @less(%a: memref<9xi1>, %b: memref<9xi1>, %c: memref<9xi1>) {
  %yes = arith.constant true
  affine.for %i = 0 to 9 {
    %x = affine.load %a[%i] : memref<9xi1>
    %y = affine.load %b[%i] : memref<9xi1>
    %no = arith.xori %x, %yes : i1
    %z = arith.andi %no, %y : i1
    affine.store %z, %c[%i] : memref<9xi1>
  }
  return
}"""


def test_the_values_of_numpy() -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(0, 2, 9).astype(np.int8) for _ in range(3))
    *_, got = computed(LESS, ("lower-affine", BoolsToBytes()), given={0: a, 1: b, 2: c})
    assert got.tolist() == [int(not x and y) for x, y in zip(a, b, strict=True)]

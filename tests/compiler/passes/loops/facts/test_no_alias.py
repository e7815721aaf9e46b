"""Arrays that a call gives twice stay one to LLVM: what one of them gets, the other has."""

from __future__ import annotations

import pytest

from tests.compiler.passes.golden import OPTIMISED, assert_same

SHIFT = """
func.func private @shift(%a: memref<64xf64>, %b: memref<64xf64>) attributes {no_inline} {
  affine.for %i = 1 to 64 {
    %x = affine.load %a[%i - 1] : memref<64xf64>
    %y = arith.addf %x, %x : f64
    affine.store %y, %b[%i] : memref<64xf64>
  }
  return
}
func.func @main(%A: memref<64xf64>, %B: memref<64xf64>) {
  call @shift(%A, CALLED) : (memref<64xf64>, memref<64xf64>) -> ()
  return
}"""


@pytest.mark.parametrize("called", ["%A", "%B"])
def test_the_same_bits(called: str) -> None:
    assert_same(SHIFT.replace("CALLED", called), "no-alias", opt_level=OPTIMISED)

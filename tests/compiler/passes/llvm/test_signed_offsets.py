"""Arrays that are walked backwards: their offsets are negative numbers, not huge ones."""

from __future__ import annotations

import numpy as np
from mlir import ir

from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.llvm.signed_offsets import SignedOffsets
from tests.compiler.passes.golden import computed

BACKWARDS = """
func.func @backwards(%A: memref<9xf64>, %B: memref<9xf64>, %by: index) {
  %turned = memref.reinterpret_cast %A to offset: [8], sizes: [9], strides: [%by]
    : memref<9xf64> to memref<9xf64, strided<[?], offset: 8>>
  affine.for %i = 0 to 9 {
    %x = affine.load %turned[%i] : memref<9xf64, strided<[?], offset: 8>>
    affine.store %x, %B[%i] : memref<9xf64>
  }
  return
}"""


def test_no_promise_is_left() -> None:
    with ir.Context():
        module = ir.Module.parse(BACKWARDS)
        run_passes(module.operation, ("lower-affine", *TO_LLVM))
        assert "overflow<" in str(module)
        run_passes(module.operation, (SignedOffsets(),))
        assert "overflow<" not in str(module)


def test_the_other_way_round() -> None:
    passes = ("lower-affine", *TO_LLVM, SignedOffsets())
    a = np.arange(9.0)
    _, got = computed(BACKWARDS, passes, given={0: a, 2: np.int64(-1)})
    assert got.tolist() == a[::-1].tolist()

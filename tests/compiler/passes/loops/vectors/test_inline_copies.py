"""Copies of short arrays are no calls; LLVM decides about longer ones."""

from __future__ import annotations

import pytest
from mlir import ir

from avial_lab.compiler.ir.llvm_attributes import NO_MEMCPY
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.vectors.inline_copies import InlineCopies

COPY = """
    affine.for %i = 0 to 64 {
      %a = affine.load %A[%i] : memref<64xf64>
      affine.store %a, %B[%i] : memref<64xf64>
    }"""


def is_marked(body: str, cache: int = 2 * 64 * 8) -> bool:
    text = f"""
    func.func @f(%A: memref<64xf64>, %B: memref<64xf64>, %C: memref<?xf64>)
        attributes {{avial.no_alias}} {{
      {body}
      return
    }}"""
    with ir.Context():
        module = ir.Module.parse(text)
        run_passes(module.operation, (IndependentAccesses(), InlineCopies(cache)))
        return NO_MEMCPY in str(module)


def test_copies_that_fit_the_cache_stay_loops() -> None:
    assert is_marked(COPY)
    assert not is_marked(COPY, cache=2 * 64 * 8 - 1)


@pytest.mark.parametrize(
    "body",
    [
        COPY.replace("affine.store %a", "%b = arith.addf %a, %a : f64\n affine.store %b"),
        COPY.replace("%B[%i] : memref<64xf64>", "%C[%i] : memref<?xf64>"),
        COPY + COPY.replace("%B[%i] : memref<64xf64>", "%C[%i] : memref<?xf64>"),
    ],
)
def test_other_functions_are_not_told(body: str) -> None:
    assert not is_marked(body)

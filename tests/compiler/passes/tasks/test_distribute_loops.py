"""Loops taken apart compute the same bits, and only where that leaves something to split."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

import kernels
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.distribute_loops import DistributeLoops
from tests.compiler.analysis.parallelism.test_partition import outline_of
from tests.compiler.analysis.polyhedral.nests import Nest, near_nests
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.analysis.polyhedral.texts import named_module
from tests.compiler.passes.rewriting import check_same_bits
from tests.kernels.some import some_kernels
from tests.quick import examples


def distributed(text: str, context: ir.Context) -> ir.Module:
    module = named_module(text, context)
    run_passes(module.operation, (DistributeLoops(),))
    module.operation.verify()
    return module


CASES = {
    "what is parallel before a chain": (
        """affine.for %i = 1 to 100 {
          %b = affine.load %B[%i] : memref<100xf64>
          %s = arith.addf %b, %b : f64
          affine.store %s, %A[%i] : memref<100xf64>
          %c = affine.load %C[%i - 1] : memref<100xf64>
          %d = arith.addf %c, %s : f64
          affine.store %d, %C[%i] : memref<100xf64>
        }""",
        ["split i, at A dimension 0 offset +0", "sequential i: C[i - 1]"],
    ),
    "a reader behind its writer": (
        """affine.for %i = 1 to 100 {
          %b = affine.load %B[%i] : memref<100xf64>
          affine.store %b, %A[%i] : memref<100xf64>
          %a = affine.load %A[%i - 1] : memref<100xf64>
          affine.store %a, %C[%i] : memref<100xf64>
        }""",
        ["split i, at A dimension 0 offset +0", "split i, at C dimension 0 offset +0"],
    ),
    "a reader before its writer: the groups change places": (
        """affine.for %i = 1 to 100 {
          %a = affine.load %A[%i - 1] : memref<100xf64>
          affine.store %a, %C[%i] : memref<100xf64>
          %b = affine.load %B[%i] : memref<100xf64>
          affine.store %b, %A[%i] : memref<100xf64>
        }""",
        ["split i, at A dimension 0 offset +0", "split i, at C dimension 0 offset +0"],
    ),
    "a cycle around the loop": (
        """affine.for %i = 1 to 100 {
          %c = affine.load %C[%i - 1] : memref<100xf64>
          affine.store %c, %A[%i] : memref<100xf64>
          %a = affine.load %A[%i] : memref<100xf64>
          affine.store %a, %C[%i] : memref<100xf64>
        }""",
        ["sequential i: C[i - 1]"],
    ),
    "a value that cannot be had twice": (
        """affine.for %i = 1 to 100 {
          %b = affine.load %B[%i] : memref<100xf64>
          affine.store %b, %A[%i] : memref<100xf64>
          %c = affine.load %C[%i - 1] : memref<100xf64>
          %d = arith.addf %c, %b : f64
          affine.store %d, %C[%i] : memref<100xf64>
          affine.store %d, %B[%i] : memref<100xf64>
        }""",
        ["sequential i: C[i - 1]"],
    ),
    "one that can, once its writer is gone": (
        """affine.for %i = 1 to 100 {
          %b = affine.load %B[%i] : memref<100xf64>
          affine.store %b, %A[%i] : memref<100xf64>
          affine.store %x, %B[%i] : memref<100xf64>
          %c = affine.load %C[%i - 1] : memref<100xf64>
          %d = arith.addf %c, %b : f64
          affine.store %d, %C[%i] : memref<100xf64>
        }""",
        [
            "split i, at A dimension 0 offset +0",
            "sequential i: C[i - 1]",
            "split i, at B dimension 0 offset +0",
        ],
    ),
    "a copy beside a triangular solve is not worth it": (
        """affine.for %i = 0 to 100 {
          %b = affine.load %B[%i] : memref<100xf64>
          affine.store %b, %A[%i] : memref<100xf64>
          affine.for %j = 0 to affine_map<(i) -> (i)>(%i) {
            %a = affine.load %A[%j] : memref<100xf64>
            %c = affine.load %A[%i] : memref<100xf64>
            %d = arith.mulf %a, %c : f64
            affine.store %d, %A[%i] : memref<100xf64>
          }
        }""",
        ["sequential i: A[j]"],
    ),
    "what can be split whole": (
        """affine.for %i = 0 to 100 {
          %b = affine.load %B[%i] : memref<100xf64>
          affine.store %b, %A[%i] : memref<100xf64>
          affine.store %b, %C[%i] : memref<100xf64>
        }""",
        ["split i, at A dimension 0 offset +0"],
    ),
    "in a loop around": (
        """affine.for %t = 0 to 9 {
          affine.for %i = 1 to 100 {
            %b = affine.load %B[%i] : memref<100xf64>
            affine.store %b, %A[%i] : memref<100xf64>
            %a = affine.load %A[%i - 1] : memref<100xf64>
            affine.store %a, %B[%i] : memref<100xf64>
          }
        }""",
        [
            "around t",
            "  split i, at A dimension 0 offset +0",
            "  split i, at B dimension 0 offset +0",
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, context: ir.Context) -> None:
    body, expected = CASES[name]
    kind = "memref<100xf64>"
    text = f"func.func @f(%A: {kind}, %B: {kind}, %C: {kind}, %x: f64) {{\n{body}\nreturn }}"
    found = outline_of(distributed(text, context))
    assert [line.partition(" is ")[0] for line in found] == expected


@some_kernels()
def test_kernels_stay_as_they_are(name: str, context: ir.Context) -> None:
    """Each of their loops is split whole, or has one thing to do."""
    kernel = kernels.load(name)
    text = kernel.mlir(kernel.elements[0])
    before = str(ir.Module.parse(text, context))
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (DistributeLoops(),))
    assert str(module) == before


@settings(max_examples=examples(3), deadline=None, suppress_health_check=SLOW)
@given(each=st.lists(near_nests, min_size=15, max_size=15))
def test_the_same_bits(each: list[Nest]) -> None:
    check_same_bits(each, DistributeLoops())

"""Loops that one iteration keeps from being split are cut there, and compute the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

import kernels
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.split_index_sets import SplitIndexSets
from kernels.kernel import ELEMENTS
from tests.compiler.analysis.parallelism.test_partition import outline_of
from tests.compiler.analysis.polyhedral.nests import Nest, near_nests
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.analysis.polyhedral.texts import named_module
from tests.compiler.passes.rewriting import check_same_bits
from tests.kernels.jit import Machine
from tests.kernels.some import some_kernels
from tests.quick import examples


def cut(text: str, context: ir.Context) -> ir.Module:
    module = named_module(text, context)
    run_passes(module.operation, (SplitIndexSets(),))
    module.operation.verify()
    return module


CASES = {
    "all rows from one": (
        """affine.for %i = 0 to 20 {
          affine.for %j = 0 to 20 {
            %p = affine.load %B[7, %j] : memref<20x20xf64>
            %q = affine.load %B[%i, 3] : memref<20x20xf64>
            %s = arith.addf %p, %q : f64
            affine.store %s, %B[%i, %j] : memref<20x20xf64>
          }
        }""",
        3 * ["split i, at B dimension 0 offset +0"],
    ),
    "by scf, from a row that is given": (
        """%c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c20 = arith.constant 20 : index
        scf.for %i = %c0 to %c20 step %c1 {
          scf.for %j = %c0 to %c20 step %c1 {
            %p = memref.load %B[%n, %j] : memref<20x20xf64>
            %q = memref.load %B[%i, %n] : memref<20x20xf64>
            %s = arith.addf %p, %q : f64
            memref.store %s, %B[%i, %j] : memref<20x20xf64>
          }
        }""",
        3 * ["split i, at B dimension 0 offset +0"],
    ),
    "the row before": (
        """affine.for %i = 1 to 20 {
          affine.for %j = 0 to 20 {
            %p = affine.load %B[%i - 1, %j] : memref<20x20xf64>
            %q = affine.load %B[%i, %j - 1] : memref<20x20xf64>
            %s = arith.addf %p, %q : f64
            affine.store %s, %B[%i, %j] : memref<20x20xf64>
          }
        }""",
        ["sequential i: B[i - 1, j] is written by the previous iteration of i"],
    ),
    "elements are not worth it": (
        """affine.for %i = 0 to 20 {
          %p = affine.load %B[7, 3] : memref<20x20xf64>
          affine.store %p, %B[%i, 3] : memref<20x20xf64>
        }""",
        ["sequential i: B[7, 3] is written by an earlier iteration of i"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, context: ir.Context) -> None:
    body, expected = CASES[name]
    text = f"func.func @f(%B: memref<20x20xf64>, %n: index) {{\n{body}\nreturn }}"
    module = cut(text, context)
    assert [line.partition(": line")[0] for line in outline_of(module)] == expected
    if name != "the row before":  # it reads before the array
        machine = Machine([("before", text), ("after", str(module.body.operations[0]))], context)
        for n in (0, 4, 19):
            values = {"B": np.random.default_rng(n).random((20, 20)), "n": np.int64(n)}
            before, after = machine.call("before", values), machine.call("after", values)
            assert before["B"].tobytes() == after["B"].tobytes()


@some_kernels()
def test_of_the_kernels_floyd_warshall_alone_is_cut(name: str, context: ir.Context) -> None:
    kernel = kernels.load(name)
    for sizes in (None, kernel.datasets[kernels.Dataset.LARGE]):
        text = kernel.mlir(kernel.elements[0], sizes)
        before = str(ir.Module.parse(text, context))
        assert (str(cut(text, context)) != before) == (name == "floyd-warshall")


def test_floyd_warshall_is_split_by_rows(context: ir.Context) -> None:
    kernel = kernels.load("floyd-warshall")
    text = kernel.mlir("f64")
    module = cut(text, context)
    assert outline_of(module) == ["around k", *3 * ["  split i, at path dimension 0 offset +0"]]
    machine = Machine([("before", text), ("after", str(module.body.operations[0]))], context)
    for n in (1, 2, 9):
        arguments = kernel.inputs({"N": n}, ELEMENTS["f64"], np.random.default_rng(n))
        # Negative ways too: there even the way from k to k gets shorter.
        arguments["path"] = np.random.default_rng(n).normal(size=(n, n))
        before, after = machine.call("before", arguments), machine.call("after", arguments)
        assert before["path"].tobytes() == after["path"].tobytes()


@settings(max_examples=examples(3), deadline=None, suppress_health_check=SLOW)
@given(each=st.lists(near_nests, min_size=15, max_size=15))
def test_the_same_bits(each: list[Nest]) -> None:
    check_same_bits(each, SplitIndexSets())

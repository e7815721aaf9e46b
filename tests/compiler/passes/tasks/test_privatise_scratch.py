"""Scratch arrays get private to iterations, the last of which leaves what it would have left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

import kernels
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.tasks.privatise_scratch import PrivatiseScratch
from tests.compiler.analysis.parallelism.test_partition import outline_of
from tests.compiler.analysis.polyhedral.nests import Nest, near_nests
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.analysis.polyhedral.texts import named_module
from tests.compiler.passes.rewriting import check_same_bits
from tests.kernels.jit import Machine
from tests.kernels.some import some_kernels
from tests.quick import examples


def privatised(text: str, context: ir.Context) -> ir.Module:
    module = named_module(text, context)
    run_passes(module.operation, (PrivatiseScratch(),))
    module.operation.verify()
    return module


ROW = """affine.for %j = 0 to 50 {
            %b = affine.load %B[%i, %j] : memref<100x50xf64>
            affine.store %b, %S[%j] : memref<50xf64>
          }
          affine.for %j = 1 to 50 {
            %s = affine.load %S[%j - 1] : memref<50xf64>
            affine.store %s, %B[%i, %j] : memref<100x50xf64>
          }"""
CASES = {
    "a row to work on": (
        f"affine.for %i = 0 to 100 {{ {ROW} }}",
        ["split i, at B dimension 0 offset +0"],
    ),
    "by scf, in steps": (
        f"""%c0 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        scf.for %i = %c0 to %n step %c2 {{ {
            ROW.replace("affine.load %B", "memref.load %B").replace(
                "affine.store %s", "memref.store %s"
            )
        } }}""",
        ["split i, at B dimension 0 offset +0"],
    ),
    "a part of it: the last iteration keeps the rest": (
        """affine.for %i = 0 to 100 {
          affine.for %j = 3 to 40 {
            %b = affine.load %B[%i, %j] : memref<100x50xf64>
            affine.store %b, %S[%j] : memref<50xf64>
          }
          affine.for %j = 3 to 40 {
            %s = affine.load %S[%j] : memref<50xf64>
            affine.store %s, %B[%i, %j - 1] : memref<100x50xf64>
          }
        }""",
        ["split i, at B dimension 0 offset +0"],
    ),
    "read before it is written": (
        """affine.for %i = 0 to 100 {
          affine.for %j = 0 to 50 {
            %s = affine.load %S[%j] : memref<50xf64>
            affine.store %s, %B[%i, %j] : memref<100x50xf64>
            %b = affine.load %B[%i, %j] : memref<100x50xf64>
            affine.store %b, %S[49 - %j] : memref<50xf64>
          }
        }""",
        ["sequential i: S[j] is written by an earlier iteration of i"],
    ),
    "the last iteration does less": (
        """affine.for %i = 0 to 100 {
          affine.for %j = 0 to affine_map<(i) -> (50, 100 - i)>(%i) {
            affine.store %x, %S[%j] : memref<50xf64>
            %s = affine.load %S[%j] : memref<50xf64>
            affine.store %s, %B[%i, %j] : memref<100x50xf64>
          }
        }""",
        ["split j, in i, triangular, at B dimension 1 offset +0"],
    ),
    "it is not all that forbids": (
        """affine.for %i = 1 to 100 {
          affine.store %x, %S[0] : memref<50xf64>
          %s = affine.load %S[0] : memref<50xf64>
          %b = affine.load %B[%i - 1, 0] : memref<100x50xf64>
          %y = arith.addf %b, %s : f64
          affine.store %y, %B[%i, 0] : memref<100x50xf64>
        }""",
        ["sequential i: S[0] is written by an earlier iteration of i"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str, context: ir.Context) -> None:
    body, expected = CASES[name]
    arguments = "%B: memref<100x50xf64>, %S: memref<50xf64>, %x: f64, %n: index"
    body = body.replace("affine_map<(i) -> (50", "min affine_map<(i) -> (50")
    text = f"func.func @f({arguments}) {{\n{body}\nreturn }}"
    module = privatised(text, context)
    assert [line.partition(": line")[0] for line in outline_of(module)] == expected
    machine = Machine([("before", text), ("after", str(module.body.operations[0]))], context)
    rng = np.random.default_rng(3)
    values = {"B": rng.random((100, 50)), "S": rng.random(50), "x": np.float64(2), "n": np.int64(9)}
    before, after = machine.call("before", values), machine.call("after", values)
    for array, value in before.items():
        assert value.tobytes() == after[array].tobytes(), array


@some_kernels()
def test_of_the_kernels_doitgen_alone_scratches(name: str, context: ir.Context) -> None:
    kernel = kernels.load(name)
    for sizes in (None, kernel.datasets[kernels.Dataset.LARGE]):
        text = kernel.mlir(kernel.elements[0], sizes)
        before = str(ir.Module.parse(text, context))
        assert (str(privatised(text, context)) != before) == (name == "doitgen")


def test_doitgen_computes_the_same_bits(context: ir.Context) -> None:
    kernel = kernels.load("doitgen")
    shapes = (5, 4, 3), (17, 3, 2), (20, 0, 3)  # NR, NQ, NP
    texts: list[tuple[str, str]] = []
    for k, (nr, nq, np_) in enumerate(shapes):
        text = kernel.mlir("f64", {"NR": nr, "NQ": nq, "NP": np_} if k == 1 else None)
        module = privatised(text, context)
        texts += [(f"before{k}", text), (f"after{k}", str(module.body.operations[0]))]
    machine = Machine(texts, context)
    rng = np.random.default_rng(1)
    for k, (nr, nq, np_) in enumerate(shapes):
        values = {"A": rng.random((nr, nq, np_)), "C4": rng.random((np_, np_))}
        values["sum"] = rng.random(np_)
        before, after = machine.call(f"before{k}", values), machine.call(f"after{k}", values)
        for array, value in before.items():
            assert value.tobytes() == after[array].tobytes(), (array, k)


@settings(max_examples=examples(3), deadline=None, suppress_health_check=SLOW)
@given(each=st.lists(near_nests, min_size=15, max_size=15))
def test_the_same_bits(each: list[Nest]) -> None:
    check_same_bits(each, PrivatiseScratch())

"""A failed assertion is told with its text and place; one that holds calls nothing."""

from __future__ import annotations

import ctypes

import pytest
from mlir import ir
from mlir.execution_engine import ExecutionEngine

from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.llvm.asserts_to_runtime import AssertsToRuntime
from tests.compiler.passes.golden import cases_of

TWO = """
func.func @two(%x: i64) attributes {llvm.emit_c_interface} {
  %zero = arith.constant 0 : i64
  %some = arith.cmpi ne, %x, %zero : i64
  cf.assert %some, "first"
  cf.assert %some, "second"
  return
}
func.func private @avial_begin()"""


@pytest.mark.parametrize("x", [0, 7])
def test_the_first_that_does_not_hold_is_told(x: int) -> None:
    with ir.Context():
        module = ir.Module.parse(TWO)
        run_passes(module.operation, (*TO_LLVM, AssertsToRuntime()))
        engine = ExecutionEngine(module, opt_level=2)
    told: list[tuple[bytes, int, int]] = []
    types = ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64
    fail = ctypes.CFUNCTYPE(None, *types)(lambda *given: told.append(given))
    engine.raw_register_runtime("avial_fail", ctypes.cast(fail, ctypes.c_void_p))
    engine.invoke("two", ctypes.pointer(ctypes.c_int64(x)))
    assert told == ([] if x else [(b"first", 5, 3)])


def test_nothing_else_ends_the_process() -> None:
    with ir.Context():
        module = ir.Module.parse(cases_of("asserts_to_runtime")["main"])
        run_passes(module.operation, (*TO_LLVM, AssertsToRuntime()))
        text = str(module).partition("llvm.func @main")[2]
    assert text.count("llvm.call @avial.fail") == 2
    assert text.count("llvm.call @avial.die") == 1
    assert "@abort" not in text.partition("llvm.func @checked")[2]
    assert "llvm.call @puts" not in text

"""A failed assertion calls the runtime with its text; one that holds calls nothing."""

from __future__ import annotations

import ctypes

from mlir import ir
from mlir.execution_engine import ExecutionEngine

from avial_lab.compiler.lowering.pipelines import TO_LLVM
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.llvm.asserts_to_runtime import AssertsToRuntime
from tests.compiler.passes.golden import cases_of

TWO = """
func.func @two(%x: i64) {
  %zero = arith.constant 0 : i64
  %some = arith.cmpi ne, %x, %zero : i64
  cf.assert %some, "first"
  cf.assert %some, "second"
  return
}"""


def test_an_assertion_that_holds() -> None:
    with ir.Context():
        module = ir.Module.parse(cases_of("asserts_to_runtime")["checked"])
        module.body.operations[0].attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        run_passes(module.operation, (*TO_LLVM, AssertsToRuntime()))
        engine = ExecutionEngine(module, opt_level=2)
    said: list[bytes] = []
    fail = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(said.append)
    engine.raw_register_runtime("avial_fail", ctypes.cast(fail, ctypes.c_void_p))
    given = ctypes.c_int64(7), ctypes.c_int64(2), ctypes.c_int64()
    engine.invoke("checked", *map(ctypes.pointer, given))
    assert (said, given[2].value) == ([], 3)


def test_nothing_else_ends_the_process() -> None:
    with ir.Context():
        module = ir.Module.parse(TWO)
        run_passes(module.operation, (*TO_LLVM, AssertsToRuntime()))
        text = str(module).partition("llvm.func @two")[2]
    assert text.count("llvm.call @avial_fail") == 2
    assert "@abort" not in text
    assert "@puts" not in text

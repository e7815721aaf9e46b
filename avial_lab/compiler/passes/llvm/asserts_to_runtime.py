"""A failed assertion goes to the runtime, which ends the run or the process.

LLVM dialect -> the same, `puts` and `abort` of assertions being one call of `avial_fail`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from mlir import ir

from avial_lab.compiler.ir.operations import operations_named

FAIL, PRINT, END = "avial_fail", "puts", "abort"


@dataclass(frozen=True)
class AssertsToRuntime:
    """A run in the process that asked for it must not end that process.

    before:  llvm.call @puts(%text) : (!llvm.ptr) -> ()
             llvm.call @abort() : () -> ()
    after:   llvm.call @avial_fail(%text) : (!llvm.ptr) -> ()
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            declared = {_name(op): op for op in operations_named(module, "llvm.func")}
            if PRINT not in declared or END not in declared:
                return
            calls = [(op, _callee(op)) for op in operations_named(module, "llvm.call")]
            for (printed, one), (ended, other) in pairwise(calls):
                if (one, other) == (PRINT, END):
                    printed.attributes["callee"] = ir.FlatSymbolRefAttr.get(FAIL)
                    ended.erase()
            _declare(module)

    def __str__(self) -> str:
        return "asserts-to-runtime"


def _declare(module: ir.Operation) -> None:
    text = (
        f"llvm.func @{FAIL}(!llvm.ptr) "
        'attributes {passthrough = ["noreturn", "nounwind", "cold"]}'
    )
    with module.location, ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        ir.Operation.parse(text).clone()


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _callee(call: ir.Operation) -> str:
    if "callee" not in call.attributes:
        return ""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value

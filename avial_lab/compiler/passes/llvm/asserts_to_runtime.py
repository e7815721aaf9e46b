"""A failed assertion is told to the run, which ends; where it cannot end there, its process does.

LLVM dialect -> the same, `puts` and `abort` of assertions being one call of the runtime.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from mlir import ir

from avial_lab.compiler.codegen.outside import declare
from avial_lab.compiler.codegen.runtime_calls import add_runtime, call_of
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.runtime.native.ownership import BEGIN

PRINT, END = "puts", "abort"

OWNED = {"fail": "avial_fail", "die": "avial_die"}
"""Functions of the ownership runtime."""

STEPS = {"fail": "avial.fail", "die": "avial.die"}
"""The same in a program of steps, from runtime_calls.mlir."""


@dataclass(frozen=True)
class AssertsToRuntime:
    """The entry and the bodies that it calls return at an assertion that does not hold, and the run
    is told; nothing follows, as after an access outside its array. Elsewhere, in a function whose
    caller would go on and in a loop of threads, the process has to end.

    before:  llvm.call @puts(%text) : (!llvm.ptr) -> ()
             llvm.call @abort() : () -> ()
             llvm.unreachable
    after:   llvm.call @avial_fail(%text, %line, %column) : (!llvm.ptr, i64, i64) -> ()
             llvm.return
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            functions = {_name(op): op for op in operations_named(module, "llvm.func")}
            if PRINT not in functions or END not in functions:
                return
            calls = [(op, _callee(op)) for op in operations_named(module, "llvm.call")]
            left = _that_may_return(functions, calls)
            called = OWNED if BEGIN in functions else STEPS
            for (printed, one), (ended, other) in pairwise(calls):
                if (one, other) == (PRINT, END):
                    returns = printed.parent in left
                    _tell(printed, called["fail" if returns else "die"])
                    if returns:
                        _return_after(ended)
                    ended.erase()
            _define(module, called)

    def __str__(self) -> str:
        return "asserts-to-runtime"


def _that_may_return(
    functions: dict[str, ir.Operation], calls: list[tuple[ir.Operation, str]]
) -> list[ir.Operation]:
    """The functions after whose early end nothing is computed of what they leave undone."""
    entries = [op for op in functions.values() if "llvm.emit_c_interface" in op.attributes]
    callers: dict[str, list[ir.Operation | None]] = {}
    for call, callee in calls:
        callers.setdefault(callee, []).append(call.parent)
    return [
        op
        for name, op in functions.items()
        if str(op.attributes["function_type"]).startswith("!llvm.func<void")
        and (op in entries or (name in callers and all(by in entries for by in callers[name])))
    ]


def _tell(printed: ir.Operation, callee: str) -> None:
    """Write the call of the runtime in place of `printed`."""
    span = span_of(printed.location)
    i64 = ir.IntegerType.get_signless(64)
    with ir.InsertionPoint(printed), printed.location:
        place = [
            ir.Operation.create(
                "llvm.mlir.constant", [i64], attributes={"value": ir.IntegerAttr.get(i64, number)}
            ).result
            for number in ((0, 0) if span is None else (span.line, span.column))
        ]
        call_of(callee, [printed.operands[0], *place])
    printed.erase()


def _return_after(ended: ir.Operation) -> None:
    *_, last = ended.block.operations
    with ir.InsertionPoint(last), ended.location:
        ir.Operation.create("llvm.return")
    last.operation.erase()


def _define(module: ir.Operation, called: dict[str, str]) -> None:
    """What is called, and no more."""
    wanted = {_callee(op) for op in operations_named(module, "llvm.call")} & set(called.values())
    if called is STEPS:
        add_runtime(module, sorted(wanted))
        return
    with module.location:
        for name in sorted(wanted):
            never = '"noreturn", ' * (name == called["die"])
            declare(
                module,
                f"llvm.func @{name}(!llvm.ptr, i64, i64) "
                f'attributes {{passthrough = [{never}"nounwind", "cold"]}}',
                name,
            )


def _name(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _callee(call: ir.Operation) -> str:
    if "callee" not in call.attributes:
        return ""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value

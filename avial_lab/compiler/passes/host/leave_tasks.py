"""What `check-loaded` found out before a loop becomes a way out of the function.

Module with calls of `avial.leave_if` -> branches to a report and the function's end.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import cf, func

from avial_lab.compiler.codegen.outside import LEAVE_IF, Access, report
from avial_lab.compiler.ir.operations import functions_in, operations_in


@dataclass(frozen=True)
class LeaveTasks:
    """End the function where an access behind would leave its array; the run is told.

    before:  llvm.call @avial.leave_if(%outside, %index) {avial.access_outside = ["A[i]", 0, 16, …]}
             scf.for … {…}
             return
    after:   cf.cond_br %outside, ^leave, ^on
           ^leave:
             llvm.call @avial_outside(-1, %words)
             return
           ^on:
             scf.for … {…}
             return

    It runs last: what looks at loops expects functions of one block.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_in(module):
                for call in [op for op in operations_in(function) if _leaves(op)]:
                    _split(module, call)
            for view in list(module.regions[0].blocks[0].operations):
                if view.operation.name == "llvm.func" and _named(view.operation) == LEAVE_IF:
                    view.operation.erase()

    def __str__(self) -> str:
        return "leave-tasks"


def _leaves(op: ir.Operation) -> bool:
    if op.name != "llvm.call" or "callee" not in op.attributes:
        return False
    return ir.FlatSymbolRefAttr(op.attributes["callee"]).value == LEAVE_IF


def _named(function: ir.Operation) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _split(module: ir.Operation, call: ir.Operation) -> None:
    outside, index = call.operands
    here = [view.operation for view in call.block.operations]
    leave, on = (call.block.create_after() for _ in range(2))
    with call.location:
        with ir.InsertionPoint(leave):
            report(module, Access.on(call), index)
            func.ReturnOp([])
        point = ir.InsertionPoint(on)
        for op in here[here.index(call) + 1 :]:
            op.detach_from_parent()
            point.insert(op)
        with ir.InsertionPoint(call):
            cf.CondBranchOp(outside, [], [], leave, on)
    call.erase()

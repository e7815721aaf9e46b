"""Tensors as fresh memory: every result of an operation lies in memory of its own.

Module on tensors -> the same on memrefs. Nothing is written in place and no analysis asked: what is
written is copied first (MLIR's one-shot-bufferize with its analysis off). Before that, every
operation of linear algebra is written out, so that all its operands count as read.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.frontends.mlir.tensors import (
    prepare_tensors,
    run_pipeline,
    tosa_to_linalg,
)
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.placements import erase_placements
from avial_lab.compiler.ir.program import functions_of, symbol_of
from avial_lab.compiler.worker.reference.linalg_loops import NamedToGeneric, Values, clone_into

_ELEMENTWISE = "builtin.module(func.func(convert-elementwise-to-linalg))"

_BUFFERIZE = (
    "builtin.module(one-shot-bufferize{{bufferize-function-boundaries "
    "allow-return-allocs-from-loops "
    "function-boundary-type-conversion=identity-layout-map{}}})"
)


def tensors_to_fresh_memory(module: ir.Module) -> bool:
    """Whether there was a tensor; there is none any more. VerifyError as `tensors_to_memory`."""
    erase_placements(module.operation)
    if not prepare_tensors(module):
        return False
    tosa_to_linalg(module)
    run_pipeline(module, _ELEMENTWISE, "an operation on tensors could not be lowered to loops")
    NamedToGeneric()(module.operation)
    _write_calls_out(module)
    copies = "" if _calls(module) else " copy-before-write"
    run_pipeline(module, _BUFFERIZE.format(copies), "a tensor could not be bufferized")
    return True


MOST_CALLS = 100
"""That are written out: functions that call themselves have no end."""


def _write_calls_out(module: ir.Module) -> None:
    """Calls of functions of one block; MLIR's bufferization ends the process at a call where its
    analysis is off. (Where calls are left, it is on.)
    """
    functions = {symbol_of(each): each for each in functions_of(module)}
    for _ in range(MOST_CALLS):
        calls = [op for op in _calls(module) if _is_one_block(functions.get(_callee(op)))]
        if not calls:
            return
        call = calls[0]
        block = functions[_callee(call)].regions[0].blocks[0]
        inside: Values = dict(zip(block.arguments, call.operands, strict=True))
        *operations, end = [view.operation for view in block.operations]
        with module.context, ir.InsertionPoint(call):
            for op in operations:
                clone_into(op, inside, call.location)
        for old, value in zip(call.results, end.operands, strict=True):
            old.replace_all_uses_with(inside.get(value, value))
        call.erase()


def _calls(module: ir.Module) -> list[ir.Operation]:
    """Those that take or return tensors."""
    return [
        op
        for op in operations_named(module.operation, "func.call")
        if any(isinstance(v.type, ir.RankedTensorType) for v in (*op.operands, *op.results))
    ]


def _callee(call: ir.Operation) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _is_one_block(function: ir.Operation | None) -> bool:
    return function is not None and len(function.regions[0].blocks) == 1

"""The few functions that compiled programs call: runtime.mlir, copied where it is needed.

Names of functions -> their definitions, in the module that calls them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from importlib import resources

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in


def add_runtime(module: ir.Operation, called: Iterable[str]) -> None:
    """Copy the variables, the functions in `called` and what they call and name in turn to the
    module's start, once.
    """
    text = (
        resources.files("avial_lab.compiler.codegen")
        .joinpath("runtime_calls.mlir")
        .read_text(encoding="utf-8")
    )
    runtime = ir.Module.parse(text, module.context)
    ops = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in runtime.body.operations}
    wanted = {name for name, op in ops.items() if _is_variable(op.operation)}
    waiting = list(called)
    while waiting:
        name = waiting.pop()
        if name in wanted:
            continue
        wanted.add(name)
        waiting += [
            ir.FlatSymbolRefAttr(op.attributes[_NAMING[op.name]]).value
            for op in operations_in(ops[name].operation)
            if op.name in _NAMING
        ]
    block = module.regions[0].blocks[0]
    there = {
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in block.operations
        if "sym_name" in op.attributes
    }
    with module.context:
        start = ir.InsertionPoint.at_block_begin(block)
        for name, op in ops.items():
            if name in wanted and name not in there:
                _set_clock(op.operation.clone(ip=start).operation)


_NAMING = {"llvm.call": "callee", "llvm.mlir.addressof": "global_name"}


def _is_variable(op: ir.Operation) -> bool:
    """Whether an engine looks it up, whoever names it."""
    is_global = op.name == "llvm.mlir.global"
    return is_global and str(op.attributes["linkage"]) == "#llvm.linkage<external>"


def _set_clock(op: ir.Operation) -> None:
    """CLOCK_MONOTONIC's number is the machine's, not ours."""
    for inner in operations_in(op):
        if "avial.clock" in inner.attributes:
            i32 = ir.IntegerType.get_signless(32)
            inner.attributes["value"] = ir.IntegerAttr.get(i32, time.CLOCK_MONOTONIC)
            del inner.attributes["avial.clock"]


def call_of(
    symbol: str, operands: Sequence[ir.Value], *, results: Sequence[ir.Type] = ()
) -> ir.Operation:
    """A call of a function that the module declares for LLVM."""
    return ir.Operation.create(
        "llvm.call",
        results,
        list(operands),
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(symbol),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )

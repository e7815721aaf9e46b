"""Globals begin every run with their first values: an engine loads a program once.

Module with memref.global that somebody writes -> module whose program writes its first values to
each of them before it does anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.ir.effects import symbols_in, text_attribute
from avial_lab.compiler.ir.operations import attributes_of, functions_in

ENTRY = "llvm.emit_c_interface"
"""On the functions that an engine calls."""


@dataclass(frozen=True)
class ResetGlobals:
    """Keep the first values beside each global that is no constant, and copy them.

    before:  memref.global "private" @n : memref<4xf64> = dense<0.0>
             func.func @main() attributes {llvm.emit_c_interface} { … }
    after:   memref.global "private" constant @n.first : memref<4xf64> = dense<0.0>
             func.func @main() attributes {llvm.emit_c_interface} {
               memref.copy %n.first, %n … }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            written = [
                view.operation
                for view in module.regions[0].blocks[0].operations
                if view.operation.name == "memref.global" and _is_written(view.operation)
            ]
            entries = [op for op in functions_in(module) if ENTRY in op.attributes]
            if not entries:
                return
            taken = symbols_in(module)
            for each in written:
                first = _first(each, taken)
                for entry in entries:
                    _copy(first, each, entry)

    def __str__(self) -> str:
        return "reset-globals"


def _is_written(op: ir.Operation) -> bool:
    """Whether it has values that somebody may change; `constant-globals` marked the others."""
    values = op.attributes.get("initial_value")
    given = values is not None and not isinstance(values, ir.UnitAttr)
    return "constant" not in op.attributes and given


def _first(op: ir.Operation, taken: set[str]) -> ir.Operation:
    """A constant with the values of `op`, under a name that is free."""
    name = f"{text_attribute(op, 'sym_name')}.first"
    while name in taken:
        name += "_"
    attributes = attributes_of(op) | {
        "sym_name": ir.StringAttr.get(name),
        "sym_visibility": ir.StringAttr.get("private"),
        "constant": ir.UnitAttr.get(),
    }
    with ir.InsertionPoint(op), op.location:
        return ir.Operation.create("memref.global", attributes=attributes)


def _copy(first: ir.Operation, written: ir.Operation, entry: ir.Operation) -> None:
    with ir.InsertionPoint.at_block_begin(entry.regions[0].blocks[0]), written.location:
        source, target = (
            memref.get_global(
                ir.TypeAttr(each.attributes["type"]).value, text_attribute(each, "sym_name")
            )
            for each in (first, written)
        )
        memref.copy(source, target)

"""Elementary functions that `mark-math` chose, as code.

Module with marked operations -> calls of private functions that hold the code and are always
written out, so that LLVM makes vectors of the loop around them.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func

from avial_lab.elementary.functions import FUNCTIONS
from avial_lab.elementary.numbers import Kind, Real
from avial_lab.passes.mark_math import CHOSEN
from avial_lab.passes.operations import operations_in

NAME = "expand-math"


@dataclass(frozen=True)
class ExpandMath:
    """One function for each name and type.

    before:  %y = math.exp %x {avial.expand = "fused"} : f64
    after:   func.func private @avial.exp.f64(%x: f64) -> f64 attributes {always_inline, …} {…}
             %y = func.call @avial.exp.f64(%x) : (f64) -> f64
    """

    def __call__(self, module: ir.Operation) -> None:
        chosen = [op for op in operations_in(module) if CHOSEN in op.attributes]
        known: set[str] = set()
        with module.context, ir.Location.unknown(module.context):
            for op in chosen:
                symbol = _symbol(op)
                if symbol not in known:
                    known.add(symbol)
                    _write(module, symbol, op)
                with ir.InsertionPoint(op), op.location:
                    call = func.CallOp([op.results[0].type], symbol, [op.operands[0]])
                op.results[0].replace_all_uses_with(call.result)
                op.erase()

    def __str__(self) -> str:
        return NAME


def _symbol(op: ir.Operation) -> str:
    """`avial.exp.f64`, `avial.exp.4xf32`, `avial.exp.f64.apart`."""
    kind = str(op.results[0].type).removeprefix("vector<").removesuffix(">")
    how = ir.StringAttr(op.attributes[CHOSEN]).value
    return ".".join(("avial", op.name.removeprefix("math."), kind, *(how,) * (how != "fused")))


def _write(module: ir.Operation, symbol: str, op: ir.Operation) -> None:
    """The function of that name, which does what `op` does."""
    real, fused = op.results[0].type, ir.StringAttr(op.attributes[CHOSEN]).value == "fused"
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        function = func.FuncOp(symbol, ([real], [real]), visibility="private")
    function.attributes["always_inline"] = ir.UnitAttr.get()
    function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    with ir.InsertionPoint(function.add_entry_block()):
        value = FUNCTIONS[op.name](Real(Kind(real, fused), function.arguments[0]))
        func.ReturnOp([value.value])

"""expm1 as libm computes it: MLIR's own lowering is exp(x) - 1, which loses what expm1 is for.

Module with math.expm1 on scalars -> module that calls expm1f and expm1.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func

from avial_lab.compiler.ir.operations import operations_named


@dataclass(frozen=True)
class Expm1ToLibm:
    """Half precision is computed in f32; vectors are left to MLIR.

    before:  %y = math.expm1 %x : f64
    after:   %y = func.call @expm1(%x) : (f64) -> f64
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context, ir.Location.unknown(module.context):
            scalars = [
                op
                for op in operations_named(module, "math.expm1")
                if isinstance(op.result.type, ir.FloatType)
            ]
            for op in scalars:
                with ir.InsertionPoint(op), op.location:
                    value = _call(module, op.operands[0], op.result.type)
                op.result.replace_all_uses_with(value)
                op.erase()

    def __str__(self) -> str:
        return "expm1-to-libm"


def _call(module: ir.Operation, value: ir.Value, kind: ir.Type) -> ir.Value:
    wide = ir.F64Type.get() if str(kind) == "f64" else ir.F32Type.get()
    name = "expm1" if str(kind) == "f64" else "expm1f"
    _declare(module, name, wide)
    if kind == wide:
        return func.CallOp([wide], name, [value]).result
    result = func.CallOp([wide], name, [arith.extf(wide, value)]).result
    return arith.truncf(kind, result)


def _declare(module: ir.Operation, name: str, kind: ir.Type) -> None:
    block = module.regions[0].blocks[0]
    for op in block.operations:
        if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == name:
            return
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        declared = func.FuncOp(name, ([kind], [kind]), visibility="private")
    declared.attributes["llvm.readnone"] = ir.UnitAttr.get()

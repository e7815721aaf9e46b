"""Products of vectors whose sums are of a wider type, as MLIR's patterns for them take them.

vector.contract of f16 into f32 -> the same of f32, of widened operands: no value changes.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import operations_named


def widen_contractions(module: ir.Module) -> None:
    """Integers are extended by their sign, as `vector.contract` has it.

    before:  %s = vector.contract … %a, %b, %c : vector<4xf16>, vector<4xf16> into f32
    after:   %x = arith.extf %a : vector<4xf16> to vector<4xf32>  …
             %s = vector.contract … %x, %y, %c : vector<4xf32>, vector<4xf32> into f32
    """
    for op in operations_named(module.operation, "vector.contract"):
        wide = _element(op.operands[2].type)
        with ir.InsertionPoint(op), op.location:
            for k, operand in enumerate(list(op.operands)[:2]):
                if _element(operand.type) == wide:
                    continue
                kind = ir.VectorType.get(ir.VectorType(operand.type).shape, wide)
                extend = arith.extsi if isinstance(wide, ir.IntegerType) else arith.extf
                op.operands[k] = extend(kind, operand)


def _element(kind: ir.Type) -> ir.Type:
    return ir.VectorType(kind).element_type if isinstance(kind, ir.VectorType) else kind

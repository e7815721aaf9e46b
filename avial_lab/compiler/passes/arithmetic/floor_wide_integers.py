"""Quotients of integers of more than 64 bits, rounded down, right in all their bits.

Module with arith.floordivsi of wide integers -> the same with arith.divsi and its rest.

MLIR's arith-expand makes the -1 that it adds of 64 bits: in a wider integer it is 2^64 - 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import operations_named

_BITS = 64


@dataclass(frozen=True)
class FloorWideIntegers:
    """One less than the quotient where there is a rest of the other sign than the divisor.

    before:  %f = arith.floordivsi %a, %b : i80
    after:   %q = arith.divsi %a, %b    %r = arith.remsi %a, %b
             %f = arith.subi %q, (%r != 0 and (%r xor %b) < 0 ? 1 : 0) : i80
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "arith.floordivsi"):
                if _is_wide(op.results[0].type):
                    with ir.InsertionPoint(op), op.location:
                        op.results[0].replace_all_uses_with(_floor(*op.operands))
                    op.erase()

    def __str__(self) -> str:
        return "floor-wide-integers"


def _is_wide(kind: ir.Type) -> bool:
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    return isinstance(element, ir.IntegerType) and element.width > _BITS


def _floor(left: ir.Value, right: ir.Value) -> ir.Value:
    zero, one = _number(0, left.type), _number(1, left.type)
    rest = arith.remsi(left, right)
    inexact = arith.cmpi(arith.CmpIPredicate.ne, rest, zero)
    differ = arith.cmpi(arith.CmpIPredicate.slt, arith.xori(rest, right), zero)
    less = arith.select(arith.andi(inexact, differ), one, zero)
    return arith.subi(arith.divsi(left, right), less)


def _number(value: int, kind: ir.Type) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, value)
    each = ir.IntegerAttr.get(kind.element_type, value)
    return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, each))

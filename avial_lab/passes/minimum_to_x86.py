"""Minima as x86 computes them: with its two-way choice, twice, and no look at NaN.

Module -> module without `arith.minimumf`, where the machine is an x86.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.passes.operations import itemsize_of, operations_named

X86 = ("x86_64", "amd64", "i686")
ELEMENTS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class MinimumToX86:
    """A choice of the lesser, once in each order, and the bits of both together.

    before:  %m = arith.minimumf %x, %y : vector<8xf64>
    after:   %p = select (%x < %y), %x, %y      (vminpd)
             %q = select (%y < %x), %y, %x      (vminpd)
             %m = %p | %q                       (vorpd)

    `a < b ? a : b` is b where one is NaN or both are zeros, so that each of two such operands is
    taken once: the bits of a NaN and of a number together are a NaN, those of -0 and +0 are -0, and
    else both choices are the same. What MLIR's arith-expand makes of it has more operations, and
    takes the second of two zeros. (A maximum has no such form: +0 would win by `and`, which loses
    NaN.) Other machines have an instruction for it.
    """

    machine: str = platform.machine()

    def __call__(self, module: ir.Operation) -> None:
        if self.machine.lower() not in X86:
            return
        with module.context:
            for op in operations_named(module, "arith.minimumf"):
                if str(_element(op.results[0].type)) in ELEMENTS:
                    _write_out(op)

    def __str__(self) -> str:
        return "minimum-to-x86"


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _write_out(op: ir.Operation) -> None:
    x, y = op.operands
    with ir.InsertionPoint(op), op.location:
        bits = _bits(x.type)
        first, second = (arith.bitcast(bits, _lesser(*pair)) for pair in ((x, y), (y, x)))
        least = arith.bitcast(x.type, arith.ori(first, second))
    op.results[0].replace_all_uses_with(least)
    op.erase()


def _bits(kind: ir.Type) -> ir.Type:
    """Integers as wide."""
    integer = ir.IntegerType.get_signless(8 * itemsize_of(_element(kind)))
    if not isinstance(kind, ir.VectorType):
        return integer
    return ir.VectorType.get(kind.shape, integer, scalable=kind.scalable_dims)


def _lesser(a: ir.Value, b: ir.Value) -> ir.Value:
    """b where they are the same, or cannot be compared."""
    return arith.select(arith.cmpf(arith.CmpFPredicate.OLT, a, b), a, b)

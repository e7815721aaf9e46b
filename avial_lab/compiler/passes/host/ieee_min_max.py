"""Minima and maxima as IEEE 754-2019 defines them: NaN wins, and -0 lies below +0.

Module -> module without `arith.minimumf` and `arith.maximumf` on floats and on vectors of them.

What MLIR's arith-expand makes of them takes the second of two zeros, whichever that is, and keeps
LLVM from seeing the least or greatest of a loop, which vectors find in any order, exactly.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import itemsize_of, operations_named
from avial_lab.core.element_types import ELEMENT_TYPES, ElementKind

X86 = ("x86_64", "amd64", "i686")
INTRINSICS = {"arith.minimumf": "llvm.intr.minimum", "arith.maximumf": "llvm.intr.maximum"}


@dataclass(frozen=True)
class IeeeMinMax:
    """LLVM's own operation; for a minimum on x86, if no loop hands it on, three that are quicker.

    before:  %n = arith.maximumf %x, %y : vector<8xf64>
             %m = arith.minimumf %x, %y : vector<8xf64>
    after:   %n = llvm.intr.maximum(%x, %y)
             %p = select (%x < %y), %x, %y      (vminpd)
             %q = select (%y < %x), %y, %x      (vminpd)
             %m = %p | %q                       (vorpd)

    `a < b ? a : b` is b where one is NaN or both are zeros, so that each of two such operands is
    taken once: the bits of a NaN and of a number together are a NaN, those of -0 and +0 are -0, and
    else both choices are the same. (A maximum has no such form: +0 would win by `and`, which loses
    NaN.) Other machines have an instruction for it.
    """

    machine: str = platform.machine()

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, *INTRINSICS):
                if not _is_known(op.results[0].type):
                    continue
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(self._of_llvm(op))
                op.erase()

    def __str__(self) -> str:
        return "ieee-min-max"

    def _of_llvm(self, op: ir.Operation) -> ir.Value:
        on_x86 = self.machine.lower() in X86
        if on_x86 and op.name == "arith.minimumf" and not _is_handed_on(op):
            return _two_choices(*op.operands)
        kind = op.results[0].type
        return ir.Operation.create(INTRINSICS[op.name], [kind], list(op.operands)).results[0]


def _is_known(kind: ir.Type) -> bool:
    """LLVM's vectors have one dimension."""
    element = ELEMENT_TYPES.get(str(_element(kind)))
    if element is None or not element.computed or element.kind is not ElementKind.FLOAT:
        return False
    return not (isinstance(kind, ir.VectorType) and len(kind.shape) != 1)


def _element(kind: ir.Type) -> ir.Type:
    return kind.element_type if isinstance(kind, ir.VectorType) else kind


def _is_handed_on(op: ir.Operation) -> bool:
    """Whether it is the least of all iterations: what a loop hands on goes in, and comes out. Of
    vectors it is several already.
    """
    if isinstance(op.results[0].type, ir.VectorType):
        return False
    taken = any(isinstance(value.owner, ir.Block) for value in op.operands)
    return taken and any(use.owner.name.endswith(".yield") for use in op.results[0].uses)


def _two_choices(x: ir.Value, y: ir.Value) -> ir.Value:
    bits = _bits(x.type)
    first, second = (arith.bitcast(bits, _lesser(*pair)) for pair in ((x, y), (y, x)))
    return arith.bitcast(x.type, arith.ori(first, second))


def _bits(kind: ir.Type) -> ir.Type:
    """Integers as wide."""
    integer = ir.IntegerType.get_signless(8 * itemsize_of(_element(kind)))
    if not isinstance(kind, ir.VectorType):
        return integer
    return ir.VectorType.get(kind.shape, integer, scalable=kind.scalable_dims)


def _lesser(a: ir.Value, b: ir.Value) -> ir.Value:
    """b where they are the same, or cannot be compared."""
    return arith.select(arith.cmpf(arith.CmpFPredicate.OLT, a, b), a, b)

"""Promises of operations that MLIR folds into another: they would be made of other numbers.

Module -> the same without `overflow` on arith.trunci, without `exact`, `disjoint` and `nneg`.

`trunci (trunci %x)` becomes one trunci from the widest type with the promise of the last one, which
was about the middle one. Sums, differences and products keep theirs (`overflow<nsw>`), from which
the analyses know that a subscript does not wrap; those of MLIR's patterns that hand them on wrongly
are off (`compiler/upstream.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.operations import operations_in

UNITS = ("isExact", "isDisjoint", "nonNeg")
FLAGS = "overflowFlags"


@dataclass(frozen=True)
class DropPromises:
    """Before anything is folded.

    before:  %y = arith.trunci %x overflow<nsw> : i32 to i8     %q = arith.divsi %a, %b exact : i8
    after:   %y = arith.trunci %x : i32 to i8                   %q = arith.divsi %a, %b : i8
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_in(module):
                for name in UNITS:
                    if name in op.attributes:
                        del op.attributes[name]
                if op.name == "arith.trunci" and FLAGS in op.attributes:
                    op.attributes[FLAGS] = ir.Attribute.parse("#arith.overflow<none>")

    def __str__(self) -> str:
        return "drop-promises"

"""Affine forms of numbers from memory, right at the ends of 64 bits.

Module with affine operations -> the same without those that MLIR's lower-affine has wrong for some
numbers (`codegen/loops/exact_forms.py` says which).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.codegen.loops.exact_forms import exact_forms


@dataclass(frozen=True)
class ExactAffine:
    """Values become arithmetic that may wrap; `ceildiv` in bounds and subscripts becomes floordiv.

    before:  %x = affine.apply affine_map<(d0) -> (d0 ceildiv 7)>(%n)
             affine.for %i = 0 to affine_map<(d0) -> (d0 ceildiv 7)>(%n)
    after:   %x = arith.ceildivsi %n, %c7 : index
             affine.for %i = 0 to #up(%n), #up = (d0) -> (d0 floordiv 7 + (d0 mod 7 + 6) floordiv 7)

    Only where a number comes in that may be any: forms of loops' variables stay.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            exact_forms(module)

    def __str__(self) -> str:
        return "exact-affine"

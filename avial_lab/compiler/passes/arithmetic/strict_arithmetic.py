"""The arithmetic of the textbook: every operation rounded on its own, in the program's order.

Module as it was read -> the same, marked; what may add in another order leaves it alone then.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.program import STRICT


@dataclass(frozen=True)
class StrictArithmetic:
    """Mark the module.

    before:  module { … }
    after:   module attributes {avial.strict} { … }

    No loop is divided over ranks whose iterations add floating-point numbers up, no sum is taken
    apart for vectors, no product fused: the bits are the same on every machine.
    """

    def __call__(self, module: ir.Operation) -> None:
        module.attributes[STRICT] = ir.UnitAttr.get(module.context)

    def __str__(self) -> str:
        return "strict-arithmetic"

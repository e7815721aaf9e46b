"""Products that are only added to something: rounded once, together with the sum.

Module as it was read -> the same with `math.fma`, which computes a · b + c exactly and rounds that.

Which arithmetic a program has is decided here, in its text, and not by a code generator: LLVM fuses
what it finds side by side in the code for one loop on one machine, so that the same sum comes out
differently in a peeled iteration, on another number of ranks or in the sequential reference. What
stands in the IR before anything moves is the same for all of them, bit for bit. A fused product is
nearer to the truth: it drops a rounding and adds none (Muller et al., Handbook of Floating-Point
Arithmetic, 2nd edition 2018, section 2.8), and it neither overflows nor underflows in between.

The rule is this module's and fixed. GCC and LLVM choose alike: of two products the left one, and
only what is used once, as else the product would be computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir, passmanager
from mlir.dialects import arith, math

from avial_lab.passes.operations import operations_in

SUMS = ("arith.addf", "arith.subf")
CONTRACTED = "avial.contracted"
"""On a module whose products are contracted. What passes bring side by side later stays apart."""


@dataclass(frozen=True)
class ContractProducts:
    """A product whose only use is one sum of the same block becomes part of it.

    before:  %p = arith.mulf %a, %b : f64           %q = arith.mulf %c, %d : f64
             %s = arith.addf %x, %p : f64           %t = arith.subf %x, %q : f64
    after:   %s = math.fma %a, %b, %x : f64         %n = arith.negf %c : f64
                                                    %t = math.fma %n, %d, %x : f64

    In `a * b + c * d` it is the left product. Changing a sign is exact. Single and double
    precision, numbers and vectors of them. A module is contracted once: as it was read.
    """

    def __call__(self, module: ir.Operation) -> None:
        if CONTRACTED in module.attributes:
            return
        with module.context:
            if any(map(_is_named, operations_in(module))):
                manager = passmanager.PassManager("builtin.module")
                manager.add("linalg-generalize-named-ops")
                manager.run(module)
            for op in operations_in(module):
                if op.name in SUMS and _is_real(op.results[0].type):
                    _contract(op)
            module.attributes[CONTRACTED] = ir.UnitAttr.get()

    def __str__(self) -> str:
        return "contract-products"


def _is_named(op: ir.Operation) -> bool:
    """Whether it is a linalg operation whose body is hidden in its name, and has such a sum."""
    if not op.name.startswith("linalg.") or op.name == "linalg.generic" or not len(op.regions):
        return False
    return any(inner.name in SUMS for inner in operations_in(op))


def _is_real(kind: ir.Type) -> bool:
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    return isinstance(element, ir.F32Type | ir.F64Type)


def _contract(op: ir.Operation) -> None:
    """`op` as a fused operation, where one of its sides is a product of its own."""
    left, right = op.operands
    with ir.InsertionPoint(op), op.location:
        if (product := _product(left, op)) is not None:
            a, b = product.operands
            fused = math.fma(a, b, arith.negf(right) if op.name == "arith.subf" else right)
        elif (product := _product(right, op)) is not None:
            a, b = product.operands
            fused = math.fma(arith.negf(a) if op.name == "arith.subf" else a, b, left)
        else:
            return
    op.results[0].replace_all_uses_with(fused)
    op.erase()
    product.erase()


def _product(value: ir.Value, of: ir.Operation) -> ir.Operation | None:
    """The product that `value` is, if it is computed in the block of `of` and for that alone."""
    if isinstance(value.owner, ir.Block):
        return None
    op = value.owner.operation
    if op.name != "arith.mulf" or op.block != of.block:
        return None
    return op if sum(1 for _ in value.uses) == 1 else None

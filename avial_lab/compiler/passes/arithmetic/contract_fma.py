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

Several products that are added to an element of an array, `x += a * b + c * d`, are added to it one
after the other: as many roundings as products, and one operation less than the text has. They are
terms of one sum, so that its bound holds as it did (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd edition 2002, section 4.2).
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from mlir import ir, passmanager
from mlir.dialects import arith, math

from avial_lab.compiler.ir.attributes import CONTRACTED, UPDATES
from avial_lab.compiler.ir.operations import operations_in

SUMS = ("arith.addf", "arith.subf")
STORE_OF = {"affine.load": "affine.store", "memref.load": "memref.store"}


@dataclass(frozen=True)
class ContractFma:
    """A product whose only use is one sum of the same block becomes part of it.

    before:  %p = arith.mulf %a, %b : f64           %q = arith.mulf %c, %d : f64
             %s = arith.addf %x, %p : f64           %t = arith.subf %x, %q : f64
    after:   %s = math.fma %a, %b, %x : f64         %n = arith.negf %c : f64
                                                    %t = math.fma %n, %d, %x : f64

    In `a * b + c * d` it is the left product, but of an element's update

    before:  %x = affine.load %A[%i]                after:  %x = affine.load %A[%i]
             %p = arith.mulf %a, %b : f64                   %s = math.fma %a, %b, %x : f64
             %q = arith.mulf %c, %d : f64                   %t = math.fma %c, %d, %s : f64
             %r = arith.addf %p, %q : f64                   affine.store %t, %A[%i]
             %t = arith.addf %x, %r : f64
             affine.store %t, %A[%i]

    Changing a sign is exact. Single and double precision, numbers and vectors of them. A module is
    contracted once: as it was read.
    """

    def __call__(self, module: ir.Operation) -> None:
        if CONTRACTED in module.attributes:
            return
        with module.context:
            show_bodies(module, SUMS)
            for rewrite in (_one_by_one, _contract):
                for op in operations_in(module):
                    if op.name in SUMS and is_real(op.results[0].type):
                        rewrite(op)
            module.attributes[CONTRACTED] = ir.UnitAttr.get()

    def __str__(self) -> str:
        return "contract-fma"


def show_bodies(module: ir.Operation, wanted: Container[str]) -> None:
    """Write out the linalg operations whose bodies are hidden in their names, if one of them has an
    operation that is `wanted`.
    """
    if any(_hides(op, wanted) for op in operations_in(module)):
        manager = passmanager.PassManager("builtin.module")
        manager.add("linalg-generalize-named-ops")
        manager.run(module)


def _hides(op: ir.Operation, wanted: Container[str]) -> bool:
    if not op.name.startswith("linalg.") or op.name == "linalg.generic" or not len(op.regions):
        return False
    return any(inner.name in wanted for inner in operations_in(op))


def is_real(kind: ir.Type) -> bool:
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    return isinstance(element, ir.F32Type | ir.F64Type)


def _one_by_one(op: ir.Operation) -> None:
    """Add what is a sum of products to the element that `op` updates, one after the other."""
    left, right = op.operands
    if op.name == "arith.addf" and _is_updated(right, op):
        left, right = right, left
    elif not _is_updated(left, op):
        return
    terms = list(_terms(right, op, negative=op.name == "arith.subf"))
    if len(terms) < 2 or any(_product(value, op) is None for value, _ in terms):
        return
    with ir.InsertionPoint(op), op.location:
        for value, negative in terms:
            left = arith.subf(left, value) if negative else arith.addf(left, value)
    op.results[0].replace_all_uses_with(left)
    _erase_sum(op)


def _erase_sum(op: ir.Operation) -> None:
    """It and the sums that nothing else uses."""
    inner = [value.owner for value in op.operands]
    op.erase()
    for owner in dict.fromkeys(inner):
        if not isinstance(owner, ir.Block) and owner.operation.name in SUMS:
            each = owner.operation
            if not any(True for _ in each.results[0].uses):
                _erase_sum(each)


def _is_updated(value: ir.Value, op: ir.Operation) -> bool:
    """Whether it is an element of an array that the result of `op` is stored to, and nothing else
    uses.
    """
    if UPDATES in op.attributes:
        return op.operands[ir.IntegerAttr(op.attributes[UPDATES]).value] == value
    load = None if isinstance(value.owner, ir.Block) else value.owner.operation
    uses = [use.owner.operation for use in op.results[0].uses]
    if load is None or load.name not in STORE_OF or len(uses) != 1:
        return False
    (store,) = uses
    return (
        store.name == STORE_OF[load.name]
        and store.block == load.block == op.block
        and list(store.operands)[1:] == list(load.operands)
        and ("map" not in load.attributes or load.attributes["map"] == store.attributes["map"])
    )


def _terms(value: ir.Value, of: ir.Operation, *, negative: bool) -> Iterator[tuple[ir.Value, bool]]:
    """What is added up in `value`, each with whether it is taken away."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    once = sum(1 for _ in value.uses) == 1
    if op is None or op.name not in SUMS or op.block != of.block or not once:
        yield value, negative
        return
    yield from _terms(op.operands[0], of, negative=negative)
    yield from _terms(op.operands[1], of, negative=negative ^ (op.name == "arith.subf"))


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

"""Loops over all elements of an array, and places in it as forms of their variables.

Shape -> affine loops, with what is made meanwhile as their body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine

from avial_lab.compiler.ir.attributes import DIVIDED

NAMES = "ijklmnop"
"""Of the loops, from the outside to the inside."""

Forms = tuple[ir.AffineExpr, ...]


@dataclass(frozen=True)
class Nest:
    """The variables of loops around, from the outside to the inside."""

    variables: tuple[ir.Value, ...]

    @property
    def forms(self) -> Forms:
        return dims(len(self.variables))

    def map(self, forms: Sequence[ir.AffineExpr]) -> ir.AffineMap:
        return ir.AffineMap.get(len(self.variables), 0, list(forms))

    def load(self, array: ir.Value, forms: Forms) -> ir.Value:
        kind = ir.MemRefType(array.type)
        place = ir.AffineMapAttr.get(self.map(forms))
        return affine.AffineLoadOp(kind.element_type, array, list(self.variables), place).result

    def store(self, value: ir.Value, array: ir.Value, forms: Forms) -> None:
        place = ir.AffineMapAttr.get(self.map(forms))
        affine.AffineStoreOp(value, array, list(self.variables), place)


def dims(count: int) -> Forms:
    return tuple(ir.AffineExpr.get_dim(d) for d in range(count))


@contextmanager
def nest(shape: Sequence[int], *, by_parts: bool = False) -> Iterator[Nest]:
    """Loops over all elements of that shape; what is made meanwhile is their body. by_parts: what
    lies along the first dimension are parts, of which each rank has some.
    """
    with ExitStack() as stack:
        variables = tuple(_loop(stack, d, 0, extent) for d, extent in enumerate(shape))
        if by_parts:
            _mark(variables[0])
        yield Nest(variables)


@contextmanager
def nest_in_parts(shape: Sequence[int], cut: int, parts: int) -> Iterator[tuple[Nest, Forms]]:
    """The same, part after part of dimension `cut`, in blocks as ranks have them; with the places
    in the whole array. The first variable is the number of the part.
    """
    whole = shape[cut]
    part = ir.AffineExpr.get_dim(0)
    with ExitStack() as stack:
        variables = [_loop(stack, 0, 0, parts)]
        forms: list[ir.AffineExpr] = []
        for d, extent in enumerate(shape):
            form = ir.AffineExpr.get_dim(d + 1)
            if d != cut:
                variables.append(_loop(stack, d + 1, 0, extent))
            elif whole % parts == 0:
                variables.append(_loop(stack, d + 1, 0, whole // parts))
                form = part * (whole // parts) + form
            else:
                ends = [
                    ir.AffineExpr.get_floor_div(part * whole + more, parts) for more in (0, whole)
                ]
                low, high = (ir.AffineMap.get(1, 0, [end]) for end in ends)
                variables.append(_loop(stack, d + 1, low, high, variables[:1]))
            forms.append(form)
        _mark(variables[0])
        yield Nest(tuple(variables)), tuple(forms)


def _mark(variable: ir.Value) -> None:
    variable.owner.owner.operation.attributes[DIVIDED] = ir.UnitAttr.get()


def _loop(
    stack: ExitStack,
    number: int,
    low: int | ir.AffineMap,
    high: int | ir.AffineMap,
    operands: Sequence[ir.Value] = (),
) -> ir.Value:
    """The variable of a loop that is the insertion point until the stack ends."""
    loop = affine.AffineForOp(
        low, high, lower_bound_operands=list(operands), upper_bound_operands=list(operands)
    )
    name = NAMES[number] if number < len(NAMES) else f"i{number}"
    loop.induction_variable.set_location(ir.Location.name(name, loop.operation.location))
    with ir.InsertionPoint(loop.body):
        affine.AffineYieldOp([])
    stack.enter_context(ir.InsertionPoint(loop.body.operations[0]))
    return loop.induction_variable

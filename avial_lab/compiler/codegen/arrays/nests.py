"""Loops over all elements of an array, and places in it as forms of their variables.

Shape -> affine loops, with what is made meanwhile as their body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine

from avial_lab.compiler.ir.attributes import DIVIDED, WHERE_IT_LIES

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

    def row(
        self,
        extent: int,
        begin: Sequence[ir.Value],
        step: Callable[..., Sequence[ir.Value]],
    ) -> Sequence[ir.Value]:
        """What the last iteration hands on of a loop inside of these; `step` says what one does, of
        its nest and what it is handed.
        """
        loop = affine.AffineForOp(0, extent, iter_args=list(begin))
        _name(loop, len(self.variables))
        with ir.InsertionPoint(loop.body):
            inner = Nest((*self.variables, loop.induction_variable))
            affine.AffineYieldOp(step(inner, *loop.inner_iter_args))
        return loop.results


def dims(count: int) -> Forms:
    return tuple(ir.AffineExpr.get_dim(d) for d in range(count))


@contextmanager
def nest(
    shape: Sequence[int],
    *,
    first: int = 0,
    in_parts: str = "",
    by_parts: bool = False,
    on_one: bool = False,
) -> Iterator[Nest]:
    """Loops over all elements of that shape; what is made meanwhile is their body. first: the
    dimension of the outermost, which is divided; in_parts: how, if not in one for each rank.
    by_parts: what lies along the first dimension are parts, of which each rank has some. on_one:
    one rank runs all of it.
    """
    with ExitStack() as stack:
        variables = _loops(stack, shape, first)
        if by_parts or first or in_parts:
            _mark(variables[first], in_parts=in_parts)
        if on_one and variables:
            _mark(variables[first], WHERE_IT_LIES)
        yield Nest(variables)


def _loops(
    stack: ExitStack, shape: Sequence[int], first: int, depth: int = 0
) -> tuple[ir.Value, ...]:
    """The variables by dimension, that of the outermost loop is the `first`; inside of `depth`
    others.
    """
    order = sorted(range(len(shape)), key=lambda d: (d != first, d))
    made = {d: _loop(stack, depth + d, 0, shape[d]) for d in order}
    return tuple(made[d] for d in range(len(shape)))


@contextmanager
def nest_in_parts(
    shape: Sequence[int],
    cut: int,
    parts: int,
    made: Sequence[int] = (),
    begin: Callable[[Nest], None] | None = None,
) -> Iterator[tuple[Nest, Forms]]:
    """The same, part after part of dimension `cut`, in blocks as ranks have them; with the places
    in the whole array. The first variable is the number of the part. What a part makes, of shape
    `made`, may `begin` first.
    """
    with ExitStack() as stack:
        variables = [_loop(stack, 0, 0, parts)]
        if begin is not None:
            with ExitStack() as inner:
                begin(Nest((variables[0], *_loops(inner, made, 0, depth=1))))
        forms: list[ir.AffineExpr] = []
        for d, extent in enumerate(shape):
            form = ir.AffineExpr.get_dim(d + 1)
            if d != cut:
                variables.append(_loop(stack, d + 1, 0, extent))
            else:
                variable, form = _loop_in_part(stack, d + 1, extent, parts, variables[0])
                variables.append(variable)
            forms.append(form)
        _mark(variables[0])
        yield Nest(tuple(variables)), tuple(forms)


@contextmanager
def nest_of_rows(
    made: Sequence[int], terms: int, parts: int, begin: Callable[[Nest], None]
) -> Iterator[tuple[Nest, Forms]]:
    """Of each part of the terms, sums of shape `made`, row by row: what it begins with, and all
    terms of a row before the next row. With the places of row, column and term.
    """
    with ExitStack() as stack:
        part = _loop(stack, 0, 0, parts)
        rows = [_loop(stack, 1 + d, 0, extent) for d, extent in enumerate(made[:-1])]
        with ExitStack() as inner:
            begin(Nest((part, *rows, _loop(inner, len(made), 0, made[-1]))))
        term, form = _loop_in_part(stack, len(made) + 1, terms, parts, part)
        column = _loop(stack, len(made), 0, made[-1])
        _mark(part)
        yield Nest((part, *rows, column, term)), (*dims(len(made) + 1)[1:], form)


def _loop_in_part(
    stack: ExitStack, number: int, whole: int, parts: int, part: ir.Value
) -> tuple[ir.Value, ir.AffineExpr]:
    """Over what lies in that part of the whole; where that is, by the parts' number, which is the
    first of the nest's variables, and its own.
    """
    form = ir.AffineExpr.get_dim(number)
    place = ir.AffineExpr.get_dim(0)
    if whole % parts == 0:
        return _loop(stack, number, 0, whole // parts), place * (whole // parts) + form
    low, high = (ir.AffineMap.get(1, 0, [end]) for end in _ends(place, whole, parts))
    return _loop(stack, number, low, high, [part]), form


def _ends(part: ir.AffineExpr, whole: int, parts: int) -> list[ir.AffineExpr]:
    """Where that part of the whole begins and ends."""
    if whole % parts == 0:
        each = whole // parts
        return [part * each, part * each + each]
    return [ir.AffineExpr.get_floor_div(part * whole + more, parts) for more in (0, whole)]


@contextmanager
def nest_in_turns(
    shape: Sequence[int], cut: int, turns: int, begin: int = 0
) -> Iterator[tuple[Nest, Forms]]:
    """The same in the order of dimension `cut`, from `begin` on, so much in each of as many turns:
    where it lies. With the places; the first variable is the number of the turn.
    """
    ends = _ends(ir.AffineExpr.get_dim(0), shape[cut], turns)
    least = [ir.AffineExpr.get_constant(begin)] if begin else []
    low, high = (ir.AffineMap.get(1, 0, each) for each in ([ends[0], *least], [ends[1]]))
    others = [d for d in range(len(shape)) if d != cut]
    with ExitStack() as stack:
        first = _loop(stack, 0, 0, turns)
        made = {cut: _loop(stack, 1 + cut, low, high, [first])}
        _mark(made[cut], WHERE_IT_LIES)
        made |= {d: _loop(stack, 1 + d, 0, shape[d]) for d in others}
        variables = (first, *(made[d] for d in range(len(shape))))
        yield Nest(variables), dims(1 + len(shape))[1:]


def _mark(variable: ir.Value, attribute: str = DIVIDED, in_parts: str = "") -> None:
    value = ir.StringAttr.get(in_parts) if in_parts else ir.UnitAttr.get()
    variable.owner.owner.operation.attributes[attribute] = value


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
    _name(loop, number)
    with ir.InsertionPoint(loop.body):
        affine.AffineYieldOp([])
    stack.enter_context(ir.InsertionPoint(loop.body.operations[0]))
    return loop.induction_variable


def _name(loop: affine.AffineForOp, number: int) -> None:
    name = NAMES[number] if number < len(NAMES) else f"i{number}"
    loop.induction_variable.set_location(ir.Location.name(name, loop.operation.location))

"""Reductions of arrays: what they begin with, how two results are combined, and how many are.

Partial results of blocks of the global index are combined in one order, whoever has them, so that
the bits hang neither on ranks nor on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, complex, memref

from avial_lab.compiler.codegen.arrays.elementwise import (
    binary,
    is_bool,
    is_float,
    is_unsigned,
    number,
    stored,
)
from avial_lab.compiler.codegen.arrays.nests import Nest, nest, nest_in_turns
from avial_lab.core.array_functions import EXTREMES

JOINS = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum",
         "any": "bitwise_or", "all": "bitwise_and"}  # fmt: skip
"""Of each reduction, the operation of two."""

TOGETHER = 8
"""Neighbours that are combined at once, while that leaves as many."""


def zero(kind: ir.Type) -> ir.Value:
    if isinstance(kind, ir.ComplexType):
        part = number(kind.element_type, 0)
        return complex.create_(kind, part, part)
    return number(kind, 0)


def first(name: str, kind: ir.Type) -> ir.Value:
    """What a reduction of nothing gives."""
    if name in ("sum", "any"):
        return zero(kind)
    if name == "all":
        return arith.constant(stored(kind), -1)
    if name == "prod":
        if isinstance(kind, ir.ComplexType):
            one = number(kind.element_type, 1)
            return complex.create_(kind, one, number(kind.element_type, 0))
        return arith.constant(stored(kind), -1) if is_bool(kind) else number(kind, 1)
    if is_float(kind):
        return number(kind, float("inf") if name == "min" else float("-inf"))
    if is_unsigned(kind) or is_bool(kind):
        return arith.constant(stored(kind), -1 if name == "min" else 0)
    half = 1 << (kind.width - 1)
    return number(kind, half - 1 if name == "min" else -half)


def joined(name: str, kind: ir.Type, total: ir.Value, element: ir.Value) -> ir.Value:
    return binary(JOINS[name], kind, total, element)


def place_of_extreme(
    name: str, kind: ir.Type, loops: Nest, extent: int, element: Callable[[Nest], ir.Value]
) -> ir.Value:
    """Along a row of such elements, inside of the loops: of equals the first, and a NaN before all
    others.
    """

    def step(inner: Nest, extreme: ir.Value, place: ir.Value) -> Sequence[ir.Value]:
        x = element(inner)
        if is_float(kind):
            order = arith.CmpFPredicate
            beyond = order.UGT if name == "argmin" else order.ULT
            is_number = arith.cmpf(order.ORD, extreme, extreme)
            is_next = arith.andi(arith.cmpf(beyond, extreme, x), is_number)
        else:
            is_next = binary("less" if name == "argmin" else "greater", kind, x, extreme)
        at = arith.index_cast(place.type, inner.variables[-1])
        return arith.select(is_next, x, extreme), arith.select(is_next, at, place)

    begin = first(EXTREMES[name], kind), number(ir.IntegerType.get_signless(64), 0)
    return loops.row(extent, begin, step)[-1]


def combine_parts(name: str, kind: ir.Type, parts: ir.Value, into: ir.Value | None) -> None:
    """The elements along the first dimension of `parts`, combined in `into`, or in the first of
    them. kind: their type with its sign.

    One after the other, where they lie: what ranks hand on is what they have so far, one part each,
    wherever the parts are cut. Of other numbers of parts, in pairs of neighbours.
    """
    count, *shape = ir.MemRefType(parts.type).shape
    turns = next((turns for many, turns in IN_TURN if count == many), 0)
    if not turns:
        _combine_in_pairs(name, kind, parts, into)
        return
    if into is not None and not shape:  # as cheap to send all of as one
        with nest(()) as loops:
            loops.store(first(name, kind), into, ())
        with nest((count,), on_one=True) as loops:
            before = loops.load(into, ())
            loops.store(joined(name, kind, before, loops.load(parts, loops.forms)), into, ())
        return
    place = () if into is not None else (_constant(0),)
    if into is not None:
        with nest(shape, on_one=True) as loops:
            loops.store(_at(loops, parts, 0), into, loops.forms)
    with nest_in_turns((count, *shape), 0, turns, 1) as (loops, (part, *rest)):
        target = parts if into is None else into
        before = loops.load(target, (*place, *rest))
        after = joined(name, kind, before, loops.load(parts, (part, *rest)))
        loops.store(after, target, (*place, *rest))


IN_TURN = ((840, 84), (168, 84), (84, 42), (12, 6))
"""Numbers of blocks, and in how many turns they are combined: the ends of what a rank has of any
rows are ends of blocks on 1 to 4, 6, 7 (not of 12 blocks), and 12 ranks, of 840 on 5 and 8, too.
"""


def _combine_in_pairs(name: str, kind: ir.Type, parts: ir.Value, into: ir.Value | None) -> None:
    """Pairs of neighbours, and pairs of these. While there are many, eight are combined at once,
    which is three rounds of pairs.
    """
    count, *shape = ir.MemRefType(parts.type).shape
    place = () if into is not None else (_constant(0),)
    into = parts if into is None else into
    made: list[ir.Value] = []
    while count > 2:
        width = TOGETHER if count >= TOGETHER * TOGETHER else 2
        count = -(-count // width)
        level = memref.alloc(ir.MemRefType.get([count, *shape], stored(kind)), [], [])
        _combine_level(name, kind, parts, level, width)
        made.append(level)
        parts = level
    with nest(shape) as loops:
        total = _in_pairs(name, kind, [_at(loops, parts, k) for k in range(count)])
        loops.store(total, into, (*place, *loops.forms))
    for level in made:
        memref.dealloc(level)


def _combine_level(name: str, kind: ir.Type, parts: ir.Value, level: ir.Value, width: int) -> None:
    """Each element of `level` along the first dimension, of so many of `parts`; the last of what is
    left.
    """
    count, *shape = ir.MemRefType(parts.type).shape
    if count // width:
        with nest((count // width, *shape), by_parts=True) as loops:
            node, *rest = loops.forms
            values = [loops.load(parts, (node * width + k, *rest)) for k in range(width)]
            loops.store(_in_pairs(name, kind, values), level, loops.forms)
    if count % width:
        with nest(shape) as loops:
            values = [_at(loops, parts, k) for k in range(count // width * width, count)]
            place = (_constant(count // width), *loops.forms)
            loops.store(_in_pairs(name, kind, values), level, place)


def _constant(at: int) -> ir.AffineExpr:
    return ir.AffineExpr.get_constant(at)


def _at(loops: Nest, parts: ir.Value, k: int) -> ir.Value:
    return loops.load(parts, (_constant(k), *loops.forms))


def _in_pairs(name: str, kind: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
    while len(values) > 1:
        pairs = [joined(name, kind, values[k], values[k + 1]) for k in range(0, len(values) - 1, 2)]
        values = [*pairs, *values[len(values) // 2 * 2 :]]
    return values[0]

"""Sums over several loops as sums over one; rows of a few columns as one row.

A nest and its contraction -> a copy of the nest, in which the loops of its terms, or of its
columns, are one loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.compiler.analysis.patterns.contractions import (
    Contraction,
    loops_of_terms,
    statements_behind,
)
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.loop_ends import extent_of
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import body_of, comes_from, defined_in, holds, parent_of
from avial_lab.compiler.ir.operations import lies_whole, operations_in, replaced
from avial_lab.compiler.ir.remarks import name_of

SET = isl.dim_type.set

_MARK = "avial.term"


@dataclass(frozen=True)
class _Range:
    loop: ir.Operation
    low: int
    count: int

    @property
    def variable(self) -> ir.Value:
        return self.loop.regions[0].blocks[0].arguments[0]


def joined_terms(nest: ir.Operation, scop: Scop, found: Contraction) -> ir.Operation | None:
    """Before `nest`, the copy; None where its terms are those of one loop, or not a box.

    before:  affine.for %c = 0 to 16 { affine.for %p = 0 to 3 { affine.for %q = 0 to 3 {
               Y[%o, %j] += F[%o, %c, %p, %q] * X[%c, %p, %j + %q] } } }
    after:   affine.for %t = 0 to 144 {
               Y[%o, %j] += F[%o, %t / 9, %t / 3 mod 3, %t mod 3] * X[%t / 9, …, %j + %t mod 3] }

    The terms are met in the same order. A convolution is a product of matrices after that. Loops
    around that add more of them (%c outside of %j) go inside first.
    """
    inner = list(_in_each_other(scop, found))[::-1]
    outer = list(_around(scop, found, inner))[::-1] if inner else []
    if len(inner) + len(outer) < 2:
        return None
    copy, joined = _copied(nest, (*outer, *inner))
    for k in reversed(range(len(outer))):
        first = body_of(joined[k].loop)[0]
        if joined[k].loop == copy and first != joined[k + 1].loop:
            copy = first
        _move_inside(joined[k].loop, joined[k + 1].loop)
    return _join(copy, joined)


def joined_columns(nest: ir.Operation, scop: Scop, found: Contraction) -> ir.Operation | None:
    """Before `nest`, the copy; None where the columns are not those of rows that lie one after the
    other.

    before:  affine.for %i = 0 to 7 { affine.for %j = 0 to 7 {
               Y[%o, %i, %j] += F[%o, %t] * X[%t, %i, %j] } }
    after:   affine.for %c = 0 to 49 { Y'[%o, %c] += F[%o, %t] * X[%t, %c / 7, %c mod 7] }
             where Y' is Y with its last two dimensions as one
    """
    column, row = (found.unit.loops[k].op for k in (found.roles.column, found.roles.row))
    around = parent_of(column)
    if around is None or not holds(nest, around) or body_of(around) != [column] or around == row:
        return None
    if len(scop.loops_of(around)) != 1 or len(around.results) or len(column.results):
        return None
    extents = [extent_of(scop, loop) for loop in (around, column)]
    ranges = [
        _Range(loop, *extent)
        for loop, extent in zip((around, column), extents, strict=True)
        if extent is not None and _is_box(scop, loop, *extent)
    ]
    if len(ranges) != 2 or not _is_flat(found.store.op, nest, ranges):
        return None
    return _join(*_copied(nest, ranges))


def _copied(nest: ir.Operation, ranges: Sequence[_Range]) -> tuple[ir.Operation, list[_Range]]:
    """A copy before `nest`, and the same loops there."""
    for each in ranges:
        each.loop.attributes[_MARK] = ir.UnitAttr.get()
    copy = nest.clone(ip=ir.InsertionPoint(nest)).operation
    for each in ranges:
        del each.loop.attributes[_MARK]
    loops = [op for op in (copy, *operations_in(copy)) if _MARK in op.attributes]
    return copy, [_Range(op, each.low, each.count) for op, each in zip(loops, ranges, strict=True)]


def _in_each_other(scop: Scop, found: Contraction) -> Iterator[_Range]:
    """The loops of terms, from the innermost on, each with nothing but the next in it."""
    terms = {loop.op for loop in loops_of_terms(found)}
    loop: ir.Operation | None = found.unit.loops[found.roles.term].op
    inner: ir.Operation | None = None
    while loop is not None and loop in terms and (inner is None or body_of(loop) == [inner]):
        extent = extent_of(scop, loop)
        if extent is None or len(loop.results) or not _is_box(scop, loop, *extent):
            return
        yield _Range(loop, *extent)
        loop, inner = parent_of(loop), loop


def _around(scop: Scop, found: Contraction, ranges: Sequence[_Range]) -> Iterator[_Range]:
    """The loops of more terms around loops over elements, from the inside on, that may as well
    stand right around those of `ranges`: there is nothing else in them, and each element is that of
    one iteration of the others. Their terms are others for rows and for columns, or what is packed
    would be the same again and again.
    """
    if found.before or found.after or not _has_elements_of_its_own(found):
        return
    terms = [loop.op for loop in loops_of_terms(found)]
    passed: list[ir.Operation] = []
    inner, loop = ranges[0].loop, parent_of(ranges[0].loop)
    while loop is not None and loop.name == "affine.for" and body_of(loop) == [inner]:
        if loop not in terms:
            passed.append(loop)
        else:
            extent = extent_of(scop, loop)
            variable = loop.regions[0].blocks[0].arguments[0]
            if extent is None or len(loop.results) or not _is_box(scop, loop, *extent):
                return
            if any(variable in operands_of_ends(each) for each in passed):
                return
            if not all(_hangs_on(side, found, variable) for side in (found.left, found.right)):
                return
            yield _Range(loop, *extent)
        if loop == scop.op:
            return
        loop, inner = parent_of(loop), loop


def _hangs_on(side: Sequence[ir.Value], found: Contraction, variable: ir.Value) -> bool:
    """Whether a value of that side is loaded from where the variable says."""
    names = statements_behind(side, found)
    loads = [s.op for s in (*found.unit.statements, *found.unit.sunk) if s.name in names]
    return any(comes_from(each, variable) for op in loads for each in list(op.operands)[1:])


def _has_elements_of_its_own(found: Contraction) -> bool:
    """Whether only iterations of the loops of terms store to the same element."""
    stored = found.store.accesses[0]
    terms = loops_of_terms(found)
    places = [k for k, loop in enumerate(found.store.loops) if loop in terms]

    def injective() -> bool:
        elements = stored.relation
        for k in reversed(places):
            elements = elements.project_out(isl.dim_type.in_, k, 1)
        return elements.is_injective()

    return limited(injective, lambda: False)


def _move_inside(loop: ir.Operation, inner: ir.Operation) -> None:
    """Let `loop` stand right around `inner`, which is in loops that are in it alone."""
    (first,) = body_of(loop)
    if first == inner:
        return
    first.move_before(loop)
    loop.move_before(inner)
    inner.move_before(loop.regions[0].blocks[0].operations[0].operation)


def _is_box(scop: Scop, loop: ir.Operation, low: int, count: int) -> bool:
    """Whether it has these iterations wherever the loops around are."""
    (own,) = scop.loops_of(loop)
    points = scop.iterations[own].reset_tuple_id()
    box = points.project_out(SET, own.depth, 1).insert_dims(SET, own.depth, 1)
    box = box.lower_bound_val(SET, own.depth, low).upper_bound_val(SET, own.depth, low + count - 1)
    return limited(lambda: box.is_equal(points), lambda: False)


def _join(nest: ir.Operation, ranges: Sequence[_Range]) -> ir.Operation:
    """`nest` with one loop in place of these, the outermost first, which `nest` itself may be."""
    outer, inner = ranges[0].loop, ranges[-1].loop
    names = filter(None, (name_of(each.variable.location) for each in ranges))
    with ir.InsertionPoint(outer), outer.location:
        made = affine.AffineForOp(0, math.prod(each.count for each in ranges), 1, iter_args=[])
    (term,) = made.operation.regions[0].blocks[0].arguments
    term.set_location(ir.Location.name("_".join(names), outer.location))
    whole = made.operation if outer == nest else nest
    for op in operations_in(inner):
        if op.name in ("affine.load", "affine.store") and _is_flat(op, nest, ranges):
            _flatten(op, whole, ranges, term)
    with ir.InsertionPoint(made.operation.regions[0].blocks[0]), outer.location:
        inside = 1
        for each in ranges[::-1]:
            digit = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(0), inside)
            if each is not ranges[0]:
                digit = ir.AffineExpr.get_mod(digit, each.count)
            form = ir.AffineMap.get(1, 0, [digit + each.low])
            each.variable.replace_all_uses_with(affine.AffineApplyOp(form, [term]).result)
            inside *= each.count
        end = affine.AffineYieldOp([])
    for op in body_of(inner):
        op.move_before(end.operation)
    outer.erase()
    return whole


def _is_flat(access: ir.Operation, nest: ir.Operation, ranges: Sequence[_Range]) -> bool:
    """Whether the loops go through its last dimensions from end to end, element by element."""
    form = ir.AffineMapAttr(access.attributes["map"]).value
    array, *inputs = list(access.operands)[access.name == "affine.store" :]
    kind, first = ir.MemRefType(array.type), len(form.results) - len(ranges)
    if first < 0 or not kind.has_static_shape or not lies_whole(kind) or defined_in(nest, array):
        return False
    dims: list[ir.AffineExpr] = [ir.AffineExpr.get_dim(k) for k in range(form.n_dims)]
    return all(
        expr in dims
        and inputs[dims.index(expr)] == each.variable
        and (each.low, each.count) == (0, extent)
        for expr, extent, each in zip(
            list(form.results)[first:], kind.shape[first:], ranges, strict=True
        )
    )


def _flatten(
    access: ir.Operation, whole: ir.Operation, ranges: Sequence[_Range], term: ir.Value
) -> None:
    """Load or store the same of the array with its last dimensions as one, made so before
    `whole`.
    """
    form = ir.AffineMapAttr(access.attributes["map"]).value
    *value, array = list(access.operands)[: 1 + (access.name == "affine.store")]
    inputs = list(access.operands)[len(value) + 1 :]
    kind, first = ir.MemRefType(array.type), len(form.results) - len(ranges)
    shape = [*kind.shape[:first], math.prod(kind.shape[first:])]
    groups = [*([k] for k in range(first)), list(range(first, kind.rank))]
    with ir.InsertionPoint(whole), access.location:
        flat_kind = ir.MemRefType.get(shape, kind.element_type, memory_space=kind.memory_space)
        flat = memref.CollapseShapeOp(flat_kind, array, groups).result
    last = ir.AffineExpr.get_dim(form.n_dims)
    results = [*list(form.results)[:first], last]
    flat_form = ir.AffineMap.get(form.n_dims + 1, form.n_symbols, results)
    replaced(
        access,
        access.name,
        [*value, flat, *inputs[: form.n_dims], term, *inputs[form.n_dims :]],
        {"map": ir.AffineMapAttr.get(flat_form)},
    )

"""Loops that are marked: those whose iterations may run at once, and what lies in them."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import (
    Dependence,
    carried_among,
    dependences,
)
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.strides import move_of
from avial_lab.compiler.ir.attributes import DECLARED, ORDERED, PARALLEL
from avial_lab.compiler.ir.effects import ACCESSES, is_pure
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import FORS, body_of, defined_in, holds
from avial_lab.compiler.ir.operations import LOOPS, loops_in, operations_in, operations_named

BOUNDS = ("lowerBoundMap", "upperBoundMap")


def free_nests(op: ir.Operation) -> Iterator[ir.Operation]:
    """The outermost loops in `op` that hold no marked one. A marked loop is as the pass that marked
    it wants to have it, and nobody looks into it.
    """
    for loop in nearest_loops(op):
        if PARALLEL in loop.attributes:
            continue
        if any(PARALLEL in inner.attributes for inner in operations_named(loop, *LOOPS)):
            yield from free_nests(loop)
        else:
            yield loop


def kept_nests(op: ir.Operation) -> Iterator[ir.Operation]:
    """The free nests, and in marked loops those whose order is chosen already (`avial.ordered`):
    what a single loop of them does may be done better.
    """
    yield from free_nests(op)
    found: dict[ir.Operation, None] = {}
    for loop in (each for each in loops_in(op) if PARALLEL in each.attributes):
        found |= {inner: None for inner in loops_in(loop) if ORDERED in inner.attributes}
    yield from found


def nearest_loops(op: ir.Operation) -> Iterator[ir.Operation]:
    """The loops in `op` with no other between."""
    for region in op.regions:
        for block in region.blocks:
            for inner in [view.operation for view in block.operations]:
                if not len(inner.regions):
                    continue
                if inner.name in LOOPS:
                    yield inner
                else:
                    yield from nearest_loops(inner)


def may_run_at_once(loop: ir.Operation) -> bool:
    """Whether no iteration of `loop` depends on another."""
    return loop.name in DECLARED or order_of(loop, read_scop(loop)) is None


def order_of(op: ir.Operation, scop: Scop) -> str | None:
    """What keeps the iterations in order; None where nothing does."""
    if _calls(op):
        return "the side effects of a call in it are not known"
    carried = [each for loop in scop.loops_of(op) for each in carried_among(loop, scop.statements)]
    if not carried:
        return None
    first = carried[0]
    if first.array.kind is ArrayKind.VALUE:
        return "each passes a value to the next"
    return f"{first.target_access} depends on {first.source_access} of an earlier one"


def _calls(op: ir.Operation) -> bool:
    """Whether there is a call in it: what that does to the world nobody has looked at."""
    return any(inner.name.endswith(".call") for inner in operations_in(op))


def columns_of(nest: ir.Operation, scop: Scop) -> list[ir.Operation]:
    """The innermost loops of `nest`, if they may be cut into slices; else none.

    All that is written is written in them, their bounds are the same in every iteration, and what
    is ordered has the same value of their variables.
    """
    if _calls(nest) or len(nest.results):
        return []
    rows = {op: None for op in loops_in(nest) if not any(nearest_loops(op))}
    if not rows or not all(_may_be_cut(row, nest) for row in rows):
        return []
    statements = [s for s in scop.statements if holds(nest, s.op)]
    written = {a.array for s in statements for a in s.accesses if a.writes}
    for s in statements:
        outside = s.loops[-1].op not in rows
        if outside and any(access.array in written for access in s.accesses):
            return []
    ordered = [d for d in dependences(statements) if d.carrier is None or holds(nest, d.carrier.op)]
    if not limited(lambda: all(map(_in_one_column, ordered)), lambda: False):
        return []
    return list(rows)


def _may_be_cut(row: ir.Operation, nest: ir.Operation) -> bool:
    single = row.name == "affine.for" and ir.IntegerAttr(row.attributes["step"]).value == 1
    return single and not len(row.results) and not any(defined_in(nest, v) for v in row.operands)


def _in_one_column(dependence: Dependence) -> bool:
    source, target = (len(s.loops) - 1 for s in (dependence.source, dependence.target))
    pairs = dependence.relation
    return pairs.is_subset(pairs.equate(isl.dim_type.in_, source, isl.dim_type.out, target))


def loops_over_columns(loop: ir.Operation) -> list[ir.Operation]:
    """The loops in the body of `loop`, where copies of all that stands there can be put beside each
    other: their bounds are the same in every iteration, and nothing is inside of them.
    """
    body = body_of(loop)
    inner = [op for op in body if op.name == "affine.for"]
    plain = not len(loop.results) and _steps_by_one(loop) and all(map(_is_row, inner))
    others = (op.name in ACCESSES or is_pure(op) for op in body if op not in inner)
    bounds = (value for op in inner for value in operands_of_ends(op))
    if not plain or not all(others) or any(defined_in(loop, value) for value in bounds):
        return []
    return inner


def ends_of(loop: ir.Operation) -> tuple[int, int | None] | None:
    """Numbers between which all values of its variable are, if it says such; the first of them may
    be one, the second never. None for the second: it is known when the program runs.
    """
    if loop.name != "affine.for":
        return None
    forms = (ir.AffineMapAttr(loop.attributes[name]).value for name in BOUNDS)
    lows, highs = ([k for each in form.results if (k := constant_in(each)) is not None]
                   for form in forms)  # fmt: skip
    return (max(lows), min(highs, default=None)) if lows else None


def _steps_by_one(loop: ir.Operation) -> bool:
    return ir.IntegerAttr(loop.attributes["step"]).value == 1


def _is_row(loop: ir.Operation) -> bool:
    return _steps_by_one(loop) and all(
        not len(op.regions) and (op.name in ACCESSES or is_pure(op)) for op in body_of(loop)
    )


def goes_along(statement: Statement, own: Loop) -> bool:
    """Whether it goes from element to element, over the same ones in all iterations of `own`."""
    (access,) = statement.accesses
    row, place = len(statement.loops) - 1, statement.loops.index(own)
    return access.exact and move_of(access, row) == 1 and move_of(access, place) == 0


def innermost_loops(nest: ir.Operation) -> list[ir.Operation]:
    """The loops of `nest`, itself included, that no other loop is in."""
    loops = [op for op in (nest, *loops_in(nest)) if op.name in FORS]
    return [loop for loop in loops if not operations_named(loop, *LOOPS, "scf.while")]


def maps_of(loop: ir.Operation) -> tuple[ir.AffineMap, ir.AffineMap]:
    low, high = (ir.AffineMapAttr(loop.attributes[k]) for k in ("lowerBoundMap", "upperBoundMap"))
    return low.value, high.value  # pyright: ignore


def surely_runs(loop: ir.Operation) -> bool:
    if loop.name != "affine.for":
        return False
    lows, highs = ([constant_in(end) for end in bound.results] for bound in maps_of(loop))
    return all(a is not None and b is not None and a < b for a in lows for b in highs)


def constant_in(form: ir.AffineExpr) -> int | None:
    known = form.maybe_downcast()
    return known.value if isinstance(known, ir.AffineConstantExpr) else None

"""Sums that loops carry: their terms, and how many of them are combined."""

from __future__ import annotations

from math import prod

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.scop import Array, ArrayKind, Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.strides import walks
from avial_lab.compiler.analysis.polyhedral.trip_counts import FAR, most_iterations
from avial_lab.compiler.analysis.polyhedral.updates import links
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import inits_of
from avial_lab.compiler.ir.operations import operations_in

LINKS = ("arith.addf", "arith.subf", "arith.mulf", "math.fma")


def terms_on_one(own: Loop, scop: Scop, longest: int) -> int:
    """How many terms a sum over `own`, of so many itself, has with those that the loops around add
    to the same element.
    """
    stores = [s for s in scop.statements if s.op.name in STORES]
    inside = [s for s in stores if own in s.loops]
    behind = [s for s in stores if own not in s.loops and _goes_on_from(s.op, own.op)]
    terms = longest
    for store in (*inside, *behind):
        arrays = {access.array for access in store.accesses}
        if sum(a.array in arrays for other in stores for a in other.accesses) > len(arrays):
            continue  # it begins anew somewhere
        times = max((most_on_one(store, array) for array in arrays), default=1)
        terms = max(terms, times if store in inside else times * longest)
    return min(terms, FAR)


def _goes_on_from(store: ir.Operation, loop: ir.Operation) -> bool:
    """Whether `loop` begins with an element that its result is stored to."""
    memory = store.operands[1]
    inits = inits_of(loop)
    return any(
        result == store.operands[0]
        and not isinstance(init.owner, ir.Block)
        and init.owner.operation.name in LOADS
        and init.owner.operation.operands[0] == memory
        for init, result in zip(inits, loop.results, strict=True)
    )


def most_on_one(store: Statement, array: Array) -> int:
    """How many iterations of a statement at most write to the same element of `array`; FAR where
    nobody knows.
    """
    relations = [a.relation for a in store.accesses if a.writes and a.array == array]
    if len(relations) != 1:
        return FAR
    (written,) = relations
    written = written.project_out(isl.dim_type.param, 0, written.dim(isl.dim_type.param))

    def furthest_apart() -> list[isl.Val]:
        apart = written.apply_range(written.reverse()).deltas()
        return [apart.dim_max_val(place) for place in range(len(store.loops))]

    furthest = limited(furthest_apart, list)
    if written.is_empty():
        return 0
    if len(furthest) < len(store.loops) or not all(each.is_int() for each in furthest):
        return FAR
    steps = (abs(loop.step or 1) for loop in store.loops)
    return prod(each.to_python() // step + 1 for each, step in zip(furthest, steps, strict=True))


def may_sum(loop: ir.Operation) -> bool:
    return any(op.name in LINKS for op in operations_in(loop))


def links_of(own: Loop, scop: Scop) -> list[ir.Operation]:
    """The operations that add up what the iterations of `own` combine, if that is all that keeps
    them in order.
    """
    carried = carried_among(own, scop.statements)
    sums = [r for r in reductions(own, scop, carried) if r.reorders_rounding and r.fixed]
    if not sums or forbidding(own, scop, carried) or not side_by_side(own, scop):
        return []
    ops = {statement.name: statement.op for statement in scop.statements}
    body = own.op.regions[0].blocks[0]
    handed_on = body.operations[-1].operation.operands
    ends = list(zip(list(body.arguments)[1:], handed_on, strict=True))
    ends += [
        (ops[update.load].results[0], ops[update.store].operands[0])
        for each in sums
        for update in each.updates
        if update.array.kind is ArrayKind.MEMORY and update.load != update.store
    ]
    found = [op for old, new in ends for op in links(old, new)]
    return [op for op in found if isinstance(op.results[0].type, ir.FloatType)]


def side_by_side(own: Loop, scop: Scop) -> bool:
    """Whether the loop goes from each element to the one beside, or stays: vectors gather what it
    jumps to one by one, and are slower than the order of the program.
    """
    return all(
        access.array.kind is not ArrayKind.MEMORY or walks(access, statement.loops.index(own))
        for statement in scop.within(own)
        for access in statement.accesses
    )


def longest_of(loop: Loop, scop: Scop) -> int:
    """Of one execution of `loop`, whatever the loops around are at."""
    step = abs(loop.step or 1)
    return max(most_iterations(s.domain, s.loops.index(loop), step) for s in scop.within(loop))

"""Sums over an innermost loop that vectors may compute: in several parts, added at the end.

Functions of loops in their last order -> the same, with LLVM's leave on exactly the operations that
add up a sum or product, and on the function how many terms the longest has.

In program order each addition waits for the one before, four cycles or so on any machine, and no
vector helps. Everywhere else that order costs nothing: where the innermost loop goes over elements
and not over terms, each vector lane adds up an element of its own, and the bits stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import islpy as isl
from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.accesses.memory import LOADS, STORES
from avial_lab.compiler.analysis.accesses.reassociation import FAR
from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.polyhedral import Loop, Scop, read_scop
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.scop import Array, ArrayKind, Statement
from avial_lab.compiler.analysis.polyhedral.strides import walks
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.analysis.polyhedral.updates import links
from avial_lab.compiler.ir.nesting import inits_of
from avial_lab.compiler.ir.operations import functions_in, itemsize_of, operations_in
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.ir.remarks import loop_name, phase_of, tell
from avial_lab.compiler.passes.distribution.phases import OF_TASK
from avial_lab.compiler.passes.loops.facts.mark_parallel import free_nests
from avial_lab.compiler.passes.loops.facts.no_alias import functions_of_tasks
from avial_lab.compiler.passes.loops.storage.promote_scalars import innermost_loops
from avial_lab.machine.cpu import this_cpu

LINKS = ("arith.addf", "arith.subf", "arith.mulf", "math.fma")
NAME = "reorder-sums"
SUMS = "avial.sums"
"""On a function: floating-point sums or products of so many terms are added in another order."""


@dataclass(frozen=True)
class ReorderSums:
    """Let LLVM add up the terms of an innermost loop in any order.

    before:  affine.for %k { %s = affine.load %C[%i] …  %t = math.fma %a, %b, %s : f64
                             affine.store %t, %C[%i] }
    after:   affine.for %k { %s = affine.load %C[%i] …  %p = arith.mulf %a, %b fastmath<contract>
                             %t = arith.addf %s, %p fastmath<reassoc,contract>
                             affine.store %t, %C[%i] }

    Only where the loop is parallel but for such sums and meets elements that lie side by side, as
    else there is nothing to win with vectors. LLVM's vectoriser knows a fused sum as two operations
    that may be contracted, not as one. Nothing is said of NaN, infinities and the sign of zero:
    they stay what they are. A strict module stays as it is, a nest that a pass before wrote, and
    sums of fewer terms than a vector has lanes.
    """

    def __call__(self, module: ir.Operation) -> None:
        if is_strict(module):
            return
        with module.context:
            for function in functions_of_tasks(module):
                terms = max(map(_reorder, free_nests(function)), default=0)
                note_terms(function, terms)

    def __str__(self) -> str:
        return NAME


def note_terms(op: ir.Operation, terms: int) -> None:
    """Of the longest sum that is in another order, in the function that `op` is or stands in."""
    function = phase_of(op)
    assert function is not None, "loops stand in functions"
    known = ir.IntegerAttr(function.attributes[SUMS]).value if SUMS in function.attributes else 0
    if terms > known:
        function.attributes[SUMS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), terms)


def reordered_sums(module: ir.Operation) -> dict[str, int]:
    """The tasks whose sums have been reordered, with the number of terms of the longest."""
    return {
        ir.StringAttr(op.attributes[OF_TASK]).value: ir.IntegerAttr(op.attributes[SUMS]).value
        for op in functions_in(module)
        if SUMS in op.attributes
    }


def _reorder(nest: ir.Operation) -> int:
    """How many terms the longest sum has that is reordered in `nest`; 0 where none is."""
    loops = [loop for loop in innermost_loops(nest) if _may_sum(loop)]
    scop = read_scop(nest) if loops else None
    terms = 0
    for loop in loops:
        assert scop is not None
        (own,) = scop.loops_of(loop)
        links_of_sums = _links(own, scop)
        longest = longest_of(own, scop) if links_of_sums else 0
        if not any(_fills_a_vector(longest, op.results[0].type) for op in links_of_sums):
            continue
        tell(loop, NAME, f"sums over {loop_name(loop)} are added up in parts, as vectors")
        for op in links_of_sums:
            _allow(op)
        terms = max(terms, terms_on_one(own, scop, longest))
    return terms


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


def _fills_a_vector(terms: int, kind: ir.Type) -> bool:
    """With fewer, each sum would take the way around the vectors, and be longer for that."""
    return terms >= this_cpu().lanes(itemsize_of(kind))


def _may_sum(loop: ir.Operation) -> bool:
    return any(op.name in LINKS for op in operations_in(loop))


def _links(own: Loop, scop: Scop) -> list[ir.Operation]:
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


def _allow(op: ir.Operation) -> None:
    both = ir.Attribute.parse("#arith.fastmath<reassoc,contract>")
    if op.name != "math.fma":
        op.attributes["fastmath"] = both
        return
    a, b, old = op.operands
    with ir.InsertionPoint(op), op.location:
        product = arith.mulf(a, b, fastmath=ir.Attribute.parse("#arith.fastmath<contract>"))
        total = arith.addf(old, product, fastmath=both)
    op.results[0].replace_all_uses_with(total)
    op.erase()


def longest_of(loop: Loop, scop: Scop) -> int:
    """Of one execution of `loop`, whatever the loops around are at."""
    step = abs(loop.step or 1)
    return max(most_iterations(s.domain, s.loops.index(loop), step) for s in scop.within(loop))

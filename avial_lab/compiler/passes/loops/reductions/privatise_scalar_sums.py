"""Sums of many terms for all threads: parts of the terms are added up by themselves, and those at
the end; likewise the least and the greatest of many.

Functions of loops -> the same sums, with their terms in an order that only their number says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.compiler.analysis.parallelism.marked_loops import columns_of, ends_of, nearest_loops
from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.parallelism.sums import LINKS, longest_of, terms_on_one
from avial_lab.compiler.analysis.polyhedral.dependences import Dependence, carried_among
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, ReductionKind, Scop
from avial_lab.compiler.analysis.polyhedral.trip_counts import FAR
from avial_lab.compiler.analysis.polyhedral.updates import Combination, combination
from avial_lab.compiler.codegen.loops.chunks import (
    CHOSEN,
    PARTS,
    LoopParts,
    cut_in,
    nothing,
    together,
)
from avial_lab.compiler.codegen.loops.promotion import Group, fixed_in, independent_groups, promote
from avial_lab.compiler.ir.attributes import DECLARED, ORDERED, PARALLEL
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import end_of, inits_of
from avial_lab.compiler.ir.operations import attributes_of, itemsize_of, loops_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.ir.views import DYNAMIC
from avial_lab.machine.constants import LINE_BYTES, TERMS_WHILE_THREADS_MEET

NAME = "privatise-scalar-sums"

LEAST = TERMS_WHILE_THREADS_MEET
"""Terms of a part: a few microseconds, as threads take to meet; of a sum whose terms are counted
when the program runs, all its parts have so many.
"""

UNKNOWN = 1 << 8
"""Terms of a row of which nobody knows how many it has."""

FEW = 8
"""Parts that do not keep all threads busy to the end: loops inside may have more."""

NUMBERS = (ir.FloatType, ir.IntegerType, ir.IndexType)
"""What is added up: no vectors."""


BY_OPERATION = tuple(
    f"arith.{name}" for name in ("minimumf", "maximumf", "minsi", "maxsi", "minui", "maxui")
)
"""Others that are exact in any order. (Of zeros, `minnumf` and `maxnumf` may take either.)"""


@dataclass(frozen=True)
class PrivatiseScalarSums:
    """Cut a loop whose iterations are in order for sums only into parts with sums of their own.

    before:  %s = affine.for %i = 0 to 4000000 iter_args(%a = %x) { … %a + A[%i] … }
    after:   affine.for %from = 0 to 4000000 step 125000 {
               part[%from / 125000] = affine.for %i = %from to %from + 125000
                                        iter_args(%a = -0.0) { … %a + A[%i] … }
             } {avial.parallel}
             %s = affine.for %from = 0 to 4000000 step 125000 iter_args(%a = %x) {
               … %a + part[%from / 125000] … }

    Loops inside it may do most of the adding, and it may store what is of its own iterations alone.
    Parts that look for the least or the greatest all begin with what the loop began with. It may
    stand in loops whose iterations are in order. A strict module stays as it is.
    """

    def __call__(self, module: ir.Operation) -> None:
        cut_in(module, _in_parts)

    def __str__(self) -> str:
        return NAME


def _in_parts(nest: ir.Operation) -> int:
    """How many terms the sums have that are rounded in another order now; 0 where none is."""
    if not any(_may_be_cut(loop, loop == nest) for loop in (nest, *loops_in(nest))):
        return 0
    # All of them first: a scop tells of loops that are still there.
    found = _found(nest, read_scop(nest))
    for each in found:
        _cut(each)
    return max((each.terms for each in found), default=0)


# -- which ones ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sums:
    """A loop that combines all that keeps it in order, `groups` of it in memory.

    `terms` of them are rounded in another order by parts of `size` iterations; `few` are those that
    are so few parts that loops inside may have more.
    """

    loop: ir.Operation
    groups: Sequence[Group]
    size: int
    terms: int
    few: bool


def _may_be_cut(loop: ir.Operation, outermost: bool) -> bool:
    """Whether it is a long one of single steps that no pass has marked, and combines something."""
    ends = ends_of(loop)
    if ends is None or ORDERED in loop.attributes or PARALLEL in loop.attributes:
        return False
    low, high = ends
    # Inside of others, one whose end is only known when it runs is often short.
    is_long = outermost if high is None else (high - low) * _terms_in(loop, UNKNOWN) >= 2 * LEAST
    by_one = ir.IntegerAttr(loop.attributes["step"]).value == 1
    return is_long and by_one and (len(loop.results) > 0 or bool(_groups(loop)))


def _terms_in(loop: ir.Operation, unknown: int) -> int:
    """Of one iteration: those of loops inside, each of so many iterations where nobody knows."""
    terms = 1
    for inner in nearest_loops(loop):
        low, high = ends_of(inner) or (0, None)
        count = unknown if high is None else max(high - low, 1)
        terms = max(terms, count * _terms_in(inner, unknown))
    return min(terms, FAR)


def _groups(loop: ir.Operation) -> list[Group]:
    """Elements that all iterations load, combine with something and store."""
    return [
        group
        for group in fixed_in(loop)
        if group[0].name in LOADS and group[-1].name in STORES and _of_group(group) is not None
    ]


def _of_group(group: Group) -> Combination | None:
    return _combination(group[0].results[0], group[-1].operands[0])


def _handed_on(loop: ir.Operation) -> list[Combination | None]:
    """How each value that it hands on is made of the one before."""
    before = list(loop.regions[0].blocks[0].arguments)[1:]
    return list(map(_combination, before, end_of(loop).operands))


def _combination(old: ir.Value, new: ir.Value) -> Combination | None:
    """How the one is made of the other, if parts can be."""
    found = combination(old, new) if isinstance(old.type, NUMBERS) else None
    if found is None or found.kind is ReductionKind.SUM:
        return found
    return found if found.op in (*CHOSEN, *BY_OPERATION) else None


def _found(loop: ir.Operation, scop: Scop) -> list[_Sums]:
    """The loops to be cut in `loop`, itself included, none in another."""
    carried = [d for own in scop.loops_of(loop) for d in carried_among(own, scop.statements)]
    if not carried or loop.name in DECLARED:
        return []  # threads take it as it is
    whole = _sums_of(loop, scop, carried)
    if whole is not None and not whole.few:
        return [whole]
    inside: list[_Sums] = []
    if not columns_of(loop, scop):
        inside = [each for inner in nearest_loops(loop) for each in _found(inner, scop)]
    return inside or ([whole] if whole is not None else [])


def _sums_of(loop: ir.Operation, scop: Scop, carried: Sequence[Dependence]) -> _Sums | None:
    """`loop`, if all that keeps its iterations in order is combined in any order."""
    if loop.name != "affine.for" or not _may_be_cut(loop, loop == scop.op):
        return None
    (own,) = scop.loops_of(loop)
    found = reductions(own, scop, carried)
    if forbidding(own, scop, carried) or any(each.payloads for each in found):
        return None
    groups = independent_groups(scop, loop, _groups(loop))
    together = [op for group in groups for op in group]
    stored = {each.array for each in found if each.array.kind is ArrayKind.MEMORY}
    touching = [s.op for s in scop.within(own) if any(a.array in stored for a in s.accesses)]
    combined = [*_handed_on(loop), *map(_of_group, groups)]
    if any(op not in together for op in touching) or None in combined:
        return None
    low, high = ends_of(loop) or (0, None)
    size = -(-LEAST // _terms_in(loop, UNKNOWN))
    if high is not None:
        size = max(size, -(-(high - low) // PARTS))
        if high - low < 2 * size:
            return None
    terms = 0
    if any(each is not None and each.op in LINKS for each in combined):
        terms = longest_of(own, scop) if high is None else high - low
        terms = min(terms_on_one(own, scop, terms) * _terms_in(loop, FAR), FAR)
    few = high is not None and high - low < FEW * size
    return _Sums(loop, groups, size, terms, few)


# -- what becomes of them --------------------------------------------------------------------------


def _cut(sums: _Sums) -> None:
    loop = promote(sums.loop, sums.groups)[0] if sums.groups else sums.loop
    combined = [each for each in _handed_on(loop) if each is not None]
    kinds = listed(dict.fromkeys(each.kind.value for each in combined))
    remark = f"{kinds} over {loop_name(loop)}: parts of {sums.size:,} iterations, then combined"
    add_remark(loop, NAME, remark)
    low, high = ends_of(loop) or (0, None)
    with loop.location, ir.InsertionPoint(loop):
        _write(LoopParts(loop, low, high, sums.size), combined)


def _write(parts: LoopParts, combined: Sequence[Combination]) -> None:
    """The parts of the loop and what they come to, in place of it."""
    loop = parts.loop
    sums = [_sums_for(result.type, parts.count()) for result in loop.results]
    firsts = [
        nothing(init.type) if how.kind is ReductionKind.SUM else init
        for how, init in zip(combined, inits_of(loop), strict=True)
    ]
    with parts.over() as start:
        made = parts.moved(start, firsts)
        for value, each in zip(made.results, sums, strict=True):
            _access(parts, "affine.store", [], [value, each, start])
    start.owner.owner.attributes[PARALLEL] = ir.UnitAttr.get()
    total = _total(parts, sums, combined)
    for result, value in zip(loop.results, total.results, strict=True):
        result.replace_all_uses_with(value)
    for each in sums:
        memref.DeallocOp(each)
    loop.erase()


def _sums_for(kind: ir.Type, count: int | ir.Value) -> ir.Value:
    """Memory for one of every part."""
    known = isinstance(count, int)
    # A line from one part's sum to the next: none is written by two threads.
    shape = [count if known else DYNAMIC, LINE_BYTES // itemsize_of(kind)]
    line = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES)
    return memref.alloc(
        ir.MemRefType.get(shape, kind), [] if known else [count], [], alignment=line
    )


def _access(
    parts: LoopParts, name: str, results: list[ir.Type], operands: list[ir.Value]
) -> ir.Operation:
    """Of the sum of the part that starts with the last of `operands`."""
    place = ir.AffineMap.get(1, 0, [parts.number, ir.AffineConstantExpr.get(0)])
    return ir.Operation.create(name, results, operands, {"map": ir.AffineMapAttr.get(place)})


def _total(
    parts: LoopParts, sums: Sequence[ir.Value], combined: Sequence[Combination]
) -> ir.Operation:
    """What the loop began with and the sums of all parts, in their order."""
    loop = parts.loop
    step = ir.IntegerAttr.get(ir.IndexType.get(), parts.size)
    kinds = [result.type for result in loop.results]
    made = ir.Operation.create(
        "affine.for", kinds, list(loop.operands), attributes_of(loop) | {"step": step}, regions=1
    )
    places = [ir.Location.name("part", loop.location), *([loop.location] * len(kinds))]
    block = made.regions[0].blocks.append(ir.IndexType.get(), *kinds, arg_locs=places)
    start, *totals = block.arguments
    with ir.InsertionPoint(block):
        affine.AffineYieldOp(
            [
                together(
                    how, total, _access(parts, "affine.load", [total.type], [each, start]).result
                )
                for how, total, each in zip(combined, totals, sums, strict=True)
            ]
        )
    return made

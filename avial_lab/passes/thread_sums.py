"""Sums of many terms for all threads: parts of the terms are added up by themselves, and those at
the end.

Functions of loops -> the same sums, with their terms in an order that only their number says.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.accesses.views import DYNAMIC
from avial_lab.passes.jam_rows import ends_of
from avial_lab.passes.loop_parts import PARTS, LoopParts, added, cut_in, nothing
from avial_lab.passes.mark_parallel import ORDERED, PARALLEL
from avial_lab.passes.notes import loop_name, tell
from avial_lab.passes.operations import attributes_of, itemsize_of
from avial_lab.passes.reorder_sums import longest_of
from avial_lab.polyhedra import ArrayKind, Loop, Scop, read_scop
from avial_lab.polyhedra.dependences import carried_among
from avial_lab.polyhedra.model import ReductionKind
from avial_lab.polyhedra.nesting import body_of
from avial_lab.polyhedra.reductions import forbidding, reductions

NAME = "thread-sums"

LEAST = 1 << 14
"""Terms of a part: a few microseconds, as threads take to meet; of a sum whose terms are counted
when the program runs, all its parts have so many.
"""

NUMBERS = (ir.FloatType, ir.IntegerType, ir.IndexType)
"""What is added up: no vectors."""

LINE = 64
"""Bytes from one part's sum to the next, so that no line of the cache is written by two threads."""


@dataclass(frozen=True)
class ThreadSums:
    """Cut a loop that hands sums on, and else nothing, into parts with sums of their own.

    before:  %s = affine.for %i = 0 to 4000000 iter_args(%a = %x) { … %a + A[%i] … }
    after:   affine.for %from = 0 to 4000000 step 125000 {
               part[%from / 125000] = affine.for %i = %from to %from + 125000
                                        iter_args(%a = -0.0) { … %a + A[%i] … }
             } {avial.parallel}
             %s = affine.for %from = 0 to 4000000 step 125000 iter_args(%a = %x) {
               … %a + part[%from / 125000] … }

    A strict module stays as it is.
    """

    def __call__(self, module: ir.Operation) -> None:
        cut_in(module, _in_parts)

    def __str__(self) -> str:
        return NAME


def _in_parts(loop: ir.Operation) -> int:
    """How many terms the sums have that are added up in parts now; 0 where nothing is."""
    ends = ends_of(loop) if _is_plain(loop) else None
    if ends is None:
        return 0
    low, high = ends
    size = LEAST if high is None else max(LEAST, -(-(high - low) // PARTS))
    if high is not None and high - low < 2 * size:
        return 0
    scop = read_scop(loop)
    (own,) = scop.loops_of(loop)
    if not _hands_sums_on(own, scop):
        return 0
    told = f"sums over {loop_name(loop)} in parts of {size:,} terms, then of those"
    tell(loop, NAME, told)
    with loop.location, ir.InsertionPoint(loop):
        _write(LoopParts(loop, low, high, size))
    return longest_of(own, scop) if high is None else high - low


def _is_plain(loop: ir.Operation) -> bool:
    """Whether it is an innermost one that hands something on, and that no pass has marked."""
    if loop.name != "affine.for" or not len(loop.results):
        return False
    marked = PARALLEL in loop.attributes or ORDERED in loop.attributes
    step = ir.IntegerAttr(loop.attributes["step"]).value
    return not marked and step == 1 and not any(len(op.regions) for op in body_of(loop))


def _hands_sums_on(own: Loop, scop: Scop) -> bool:
    """Whether each value that it hands on is a sum, and nothing else keeps it in order."""
    carried = carried_among(own, scop.statements)
    found = reductions(own, scop, carried)
    sums = {
        each.array
        for each in found
        if each.kind is ReductionKind.SUM and each.array.kind is ArrayKind.VALUE
    }
    numbers = all(isinstance(result.type, NUMBERS) for result in own.op.results)
    alone = numbers and len(found) == len(sums) == len(own.op.results)
    return alone and not forbidding(own, scop, carried)


def _write(parts: LoopParts) -> None:
    """The parts of the loop and what they come to, in place of it."""
    loop = parts.loop
    sums = [_sums_for(result.type, parts.count()) for result in loop.results]
    with parts.over() as start:
        made = parts.moved(start, [nothing(result.type) for result in loop.results])
        for value, each in zip(made.results, sums, strict=True):
            _access(parts, "affine.store", [], [value, each, start])
    start.owner.owner.attributes[PARALLEL] = ir.UnitAttr.get()
    total = _total(parts, sums)
    for result, value in zip(loop.results, total.results, strict=True):
        result.replace_all_uses_with(value)
    for each in sums:
        memref.DeallocOp(each)
    loop.erase()


def _sums_for(kind: ir.Type, count: int | ir.Value) -> ir.Value:
    """Memory for one of every part."""
    known = isinstance(count, int)
    shape = [count if known else DYNAMIC, LINE // itemsize_of(kind)]
    line = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE)
    return memref.alloc(
        ir.MemRefType.get(shape, kind), [] if known else [count], [], alignment=line
    )


def _access(
    parts: LoopParts, name: str, results: list[ir.Type], operands: list[ir.Value]
) -> ir.Operation:
    """Of the sum of the part that starts with the last of `operands`."""
    place = ir.AffineMap.get(1, 0, [parts.number, ir.AffineConstantExpr.get(0)])
    return ir.Operation.create(name, results, operands, {"map": ir.AffineMapAttr.get(place)})


def _total(parts: LoopParts, sums: list[ir.Value]) -> ir.Operation:
    """What the loop began with and the sums of all parts, in their order."""
    loop = parts.loop
    step = ir.IntegerAttr.get(ir.IndexType.get(), parts.size)
    kinds = [result.type for result in loop.results]
    made = ir.Operation.create(
        "affine.for", kinds, list(loop.operands), attributes_of(loop) | {"step": step}, regions=1
    )
    carried = [ir.IndexType.get(), *kinds]
    block = made.regions[0].blocks.append(*carried, arg_locs=[loop.location] * len(carried))
    start, *totals = block.arguments
    with ir.InsertionPoint(block):
        affine.AffineYieldOp(
            [
                added(total, _access(parts, "affine.load", [total.type], [each, start]).result)
                for total, each in zip(totals, sums, strict=True)
            ]
        )
    return made

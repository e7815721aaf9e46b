"""Sums of many terms for all threads: parts of the terms are added up by themselves, and those at
the end.

Functions of loops -> the same sums, with their terms in an order that only their number says.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith, memref

from avial_lab.accesses.views import DYNAMIC
from avial_lab.dialects.program import is_strict
from avial_lab.passes.arrays_apart import arrays_apart
from avial_lab.passes.index_code import minus, pieces, plus
from avial_lab.passes.jam_rows import BOUNDS, ends_of
from avial_lab.passes.mark_parallel import ORDERED, PARALLEL, free_nests
from avial_lab.passes.notes import loop_name, tell
from avial_lab.passes.operations import attributes_of, functions_in, itemsize_of
from avial_lab.passes.partial_sums import PARTS, Inside, loop_like
from avial_lab.passes.phases import OF_TASK
from avial_lab.passes.reorder_sums import longest_of, note_terms
from avial_lab.polyhedra import ArrayKind, Loop, Scop, read_scop
from avial_lab.polyhedra.dependences import carried_among
from avial_lab.polyhedra.model import ReductionKind
from avial_lab.polyhedra.nesting import body_of, end_of, inits_of
from avial_lab.polyhedra.reductions import forbidding, reductions

NAME = "thread-sums"

LEAST = 1 << 14
"""Terms of a part: a few microseconds, as threads take to meet; of a sum whose terms are counted
when the program runs, all its parts have so many.
"""

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
        if is_strict(module):
            return
        with module.context:
            for function in [op for op in functions_in(module) if OF_TASK in op.attributes]:
                if arrays_apart(function):
                    terms = max(map(_in_parts, list(free_nests(function))), default=0)
                    note_terms(function, terms)

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
        _Parts(loop, low, high, size).write()
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
    alone = len(found) == len(sums) == len(own.op.results)
    return alone and not forbidding(own, scop, carried)


@dataclass(frozen=True)
class _Parts:
    """Writes the parts of `loop`, each of `size` iterations, and takes it away.

    Where a rank runs some of the iterations only, its first part starts anywhere: with `low` and
    `size` the parts still have numbers of their own, below a count that follows from `high`.
    """

    loop: ir.Operation
    low: int
    high: int | None
    size: int

    def write(self) -> None:
        sums = [self._sums_for(result.type) for result in self.loop.results]
        over = loop_like(self.loop, self.size)
        with Inside(over, ir.Location.name("from", self.loop.location)) as start:
            for value, each in zip(self._part(start).results, sums, strict=True):
                self._access("affine.store", [], [value, each, start])
        over.attributes[PARALLEL] = ir.UnitAttr.get()
        total = self._total(sums)
        for result, value in zip(self.loop.results, total.results, strict=True):
            result.replace_all_uses_with(value)
        for each in sums:
            memref.DeallocOp(each)
        self.loop.erase()

    def _sums_for(self, kind: ir.Type) -> ir.Value:
        """Memory for one of every part."""
        apart = LINE // itemsize_of(kind)
        line = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE)
        count = self._count()
        if isinstance(count, int):
            return memref.alloc(ir.MemRefType.get([count, apart], kind), [], [], alignment=line)
        shape = ir.MemRefType.get([DYNAMIC, apart], kind)
        return memref.alloc(shape, [count], [], alignment=line)

    def _count(self) -> int | ir.Value:
        """How many parts there are at most, one for a first that starts in the middle."""
        if self.high is not None:
            return -(-(self.high - self.low) // self.size) + 1
        lows, highs, _ = self._segments
        end = affine.AffineMinOp(
            self.loop.attributes[BOUNDS[1]], list(self.loop.operands)[lows : lows + highs]
        )
        return plus(pieces(minus(end.result, self.low), self.size), 1)

    @property
    def _segments(self) -> tuple[int, int, int]:
        lows, highs, inits = ir.DenseI32ArrayAttr(self.loop.attributes["operandSegmentSizes"])
        return lows, highs, inits

    def _access(self, name: str, results: list[ir.Type], operands: list[ir.Value]) -> ir.Operation:
        """Of the sum of the part that starts with the last of `operands`."""
        number = ir.AffineExpr.get_floor_div(ir.AffineDimExpr.get(0) - self.low, self.size)
        place = ir.AffineMap.get(1, 0, [number, ir.AffineConstantExpr.get(0)])
        return ir.Operation.create(name, results, operands, {"map": ir.AffineMapAttr.get(place)})

    def _part(self, start: ir.Value) -> ir.Operation:
        """The iterations from `start` on, their sums from nothing on."""
        lows, highs, _ = self._segments
        ends = list(self.loop.operands)[lows : lows + highs]
        upper = ir.AffineMapAttr(self.loop.attributes["upperBoundMap"]).value
        dims = upper.n_dims
        made = affine.AffineForOp(
            ir.AffineMap.get_identity(1),
            ir.AffineMap.get(
                dims + 1,
                upper.n_symbols,
                [*upper.results, ir.AffineDimExpr.get(dims) + self.size],
            ),
            1,
            iter_args=[_nothing(result.type) for result in self.loop.results],
            lower_bound_operands=[start],
            upper_bound_operands=[*ends[:dims], start, *ends[dims:]],
        ).operation
        block = made.regions[0].blocks[0]
        own = self.loop.regions[0].blocks[0].arguments
        for argument, before in zip(block.arguments, own, strict=True):
            argument.set_location(before.location)
            before.replace_all_uses_with(argument)
        with ir.InsertionPoint(block):
            end = affine.AffineYieldOp(list(end_of(self.loop).operands))
        for op in body_of(self.loop):
            op.move_before(end.operation)
        return made

    def _total(self, sums: list[ir.Value]) -> ir.Operation:
        """What the loop began with and the sums of all parts, in their order."""
        inits = inits_of(self.loop)
        lows, highs, _ = self._segments
        step = ir.IntegerAttr.get(ir.IndexType.get(), self.size)
        made = ir.Operation.create(
            "affine.for",
            [value.type for value in inits],
            [*list(self.loop.operands)[: lows + highs], *inits],
            attributes_of(self.loop) | {"step": step},
            regions=1,
        )
        kinds = [ir.IndexType.get(), *(value.type for value in inits)]
        block = made.regions[0].blocks.append(*kinds, arg_locs=[self.loop.location] * len(kinds))
        start, *totals = block.arguments
        with ir.InsertionPoint(block):
            found: list[ir.Value] = []
            for total, each in zip(totals, sums, strict=True):
                part = self._access("affine.load", [total.type], [each, start]).result
                add = arith.addf if isinstance(total.type, ir.FloatType) else arith.addi
                found.append(add(total, part))
            affine.AffineYieldOp(found)
        return made


def _nothing(kind: ir.Type) -> ir.Value:
    """What changes no bit of what it is added to."""
    return arith.constant(kind, -0.0 if isinstance(kind, ir.FloatType) else 0)

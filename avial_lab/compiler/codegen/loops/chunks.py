"""A loop in parts of so many iterations each, which may run at the same time.

A loop and where its values lie -> a loop over the parts, and for each of them one over its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith

from avial_lab.compiler.analysis.accesses.no_alias import functions_of_tasks, has_no_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import BOUNDS, free_nests
from avial_lab.compiler.analysis.polyhedral.scop import ReductionKind
from avial_lab.compiler.analysis.polyhedral.updates import Combination
from avial_lab.compiler.codegen.loops.index_arithmetic import minus, pieces, plus
from avial_lab.compiler.ir.attributes import INDEPENDENT
from avial_lab.compiler.ir.nesting import body_of, end_of
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.ir.remarks import note_terms

PARTS = 32
"""Enough for any number of threads that memory can feed."""

CHOSEN = {
    "avial.argmin": arith.CmpFPredicate.OLT,
    "avial.argmax": arith.CmpFPredicate.OGT,
}
"""What a comparison and a choice take: the first of equals, and no NaN."""


def cut_in(module: ir.Operation, in_parts: Callable[[ir.Operation], int]) -> None:
    """Let `in_parts` cut the nests of all tasks without aliases; it says how many terms are
    in another order then. A strict module stays as it is.
    """
    if is_strict(module):
        return
    with module.context:
        for function in functions_of_tasks(module):
            if has_no_aliases(function):
                terms = max(map(in_parts, list(free_nests(function))), default=0)
                note_terms(function, terms)


@dataclass(frozen=True)
class LoopParts:
    """Parts of `loop`, each of `size` iterations, but for the first and the last.

    Where a rank runs some of the iterations only, its first part starts anywhere: with `low` and
    `size` the parts still have numbers of their own, below a count that follows from `high`.
    """

    loop: ir.Operation
    low: int
    high: int | None
    size: int

    def count(self) -> int | ir.Value:
        """How many parts there are at most, one for a first that starts in the middle."""
        if self.high is not None:
            return -(-(self.high - self.low) // self.size) + 1
        end = affine.AffineMinOp(self.loop.attributes[BOUNDS[1]], self._ends[1])
        return plus(pieces(minus(end.result, self.low), self.size), 1)

    def over(self) -> LoopBody:
        """A loop over the first iterations of the parts."""
        made = loop_like(self.loop, self.size)
        return LoopBody(made, ir.Location.name("part", self.loop.location))

    @property
    def number(self) -> ir.AffineExpr:
        """Of the part that starts with the first dimension."""
        return ir.AffineExpr.get_floor_div(ir.AffineDimExpr.get(0) - self.low, self.size)

    def moved(self, start: ir.Value, inits: Sequence[ir.Value] = ()) -> ir.Operation:
        """The iterations of the part that begins with `start`, with the body of the loop itself."""
        _, ends = self._ends
        upper = ir.AffineMapAttr(self.loop.attributes["upperBoundMap"]).value
        dims = upper.n_dims
        limits = [*upper.results, ir.AffineDimExpr.get(dims) + self.size]
        made = affine.AffineForOp(
            ir.AffineMap.get_identity(1),
            ir.AffineMap.get(dims + 1, upper.n_symbols, limits),
            1,
            iter_args=list(inits),
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

    @property
    def _ends(self) -> tuple[list[ir.Value], list[ir.Value]]:
        """What the loop's bounds are computed from, below and above."""
        lows, highs, _ = ir.DenseI32ArrayAttr(self.loop.attributes["operandSegmentSizes"])
        bounds = list(self.loop.operands)
        return bounds[:lows], bounds[lows : lows + highs]


@dataclass
class LoopBody:
    """The body of an empty loop, as a place to write to; gives its variable."""

    loop: ir.Operation
    location: ir.Location

    def __enter__(self) -> ir.Value:
        block = self.loop.regions[0].blocks[0]
        block.arguments[0].set_location(self.location)
        with ir.InsertionPoint(block):
            end = ir.Operation.create("affine.yield")
        self.point = ir.InsertionPoint(end)
        self.point.__enter__()
        return block.arguments[0]

    def __exit__(self, *error: object) -> None:
        self.point.__exit__(*error)


def loop_like(loop: ir.Operation, step: int) -> ir.Operation:
    """A loop with the same bounds, that hands nothing on; its body is still empty."""
    lows, highs, _ = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])
    attributes = {name: loop.attributes[name] for name in BOUNDS} | {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([lows, highs, 0]),
        "step": ir.IntegerAttr.get(ir.IndexType.get(), step),
    }
    if INDEPENDENT in loop.attributes:
        attributes[INDEPENDENT] = loop.attributes[INDEPENDENT]
    bounds = list(loop.operands)[: lows + highs]
    made = ir.Operation.create("affine.for", operands=bounds, attributes=attributes, regions=1)
    made.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[loop.location])
    return made


def nothing(kind: ir.Type) -> ir.Value:
    """What changes no bit of what it is added to."""
    return arith.constant(kind, -0.0 if isinstance(kind, ir.FloatType) else 0)


def added(value: ir.Value, other: ir.Value) -> ir.Value:
    kind = value.type
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    add = arith.addf if isinstance(element, ir.FloatType) else arith.addi
    return add(value, other)


def together(how: Combination, total: ir.Value, part: ir.Value) -> ir.Value:
    """The total so far and that of the next part."""
    if how.kind is ReductionKind.SUM:
        return added(total, part)
    if how.op in CHOSEN:
        return arith.select(arith.cmpf(CHOSEN[how.op], part, total), part, total)
    return ir.Operation.create(how.op, [total.type], [total, part]).result

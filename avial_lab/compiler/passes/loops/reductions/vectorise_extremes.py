"""The least and the greatest over an innermost loop, which vectors look for.

Functions of loops in their last order -> the same values, each lane of some vectors with one of its
own, which are compared at the end.

`x > m ? x : m` takes no NaN, and of equals the first: of zeros with different signs, too. So it has
an order, in which each iteration waits for the one before, and LLVM keeps it. But only where a zero
is the greatest does that order matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from mlir import ir
from mlir.dialects import arith, scf, vector

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import ends_of, innermost_loops
from avial_lab.compiler.analysis.parallelism.reductions import forbidding
from avial_lab.compiler.analysis.parallelism.sums import LINKS
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ReductionKind
from avial_lab.compiler.analysis.polyhedral.updates import Combination, combination, links
from avial_lab.compiler.codegen.contractions.contraction import spread
from avial_lab.compiler.codegen.loops.chunks import CHOSEN, nothing, together
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    divided,
    minus,
    most,
    number,
    plus,
    times,
)
from avial_lab.compiler.codegen.vectors.row_vectors import RowCode, put_constants_before
from avial_lab.compiler.ir.attributes import ROLLED
from avial_lab.compiler.ir.loop_bounds import bounds_of
from avial_lab.compiler.ir.nesting import end_of, inits_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.remarks import add_remark, loop_name
from avial_lab.machine.cpu import this_cpu

NAME = "vectorise-extremes"

AT_ONCE = 4
"""Vectors whose comparisons need not wait for one another, as many as take some cycles."""

FEWEST = 4
"""Vectors in a row that is worth it."""

EXTREMES = (*CHOSEN, "arith.minnumf", "arith.maxnumf", "arith.minimumf", "arith.maximumf")

EXACT = ("arith.minimumf", "arith.maximumf")
"""Those that are the same in any order."""


@dataclass(frozen=True)
class VectoriseExtremes:
    """Look for the least or the greatest in vectors, and again one by one where that tells.

    before:  %m = affine.for %i iter_args(%a = %x) { … select (A[%i] > %a), A[%i], %a }
    after:   %v = scf.for %i step 32 iter_args(four vectors of %x) { … }, of all lanes the greatest,
             and what is left over one by one
             %m = scf.if (%v is NaN or zero) { the loop as it was } else { %v }

    Only where the rest of the loop may run in vectors, and twice: it stores to no array that it
    loads from.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for loop in innermost_loops(function):
                    found = _extremes_of(loop)
                    if found is not None:
                        add_remark(
                            loop, NAME, f"minima and maxima over {loop_name(loop)} vectorised"
                        )
                        found.write()

    def __str__(self) -> str:
        return NAME


# -- which ones ------------------------------------------------------------------------------------


def _extremes_of(loop: ir.Operation) -> _Extremes | None:
    if loop.name != "affine.for" or ir.IntegerAttr(loop.attributes["step"]).value != 1:
        return None
    handed_on = list(
        zip(loop.regions[0].blocks[0].arguments[1:], end_of(loop).operands, strict=True)
    )
    combined = [_combination(old, new) for old, new in handed_on]
    known = [how for how in combined if how is not None]
    if len(known) < len(combined) or not any(how.op in EXTREMES for how in known):
        return None
    lanes = this_cpu().lanes(itemsize_of(loop.results[0].type))
    low, high = ends_of(loop) or (0, None)
    if lanes < 2 or (high is not None and high - low < FEWEST * lanes):
        return None
    put_constants_before(loop)
    code = RowCode(loop, lanes)
    may_run_twice = code.is_known(kind=loop.results[0].type) and code.stays_as_read()
    return _Extremes(code, known) if may_run_twice and _is_free(loop) else None


def _combination(old: ir.Value, new: ir.Value) -> Combination | None:
    """How the one is made of the other, if vectors may do that."""
    found = combination(old, new) if isinstance(old.type, ir.FloatType) else None
    if found is not None and found.kind is ReductionKind.SUM:
        return found if all(map(_is_any_order, links(old, new))) else None
    return found if found is not None and found.op in EXTREMES else None


def _is_any_order(op: ir.Operation) -> bool:
    """Whether `reassociate-sums` has allowed that for a sum."""
    return op.name in LINKS and "reassoc" in str(op.attributes.get("fastmath", ""))


def _is_free(loop: ir.Operation) -> bool:
    """Whether nothing but what it combines keeps its iterations in order."""
    scop = read_scop(loop)
    (own,) = scop.loops_of(loop)
    return not forbidding(own, scop, carried_among(own, scop.statements))


# -- what becomes of them --------------------------------------------------------------------------

Values = Sequence[ir.Value]
"""One for each that the loop hands on."""


@dataclass(frozen=True)
class _Extremes:
    """A row, and how it combines what it hands on."""

    code: RowCode
    combined: Sequence[Combination]

    def write(self) -> None:
        """Vectors, and the loop as it was where they do not tell."""
        loop = self.code.loop
        with loop.location, ir.InsertionPoint(loop):
            found = self._found()
            asked = [
                arith.cmpf(arith.CmpFPredicate.UEQ, value, nothing(value.type))
                for value, how in zip(found, self.combined, strict=True)
                if how.op in EXTREMES and how.op not in EXACT
            ]
            again = reduce(arith.ori, asked) if asked else None
        if again is None:
            for old, new in zip(loop.results, found, strict=True):
                old.replace_all_uses_with(new)
            loop.erase()
        else:
            _put_under(again, loop, found)

    def _found(self) -> Values:
        """What the loop hands on in the end."""
        code, first = self.code, inits_of(self.code.loop)
        low, high, _ = map(number, bounds_of(code.loop, 0))
        count = most(minus(high, low), 0)
        vectors = max(AT_ONCE // len(first), 1)
        middle, end = (
            plus(low, times(divided(count, size), size))
            for size in (vectors * code.lanes, code.lanes)
        )
        starts = [
            nothing(init.type) if how.kind is ReductionKind.SUM else init
            for how, init in zip(self.combined, first, strict=True)
        ]
        around = code.around()
        wide = [spread(value, code.lanes) for value in starts]
        many = _over(low, middle, code, around, [wide] * vectors)
        (each,) = _over(middle, end, code, around, [reduce(self._together, many)])
        lanes = list(map(_of_lanes, self.combined, each))
        total = [
            together(how, init, value) if how.kind is ReductionKind.SUM else value
            for how, init, value in zip(self.combined, first, lanes, strict=True)
        ]
        one = replace(code, lanes=1)
        narrow = [spread(value, 1) for value in total]
        (rest,) = _over(end, high, one, one.around(), [narrow])
        return [_lane(value, 0) for value in rest]

    def _together(self, some: Values, others: Values) -> Values:
        return list(map(together, self.combined, some, others))


def _over(
    low: ir.Value,
    high: ir.Value,
    code: RowCode,
    around: Mapping[ir.Value, ir.Value],
    starts: Sequence[Values],
) -> list[Values]:
    """A loop from vector to vector of the row, each time as many as there are in `starts`; what
    they hand on.
    """
    count = len(starts[0])
    flat = [value for each in starts for value in each]
    made = scf.ForOp(low, high, number(code.lanes * len(starts)), flat)
    made.operation.attributes[ROLLED] = ir.UnitAttr.get()
    before = list(code.loop.regions[0].blocks[0].arguments)[1:]
    after = list(end_of(code.loop).operands)
    with ir.InsertionPoint(made.body):
        column = made.induction_variable
        column.set_location(code.variable.location)
        handed_on: list[ir.Value] = []
        for k in range(len(starts)):
            carried = list(made.inner_iter_args)[k * count : (k + 1) * count]
            known = {**around, **dict(zip(before, carried, strict=True))}
            values = code.computed(plus(column, k * code.lanes), known, storing=True)
            handed_on += [values[each] for each in after]
        scf.YieldOp(handed_on)
    results = list(made.results)
    return [results[k * count : (k + 1) * count] for k in range(len(starts))]


def _of_lanes(how: Combination, value: ir.Value) -> ir.Value:
    """What its lanes are together: those of one half with those of the other, and again."""
    kind = ir.VectorType(value.type)
    half = kind.shape[0] // 2
    if not half:
        return _lane(value, 0)
    halves = [_slice(value, start, half) for start in (0, half)]
    return _of_lanes(how, together(how, *halves))


def _slice(value: ir.Value, start: int, lanes: int) -> ir.Value:
    kind = ir.VectorType.get([lanes], ir.VectorType(value.type).element_type)
    return vector.ExtractStridedSliceOp(kind, value, [start], [lanes], [1]).result


def _lane(value: ir.Value, lane: int) -> ir.Value:
    place = {"static_position": ir.DenseI64ArrayAttr.get([lane])}
    kind = ir.VectorType(value.type).element_type
    return ir.Operation.create("vector.extract", [kind], [value], place).result


def _put_under(condition: ir.Value, loop: ir.Operation, otherwise: Values) -> None:
    """Let the loop run only where that holds, and else be what is known."""
    with loop.location, ir.InsertionPoint(loop):
        kinds = [value.type for value in otherwise]
        branch = ir.Operation.create("scf.if", kinds, [condition], regions=2)
    for old, new in zip(loop.results, branch.results, strict=True):
        old.replace_all_uses_with(new)
    for region, values in zip(branch.regions, (loop.results, otherwise), strict=True):
        with loop.location, ir.InsertionPoint(region.blocks.append()):
            scf.YieldOp(list(values))
    loop.move_before(branch.regions[0].blocks[0].operations[0].operation)

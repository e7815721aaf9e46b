"""Unroll-and-jam: several iterations of an outer loop side by side in the inner ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith

from avial_lab.compiler.codegen.loops.work_estimate import BLOCKS
from avial_lab.compiler.ir.nesting import body_of, end_of
from avial_lab.compiler.ir.operations import attributes_of, operations_in
from avial_lab.machine.constants import REQUESTS_IN_FLIGHT

INDEPENDENT_ROWS = 4
"""Each has several arrays that memory brings from as many places; more rows, and those get in each
other's way.
"""

Values = dict[ir.Value, ir.Value]

ENDS = ("lowerBoundMap", "upperBoundMap")

MANY_ROWS = REQUESTS_IN_FLIGHT
"""Of long ones, each a stream from memory of its own: as many requests as a core can have in
flight, while lines of so many rows that fall on one place of a cache still find room there.
"""

MOST_VECTORS = 4
"""Of one row: with several rows there are no registers for more."""


def put_side_by_side(loop: ir.Operation, rows: int) -> ir.Operation:
    """So many iterations of `loop` at once, each operation and each loop inside once for all; the
    loop over those that are left over.
    """
    return Rows(loop, rows, 0).write()


def put_all_side_by_side(loop: ir.Operation, steps: range) -> None:
    """The same with all iterations of a loop, whose variable has these values; it is gone."""
    with loop.location, ir.InsertionPoint(loop):
        places = [arith.constant(variable_of(loop).type, step) for step in steps]
        Rows(loop, len(steps), 0).put_side_by_side(places)
    loop.erase()


@dataclass(frozen=True)
class Blocks:
    """Iterations so many at a time: `first` is the first one's variable, and what they do goes
    before `end`; `left` is the loop over those that are left over.
    """

    first: ir.Value
    end: ir.Operation
    left: ir.Operation


def in_blocks(loop: ir.Operation, count: int) -> Blocks:
    """A loop before `loop` over blocks of `count` iterations, which are still to be written, and
    those that are left over; `loop` stays.

    before:  affine.for %i = 0 to %n { … }
    after:   affine.for %first = 0 to %n step 4 {
               affine.if (%first + 4 <= %n) { } else { affine.for %i = %first to %n { … } }
                 {avial.blocks} }
    """
    with ir.InsertionPoint(loop), loop.location:
        blocks = empty_like(loop, count)
    first = variable_of(blocks)
    upper = ir.AffineMapAttr(loop.attributes["upperBoundMap"]).value
    lows, *_ = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])
    highs = list(loop.operands)[lows:]
    with ir.InsertionPoint(end_of(blocks)), loop.location:
        dims = upper.n_dims
        room = [each - ir.AffineDimExpr.get(dims) - count for each in upper.results]
        where = ir.IntegerSet.get(dims + 1, upper.n_symbols, room, [False] * len(room))
        choice = ir.Operation.create(
            "affine.if",
            operands=[*highs[:dims], first, *highs[dims:]],
            attributes={"condition": ir.IntegerSetAttr.get(where), BLOCKS: ir.UnitAttr.get()},
            regions=2,
        )
        for region in choice.regions:
            with ir.InsertionPoint(region.blocks.append()):
                affine.AffineYieldOp([])
        full, rest = (_end_of(region) for region in choice.regions)
        with ir.InsertionPoint(rest):
            left = affine.AffineForOp(
                ir.AffineMap.get(1, 0, [ir.AffineDimExpr.get(0)]), upper, 1, iter_args=[],
                lower_bound_operands=[first], upper_bound_operands=highs,
            )  # fmt: skip
            with ir.InsertionPoint(left.operation.regions[0].blocks[0]):
                copy_with(body_of(loop), {variable_of(loop): left.induction_variable})
                affine.AffineYieldOp([])
    return Blocks(first, full, left.operation)


@dataclass(frozen=True)
class Rows:
    """Writes `count` iterations of `loop` side by side, each `lag` columns behind the one before.

          lag * (count - 1)
    row i   ....┌──────────────────┐         `head`: row by row, as far as there is one
    i + 1     ..│                  │..       `side by side`
    i + 2       │                  │....     `tail`
                └──────────────────┘
    """

    loop: ir.Operation
    count: int
    lag: int

    def write(self) -> ir.Operation:
        """The loop over the rows that are left over."""
        blocks = in_blocks(self.loop, self.count)
        with self.loop.location, ir.InsertionPoint(blocks.end):
            self.put_side_by_side([shifted(blocks.first, row) for row in range(self.count)])
        self.loop.erase()
        return blocks.left

    @property
    def _variable(self) -> ir.Value:
        return self.loop.regions[0].blocks[0].arguments[0]

    def put_side_by_side(self, places: Sequence[ir.Value]) -> None:
        """The body for the rows with these places; a loop once for all of them."""
        rows = [{self._variable: place} for place in places]
        for op in body_of(self.loop):
            if op.name != "affine.for":
                for known in rows:
                    copy_with([op], known)
            elif self.lag:
                self._lagging(op, rows, places[0])
            else:
                _together(op, rows)

    def _lagging(self, op: ir.Operation, rows: Sequence[Values], first: ir.Value) -> None:
        """Columns that not all rows have, those that all have, and the rest."""
        bounds = _Bounds.of(op, rows[0])
        late = self.lag * (self.count - 1)
        low, high, later = bounds.low, bounds.high, bounds.low + late
        self._one_by_one(op, bounds, ([low], [later]), first)
        middle = bounds.loop([later], [high])
        with ir.InsertionPoint(end_of(middle)):
            column = variable_of(middle)
            for number, known in enumerate(rows):
                place = shifted(column, -self.lag * number)
                copy_with(body_of(op), {**known, variable_of(op): place})
        # Where a row is short the head has gone on beyond its end.
        self._one_by_one(op, bounds, ([high, later], [high + late]), first)

    def _one_by_one(
        self,
        op: ir.Operation,
        bounds: _Bounds,
        ends: tuple[Sequence[ir.AffineExpr], Sequence[ir.AffineExpr]],
        first: ir.Value,
    ) -> None:
        """Columns of all rows that have them, row after row."""
        columns = bounds.loop(*ends)
        with ir.InsertionPoint(end_of(columns)):
            zero, one = ir.AffineConstantExpr.get(0), ir.AffineConstantExpr.get(self.count)
            each = affine.AffineForOp(
                ir.AffineMap.get(0, 0, [zero]), ir.AffineMap.get(0, 0, [one]), 1, iter_args=[],
                lower_bound_operands=[], upper_bound_operands=[],
            )  # fmt: skip
            with ir.InsertionPoint(each.operation.regions[0].blocks[0]):
                end = affine.AffineYieldOp([])
            with ir.InsertionPoint(end):
                number, column = each.induction_variable, variable_of(columns)
                d0, d1 = ir.AffineDimExpr.get(0), ir.AffineDimExpr.get(1)
                row = affine.AffineApplyOp(ir.AffineMap.get(2, 0, [d0 + d1]), [first, number])
                form = ir.AffineMap.get(2, 0, [d0 - d1 * self.lag])
                place = affine.AffineApplyOp(form, [column, number]).result
                branch = bounds.inside(place)
                with ir.InsertionPoint(_end_of(branch.regions[0])):
                    known = {self._variable: row.result, variable_of(op): place}
                    for outer in body_of(self.loop):
                        if outer != op:  # what the row is computed from
                            copy_with([outer], known)
                    copy_with(body_of(op), known)


@dataclass(frozen=True)
class _Bounds:
    """One of each for a loop over columns, over one list of dimensions and one of symbols."""

    low: ir.AffineExpr
    high: ir.AffineExpr
    dims: list[ir.Value]
    symbols: list[ir.Value]
    like: ir.Operation

    @staticmethod
    def of(op: ir.Operation, known: Values) -> _Bounds:
        sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
        operands = [known.get(value, value) for value in op.operands]
        low, high = (ir.AffineMapAttr(op.attributes[name]).value for name in ENDS)
        below, above = operands[: sizes[0]], operands[sizes[0] :]
        end = high.results[0].shift_dims(high.n_dims, low.n_dims)
        return _Bounds(
            low.results[0],
            end.shift_symbols(high.n_symbols, low.n_symbols),
            [*below[: low.n_dims], *above[: high.n_dims]],
            [*below[low.n_dims :], *above[high.n_dims :]],
            op,
        )

    def loop(self, lows: Sequence[ir.AffineExpr], highs: Sequence[ir.AffineExpr]) -> ir.Operation:
        """An empty loop between the greatest of `lows` and the least of `highs`."""
        low, high = (
            ir.AffineMap.get(len(self.dims), len(self.symbols), list(each))
            for each in (lows, highs)
        )
        operands = [*self.dims, *self.symbols]
        made = affine.AffineForOp(
            low, high, 1, iter_args=[],
            lower_bound_operands=operands, upper_bound_operands=operands,
        ).operation  # fmt: skip
        made.regions[0].blocks[0].arguments[0].set_location(variable_of(self.like).location)
        with ir.InsertionPoint(made.regions[0].blocks[0]):
            affine.AffineYieldOp([])
        return made

    def inside(self, column: ir.Value) -> ir.Operation:
        """A condition that the column is one of the loop's."""
        here = ir.AffineDimExpr.get(len(self.dims))
        tests = [here - self.low, self.high - here - 1]
        where = ir.IntegerSet.get(len(self.dims) + 1, len(self.symbols), tests, [False, False])
        branch = ir.Operation.create(
            "affine.if",
            operands=[*self.dims, column, *self.symbols],
            attributes={"condition": ir.IntegerSetAttr.get(where)},
            regions=2,
        )
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            affine.AffineYieldOp([])
        return branch


def variable_of(loop: ir.Operation) -> ir.Value:
    return loop.regions[0].blocks[0].arguments[0]


def _end_of(region: ir.Region) -> ir.Operation:
    block = region.blocks[0]
    return block.operations[len(block.operations) - 1].operation


def empty_like(loop: ir.Operation, step: int | None = None) -> ir.Operation:
    """An empty loop with the bounds of `loop`, and its step where no other is given."""
    attributes = attributes_of(loop)
    if step is not None:
        attributes["step"] = ir.IntegerAttr.get(ir.IndexType.get(), step)
    made = ir.Operation.create(
        "affine.for", operands=list(loop.operands), attributes=attributes, regions=1
    )
    block = made.regions[0].blocks.append(ir.IndexType.get(), arg_locs=[variable_of(loop).location])
    with ir.InsertionPoint(block):
        affine.AffineYieldOp([])
    return made


def _together(loop: ir.Operation, rows: Sequence[Values]) -> None:
    """One loop that does for each iteration what `loop` does, for all rows; what it hands on is
    handed on for each.
    """
    below, above, *_ = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])
    operands = list(loop.operands)
    bounds, starts = operands[: below + above], operands[below + above :]
    given = [known.get(value, value) for known in rows for value in starts]
    variable, *carried = loop.regions[0].blocks[0].arguments
    attributes = attributes_of(loop)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([below, above, len(given)])
    made = ir.Operation.create(
        "affine.for",
        results=[value.type for value in given],
        operands=[*(rows[0].get(value, value) for value in bounds), *given],
        attributes=attributes,
        regions=1,
    )
    names = [variable.location, *(value.location for _ in rows for value in carried)]
    block = made.regions[0].blocks.append(
        ir.IndexType.get(), *(value.type for value in given), arg_locs=names
    )
    handed: list[ir.Value] = []
    count = len(carried)
    with ir.InsertionPoint(block):
        for number, known in enumerate(rows):
            here = list(block.arguments)[1 + number * count :][:count]
            inside = {
                **known,
                variable: block.arguments[0],
                **dict(zip(carried, here, strict=True)),
            }
            copy_with(body_of(loop), inside)
            handed += [inside.get(value, value) for value in end_of(loop).operands]
        affine.AffineYieldOp(handed)
    for number, known in enumerate(rows):
        results = list(made.results)[number * count :][:count]
        known.update(zip(loop.results, results, strict=True))


def shifted(value: ir.Value, by: int) -> ir.Value:
    if not by:
        return value
    return affine.AffineApplyOp(
        ir.AffineMap.get(1, 0, [ir.AffineDimExpr.get(0) + by]), [value]
    ).result


def copy_with(ops: Sequence[ir.Operation], known: Values) -> None:
    """Copies of them at the insertion point; `known` goes on with what they define."""
    for op in ops:
        copy = op.clone().operation
        for place, operand in enumerate(op.operands):
            if operand in known:
                copy.operands[place] = known[operand]
        for inner in operations_in(copy):
            for place, operand in enumerate(inner.operands):
                if operand in known:
                    inner.operands[place] = known[operand]
        known.update(zip(op.results, copy.results, strict=True))

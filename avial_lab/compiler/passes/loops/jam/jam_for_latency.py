"""Several rows at once where each waits for itself: one's latency is hidden behind the others'.

Functions of loops -> the same operations on every element, so the same bits; a processor finds
enough that is independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith

from avial_lab.compiler.analysis.accesses.memory import ACCESSES, LOADS, STORES
from avial_lab.compiler.analysis.accesses.view_maps import may_be
from avial_lab.compiler.analysis.patterns.time_tiling import SIDE_BY_SIDE
from avial_lab.compiler.analysis.patterns.wavefront_skew import is_recurrence, lag_of
from avial_lab.compiler.analysis.polyhedral import ArrayKind, Loop, Scop, read_scop
from avial_lab.compiler.analysis.polyhedral.strides import move_of
from avial_lab.compiler.codegen.loops.work_estimate import BLOCKS
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.llvm_attributes import NO_VECTORS, tell_llvm
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import FORS, body_of, end_of
from avial_lab.compiler.ir.operations import attributes_of, operations_in, operations_named
from avial_lab.compiler.ir.remarks import loop_name, tell
from avial_lab.compiler.passes.loops.facts.independent_accesses import INDEPENDENT
from avial_lab.compiler.passes.loops.facts.mark_parallel import PARALLEL
from avial_lab.compiler.passes.loops.facts.no_alias import functions_of_arrays_apart
from avial_lab.compiler.passes.tasks.remove_empty_loops import known_ends

INDEPENDENT_ROWS = 4
"""Each has several arrays that memory brings from as many places; more rows, and those get in each
other's way.
"""

COLUMNS = 32
"""Where the rows are columns of an array: some lines of the cache of each, whole and beside each
other, as memory is fastest.
"""

MOST_OPERATIONS = 400
"""In the body of the rows together: what a processor looks ahead, and what registers hold."""

MOST_OF_COLUMNS = 2000
"""Of columns, which wait for memory first."""

Values = dict[ir.Value, ir.Value]


@dataclass(frozen=True)
class InterleaveRows:
    """Run rows of a recurrence side by side, each some columns behind the one before.

    before:  affine.for %i { affine.for %j { A[i, j] = … A[i, j - 1] … A[i - 1, j + 1] … } }
    after:   affine.for %i step 8 { affine.for %c { …[i, c]  …[i + 1, c - 2]  …[i + 2, c - 4] … } }

    A function that has nothing but such rows is `noimplicitfloat`: no vectors are made of them.

    Iterations of a loop that are independent (`avial.parallel`) need no lag, and may hold several
    loops after each other. Columns at the two ends, and rows that are left over, run one by one.

    `rows`: how many; 0 where that is to follow from the loops.
    """

    rows: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                rows = _count_rows(function)
                lagging = self._interleave_in(function)
                if lagging and lagging == rows:
                    # LLVM would gather columns of several rows in vectors: shuffles for each, in
                    # the very chain of operations whose latency is to be hidden.
                    tell_llvm(function, NO_VECTORS)

    def _interleave_in(self, op: ir.Operation) -> int:
        """How many loops in it have rows now that lag behind each other."""
        lagging = 0
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    lag = self._interleave(inner) if inner.name == "affine.for" else None
                    lagging += self._interleave_in(inner) if lag is None else lag > 0
        return lagging

    def _interleave(self, loop: ir.Operation) -> int | None:
        """By how many columns the loop's rows lag behind each other, which run side by side now;
        None where they do not.
        """
        body = body_of(loop)
        inner = [op for op in body if op.name == "affine.for"]
        if not _is_plain(loop) or not inner or not all(map(_may_repeat, body)):
            return None
        variable = loop.regions[0].blocks[0].arguments[0]
        # What a row is handed first may be another in each.
        if any(_depends(each, variable, loop) for op in inner for each in operands_of_ends(op)):
            return None
        if all(INDEPENDENT in op.attributes and not len(op.results) for op in inner):
            return None  # none waits for itself: known without another look
        scop = read_scop(loop)
        (outer,) = scop.loops_of(loop)
        loops = [scop.loops_of(op)[0] for op in inner]
        if not any(is_recurrence(each, scop) for each in loops):
            return None
        rows = self._rows(loop, outer, loops, scop)
        if rows < 2:
            return None
        taken = f"interleave-rows{{rows={rows}}}"
        told = f"{rows} rows of {loop_name(loop)} side by side, for each waits for itself"
        if PARALLEL in loop.attributes:
            tell(loop, taken, told)
            left = put_side_by_side(loop, rows)
            if rows > INDEPENDENT_ROWS:
                put_side_by_side(left, INDEPENDENT_ROWS)
            return 0
        alone = all(op == inner[0] or is_pure(op) or _is_fixed_load(op, loop) for op in body)
        if not alone or len(inner[0].results):
            return None
        if any(len(ir.AffineMapAttr(inner[0].attributes[n]).value.results) > 1 for n in _ENDS):
            return None
        lag = lag_of(scop, outer, loops[0], rows)
        if lag is None or lag > _MOST_LAG or _is_over(inner[0], lag):
            return None
        tell(loop, taken, f"{told}; each {lag} columns behind the one before")
        _Rows(loop, rows, lag).write()
        return lag

    def _rows(self, loop: ir.Operation, outer: Loop, inner: Sequence[Loop], scop: Scop) -> int:
        """How many rows are to be side by side."""
        columns = PARALLEL in loop.attributes and _are_columns(outer, inner, scop)
        most = MOST_OF_COLUMNS if columns else MOST_OPERATIONS
        wanted = SIDE_BY_SIDE
        if PARALLEL in loop.attributes:
            wanted = COLUMNS if columns else INDEPENDENT_ROWS
        return min(self.rows or wanted, most // max(1, len(list(operations_in(loop)))))

    def __str__(self) -> str:
        return f"interleave-rows{{rows={self.rows}}}" if self.rows else "interleave-rows"


def _are_columns(outer: Loop, inner: Sequence[Loop], scop: Scop) -> bool:
    """Whether an array lies so that the rows are beside each other in it, and what an inner loop
    goes along is not.
    """
    return any(
        move_of(access, s.loops.index(outer)) == 1 and move_of(access, s.loops.index(each)) is None
        for each in inner
        for s in scop.within(each)
        for access in s.accesses
        if access.array.kind is ArrayKind.MEMORY
    )


def _count_rows(function: ir.Operation) -> int:
    """Innermost loops."""
    return sum(not operations_named(op, *FORS) for op in operations_named(function, *FORS))


def put_side_by_side(loop: ir.Operation, rows: int) -> ir.Operation:
    """So many iterations of `loop` at once, each operation and each loop inside once for all; the
    loop over those that are left over.
    """
    return _Rows(loop, rows, 0).write()


def put_all_side_by_side(loop: ir.Operation, steps: range) -> None:
    """The same with all iterations of a loop, whose variable has these values; it is gone."""
    with loop.location, ir.InsertionPoint(loop):
        places = [arith.constant(variable_of(loop).type, step) for step in steps]
        _Rows(loop, len(steps), 0).put_side_by_side(places)
    loop.erase()


_ENDS = ("lowerBoundMap", "upperBoundMap")
_MOST_LAG = 8
"""Columns at the ends of the rows run one by one: lag × rows of them."""


def _is_plain(loop: ir.Operation) -> bool:
    return not len(loop.results) and _steps_by_one(loop)


def _steps_by_one(loop: ir.Operation) -> bool:
    return ir.IntegerAttr(loop.attributes["step"]).value == 1


def _may_repeat(op: ir.Operation) -> bool:
    """Whether copies of it may stand beside each other: accesses, arithmetic, innermost loops."""
    if op.name == "affine.for":
        inside = body_of(op)
        return _steps_by_one(op) and all(not len(o.regions) and _may_repeat(o) for o in inside)
    return op.name in ACCESSES or (is_pure(op) and not _may_be_reordered(op))


def _may_be_reordered(op: ir.Operation) -> bool:
    """Whether it is part of a sum in any order, which is fast in vectors."""
    return "fastmath" in op.attributes and "reassoc" in str(op.attributes["fastmath"])


def _is_fixed_load(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether it loads from an array that `loop` does not write: each row may do so by itself."""
    written = {m for e in operations_in(loop) if e.name in STORES for m in may_be(e.operands[1])}
    return op.name in LOADS and not written & may_be(op.operands[0])


def _is_over(columns: ir.Operation, lag: int) -> bool:
    """Whether a row is through before the next one begins: none would be beside another."""
    ends = known_ends(columns)
    lows, highs = ([end for end in each if end is not None] for each in ends)
    return bool(lows and highs) and min(highs) - max(lows) <= lag


def _depends(value: ir.Value, on: ir.Value, loop: ir.Operation) -> bool:
    """Whether the value is computed from `on` in the body of `loop`."""
    if value == on:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.block.owner != loop:
        return False
    return any(_depends(each, on, loop) for each in owner.operation.operands)


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
class _Rows:
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
        low, high = (ir.AffineMapAttr(op.attributes[name]).value for name in _ENDS)
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

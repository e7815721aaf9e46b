"""Rows for all threads where each of them adds to the same sums: parts of the rows add to sums of
their own, and those are added up at the end.

Functions of loops -> the same sums, with their terms in an order that only the number of rows says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith, memref

from avial_lab.accesses.memory import ACCESSES, STORES
from avial_lab.accesses.views import DYNAMIC
from avial_lab.dialects.program import is_strict
from avial_lab.passes.arrays_apart import arrays_apart
from avial_lab.passes.independent_accesses import INDEPENDENT
from avial_lab.passes.index_code import minus, pieces, plus, times
from avial_lab.passes.jam_rows import (
    BOUNDS,
    MANY_ROWS,
    ends_of,
    goes_along,
    loops_over_columns,
)
from avial_lab.passes.loop_bounds import operands_of_ends
from avial_lab.passes.mark_parallel import PARALLEL, columns_of, free_nests
from avial_lab.passes.notes import listed, loop_name, tell
from avial_lab.passes.operations import functions_in
from avial_lab.passes.phases import OF_TASK
from avial_lab.passes.reorder_sums import longest_of, note_terms
from avial_lab.polyhedra import ArrayKind, Loop, Scop, read_scop
from avial_lab.polyhedra.dependences import carried_among
from avial_lab.polyhedra.model import ReductionKind, Statement
from avial_lab.polyhedra.nesting import body_of, holds
from avial_lab.polyhedra.reductions import forbidding, reductions

NAME = "partial-sums"
PARTS = 32
"""Of the rows: enough for any number of threads that memory can feed."""

LEAST = 2 * MANY_ROWS
"""Rows in a part, so that its sums are little beside what it reads."""

OPEN = 5 * MANY_ROWS
"""Rows in a part where how many there are is known when the program runs."""

LINE = 16
"""Elements at which a part's sums start, so that no line of the cache is written by two threads."""


@dataclass(frozen=True)
class PartialSums:
    """Cut a loop over rows into parts that touch nothing of each other.

    before:  affine.for %i = 0 to 2000 { s = sum of A[i, :] * x[:]; y[:] += A[i, :] * s }
    after:   affine.for %from = 0 to 2000 step 60 {
               part[%from / 60, :] = -0.0
               affine.for %i = %from to %from + 60 { …; part[%from / 60, :] += A[i, :] * s }
             } {avial.parallel}
             affine.for %from = 0 to 2000 step 60 { y[:] += part[%from / 60, :] }

    Only where rows could not be divided otherwise: not where elements depend on those of their own
    column alone, which is `avial.sliced` and keeps the order of the terms. Adding −0.0 changes no
    bit. A strict module stays as it is.
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
    ends = ends_of(loop)
    rows = loops_over_columns(loop) if ends is not None else []
    if ends is None or not rows:
        return 0
    low, high = ends
    size = OPEN if high is None else max(LEAST, -(-(high - low) // (PARTS * MANY_ROWS)) * MANY_ROWS)
    scop = read_scop(loop)
    sums = _sums(loop, rows, scop) if high is None or high - low >= 2 * size else []
    if not sums:
        return 0
    names = listed(each.name for each in sums)
    told = f"{names} summed up for each {size} rows of {loop_name(loop)}, then for all"
    tell(loop, f"{NAME}{{rows={size}}}", told)
    (own,) = scop.loops_of(loop)
    terms = longest_of(own, scop) if high is None else high - low
    with loop.location, ir.InsertionPoint(loop):
        _Parts(loop, sums, low, high, size).write()
    return terms


@dataclass(frozen=True)
class _Sum:
    """The row `array` that is added to by `accesses`, all in loops with the bounds of `row`."""

    name: str
    array: ir.Value
    accesses: tuple[ir.Operation, ...]
    row: ir.Operation


def _sums(loop: ir.Operation, rows: Sequence[ir.Operation], scop: Scop) -> list[_Sum]:
    """What keeps the iterations of `loop` in order, if all of that is sums of rows."""
    (own,) = scop.loops_of(loop)
    carried = carried_among(own, scop.statements)
    found = reductions(own, scop, carried)
    if not found or forbidding(own, scop, carried) or columns_of(loop, scop):
        return []
    arrays = dict.fromkeys(each.array.name for each in found)
    if any(each.kind is not ReductionKind.SUM or not each.fixed for each in found):
        return []
    sums = [each for name in arrays if (each := _sum_of(name, own, rows, scop)) is not None]
    return sums if len(sums) == len(arrays) else []


def _sum_of(name: str, own: Loop, rows: Sequence[ir.Operation], scop: Scop) -> _Sum | None:
    """The array of that name, if all its elements are met in loops over columns, by the column."""
    users = [s for s in scop.statements if any(a.array.name == name for a in s.accesses)]
    array = users[0].accesses[0].array
    around = [row for row in rows if any(holds(row, s.op) for s in users)]
    known = array.kind is ArrayKind.MEMORY and array.value is not None and len(array.shape) == 1
    if not known or not around:
        return None
    if not all(_is_column(s, own, around) and array.value in list(s.op.operands) for s in users):
        return None
    if any(_range(row) != _range(around[0]) for row in around):
        return None
    return _Sum(name, array.value, tuple(s.op for s in users), around[0])


def _is_column(statement: Statement, own: Loop, rows: Sequence[ir.Operation]) -> bool:
    """Whether it is a plain access to the element of the column's own number."""
    op = statement.op
    row = next((row for row in rows if holds(row, op)), None)
    if row is None or op.name not in ACCESSES or not goes_along(statement, own):
        return False
    subscripts = list(op.operands)[1 + (op.name in STORES) :]
    plain = "map" not in op.attributes or str(op.attributes["map"]) == _IDENTITY
    return plain and subscripts == [row.regions[0].blocks[0].arguments[0]]


_IDENTITY = "affine_map<(d0) -> (d0)>"


def _range(row: ir.Operation) -> tuple[object, ...]:
    return (*(str(row.attributes[name]) for name in BOUNDS), *operands_of_ends(row))


@dataclass
class _Parts:
    """Writes the parts of `loop`, each of `size` rows, and takes it away.

    Where a rank runs some of the rows only, its first part starts anywhere: with `low` and `size`
    the parts still have numbers of their own, below a count that follows from `high`.
    """

    loop: ir.Operation
    sums: Sequence[_Sum]
    low: int
    high: int | None
    size: int

    def write(self) -> None:
        count = self._count()
        self.parts = {each.name: _rows_for(each, count) for each in self.sums}
        with self._over_parts() as start:
            for each in self.sums:
                self._clear(each, start)
            self._rows(start)
        start.owner.owner.attributes[PARALLEL] = ir.UnitAttr.get()
        for each in self.sums:
            with self._over_parts() as start:
                self._add_up(each, start)
        for part in self.parts.values():
            memref.DeallocOp(part)
        self.loop.erase()

    def _count(self) -> int | ir.Value:
        """How many parts there are at most, one for a first that starts in the middle."""
        if self.high is not None:
            return -(-(self.high - self.low) // self.size) + 1
        lows, highs, _ = ir.DenseI32ArrayAttr(self.loop.attributes["operandSegmentSizes"])
        bounds = list(self.loop.operands)[lows : lows + highs]
        end = affine.AffineMinOp(self.loop.attributes[BOUNDS[1]], bounds)
        return plus(pieces(minus(end.result, self.low), self.size), 1)

    def _over_parts(self) -> Inside:
        """A loop over the first rows of the parts."""
        made = loop_like(self.loop, self.size)
        return Inside(made, ir.Location.name("from", self.loop.location))

    def _place(self) -> ir.AffineExpr:
        """The number of the part that starts with a row."""
        return ir.AffineExpr.get_floor_div(ir.AffineDimExpr.get(0) - self.low, self.size)

    @property
    def _form(self) -> dict[str, ir.Attribute]:
        return {
            "map": ir.AffineMapAttr.get(
                ir.AffineMap.get(2, 0, [self._place(), ir.AffineDimExpr.get(1)])
            )
        }

    def _clear(self, each: _Sum, start: ir.Value) -> None:
        kind = ir.MemRefType(each.array.type).element_type
        nothing = -0.0 if isinstance(kind, ir.FloatType) else 0
        zero = arith.constant(kind, nothing)
        with _columns_of(each) as column:
            self._store(zero, each, start, column)

    def _store(self, value: ir.Value, each: _Sum, start: ir.Value, column: ir.Value) -> None:
        operands = [value, self.parts[each.name], start, column]
        ir.Operation.create("affine.store", [], operands, self._form)

    def _load(self, each: _Sum, start: ir.Value, column: ir.Value) -> ir.Value:
        kind = ir.MemRefType(each.array.type).element_type
        operands = [self.parts[each.name], start, column]
        return ir.Operation.create("affine.load", [kind], operands, self._form).result

    def _rows(self, start: ir.Value) -> None:
        """The rows from `start` on, as they were, but for where they add to."""
        lows, *_ = ir.DenseI32ArrayAttr(self.loop.attributes["operandSegmentSizes"])
        highs = list(self.loop.operands)[lows:]
        upper = ir.AffineMapAttr(self.loop.attributes["upperBoundMap"]).value
        dims = upper.n_dims
        ends = [*upper.results, ir.AffineDimExpr.get(dims) + self.size]
        rows = affine.AffineForOp(
            ir.AffineMap.get_identity(1),
            ir.AffineMap.get(dims + 1, upper.n_symbols, ends),
            1,
            iter_args=[],
            lower_bound_operands=[start],
            upper_bound_operands=[*highs[:dims], start, *highs[dims:]],
        ).operation
        variable = self.loop.regions[0].blocks[0].arguments[0]
        with Inside(rows, variable.location) as row:
            variable.replace_all_uses_with(row)
            end = row.owner.operations[len(row.owner.operations) - 1].operation
            for op in body_of(self.loop):
                op.move_before(end)
        for each in self.sums:
            for op in each.accesses:
                self._turn(op, each, start)

    def _turn(self, op: ir.Operation, each: _Sum, start: ir.Value) -> None:
        """Let `op` add to the part's own sums."""
        column = op.operands[len(op.operands) - 1]
        with op.location, ir.InsertionPoint(op):
            if op.name in STORES:
                self._store(op.operands[0], each, start, column)
            else:
                op.results[0].replace_all_uses_with(self._load(each, start, column))
        op.erase()

    def _add_up(self, each: _Sum, start: ir.Value) -> None:
        where = {"map": ir.AffineMapAttr.get(ir.AffineMap.get_identity(1))}
        kind = ir.MemRefType(each.array.type).element_type
        add = "arith.addf" if isinstance(kind, ir.FloatType) else "arith.addi"
        with _columns_of(each) as column:
            part = self._load(each, start, column)
            old = ir.Operation.create("affine.load", [kind], [each.array, column], where).result
            total = ir.Operation.create(add, [kind], [old, part]).result
            ir.Operation.create("affine.store", [], [total, each.array, column], where)


@dataclass
class Inside:
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


def _rows_for(each: _Sum, count: int | ir.Value) -> ir.Value:
    """Memory for the sums of every part."""
    extents = (count, _width_of(each.array))
    shape = [k if isinstance(k, int) else DYNAMIC for k in extents]
    line = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64)
    with ir.Location.name(f"{each.name}_parts", each.row.location):
        part = ir.MemRefType.get(shape, ir.MemRefType(each.array.type).element_type)
        unknown = [k for k in extents if not isinstance(k, int)]
        return memref.alloc(part, unknown, [], alignment=line)


def _width_of(array: ir.Value) -> int | ir.Value:
    """Its elements, and what is missing to full lines."""
    kind = ir.MemRefType(array.type)
    if not kind.is_dynamic_dim(0):
        return -(-kind.shape[0] // LINE) * LINE
    elements = memref.dim(array, arith.constant(ir.IndexType.get(), 0))
    return times(pieces(elements, LINE), LINE)


def _columns_of(each: _Sum) -> Inside:
    """A loop over the columns that are added to; its iterations are independent."""
    return Inside(loop_like(each.row, 1), each.row.regions[0].blocks[0].arguments[0].location)


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

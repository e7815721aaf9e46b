"""Rows for all threads where each of them adds to the same sums: parts of the rows add to sums of
their own, and those are added up at the end.

Functions of loops -> the same sums, with their terms in an order that only the number of rows says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.analysis.parallelism.marked_loops import (
    BOUNDS,
    columns_of,
    ends_of,
    goes_along,
    loops_over_columns,
)
from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.parallelism.sums import longest_of
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import (
    ArrayKind,
    Loop,
    ReductionKind,
    Scop,
    Statement,
)
from avial_lab.compiler.codegen.loops.chunks import (
    PARTS,
    LoopBody,
    LoopParts,
    added,
    cut_in,
    loop_like,
    nothing,
)
from avial_lab.compiler.codegen.loops.index_arithmetic import pieces, times
from avial_lab.compiler.codegen.loops.unroll_and_jam import MANY_ROWS
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.effects import ACCESSES, STORES
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import holds
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.ir.views import DYNAMIC
from avial_lab.machine.constants import LINE_BYTES

NAME = "privatise-array-sums"
LEAST = 2 * MANY_ROWS
"""Rows in a part, so that its sums are little beside what it reads."""

OPEN = 5 * MANY_ROWS
"""Rows in a part where how many there are is known when the program runs."""

LINE = LINE_BYTES // 4
"""Elements at which a part's sums start, so that no line of the cache is written by two threads."""


@dataclass(frozen=True)
class PrivatiseArraySums:
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
        cut_in(module, _in_parts)

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
    remark = f"{names}: private sums of {size} rows of {loop_name(loop)} each, then combined"
    add_remark(loop, f"{NAME}{{rows={size}}}", remark)
    (own,) = scop.loops_of(loop)
    terms = longest_of(own, scop) if high is None else high - low
    with loop.location, ir.InsertionPoint(loop):
        _Parts(LoopParts(loop, low, high, size), sums).write()
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
    """Writes the parts of a loop, with sums of their own, and takes it away."""

    of: LoopParts
    sums: Sequence[_Sum]

    def write(self) -> None:
        count = self.of.count()
        self.parts = {each.name: _rows_for(each, count) for each in self.sums}
        with self.of.over() as start:
            for each in self.sums:
                self._clear(each, start)
            self.of.moved(start)
            for each in self.sums:
                for op in each.accesses:
                    self._turn(op, each, start)
        start.owner.owner.attributes[PARALLEL] = ir.UnitAttr.get()
        for each in self.sums:
            with self.of.over() as start:
                self._add_up(each, start)
        for part in self.parts.values():
            memref.DeallocOp(part)
        self.of.loop.erase()

    @property
    def _form(self) -> dict[str, ir.Attribute]:
        return {
            "map": ir.AffineMapAttr.get(
                ir.AffineMap.get(2, 0, [self.of.number, ir.AffineDimExpr.get(1)])
            )
        }

    def _clear(self, each: _Sum, start: ir.Value) -> None:
        kind = ir.MemRefType(each.array.type).element_type
        zero = nothing(kind)
        with _columns_of(each) as column:
            self._store(zero, each, start, column)

    def _store(self, value: ir.Value, each: _Sum, start: ir.Value, column: ir.Value) -> None:
        operands = [value, self.parts[each.name], start, column]
        ir.Operation.create("affine.store", [], operands, self._form)

    def _load(self, each: _Sum, start: ir.Value, column: ir.Value) -> ir.Value:
        kind = ir.MemRefType(each.array.type).element_type
        operands = [self.parts[each.name], start, column]
        return ir.Operation.create("affine.load", [kind], operands, self._form).result

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
        with _columns_of(each) as column:
            part = self._load(each, start, column)
            old = ir.Operation.create("affine.load", [kind], [each.array, column], where).result
            total = added(old, part)
            ir.Operation.create("affine.store", [], [total, each.array, column], where)


def _rows_for(each: _Sum, count: int | ir.Value) -> ir.Value:
    """Memory for the sums of every part."""
    extents = (count, _width_of(each.array))
    shape = [k if isinstance(k, int) else DYNAMIC for k in extents]
    line = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), LINE_BYTES)
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


def _columns_of(each: _Sum) -> LoopBody:
    """A loop over the columns that are added to; its iterations are independent."""
    return LoopBody(loop_like(each.row, 1), each.row.regions[0].blocks[0].arguments[0].location)

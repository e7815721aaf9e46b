"""Elements that lie apart and that many rows load alike are copied side by side, once for all rows.

Functions of loops -> the same operations on every element of memory.

Source: K. Goto, R. van de Geijn, Anatomy of high-performance matrix multiplication, TOMS 34 (2008),
section 4.2.2, packs for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.indices import evaluate
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.codegen.loops.hoist import Memory, memory_of, written_in
from avial_lab.compiler.codegen.loops.unroll_and_jam import variable_of
from avial_lab.compiler.codegen.vectors.row_vectors import (
    WIDTHS,
    RowCode,
    bits_of,
    columns_of_row,
    put_constants_before,
)
from avial_lab.compiler.ir.attributes import INDEPENDENT
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import defined_in, parent_of
from avial_lab.compiler.ir.operations import constant_of, loops_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.machine.constants import LINE_BYTES
from avial_lab.machine.cpu import this_cpu

NAME = "pack-operands"

FEWEST_ROWS = 16
"""That load the same: below it, copying costs as much as it saves."""

OF_CACHE = 0.5
"""Of the first cache, that a table of them may fill: the rows' other arrays go through it too."""

_COLUMN = "column"


@dataclass(frozen=True)
class PackOperands:
    """Load such elements of a row from a table that is filled before the outermost loop.

    before:  affine.for %i { affine.for %j = 0 to 16 { D[i, j] = f(A[i], C[j, 0], C[j, 1]) } }
    after:   %t = memref.alloca() : memref<2x16xf64>
             affine.for %j = 0 to 16 { t[0, j] = C[j, 0]  t[1, j] = C[j, 1] }
             affine.for %i { affine.for %j = 0 to 16 { D[i, j] = f(A[i], t[0, j], t[1, j]) } }

    Vectors of the row were made element by element, in every iteration of the loops around. Only of
    arrays that the function does not write, and of elements that it has: who fills the table loads
    what maybe no row would have.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                rows = [loop for loop in loops_in(function) if INDEPENDENT in loop.attributes]
                tables = [table for row in rows if (table := _table_of(row)) is not None]
                written = written_in(function) if tables else set()
                for table in tables:
                    if not written & table.memory:
                        table.write()

    def __str__(self) -> str:
        return NAME


Place = tuple[ir.Value, tuple[Affine, ...]]
"""An array, and the subscripts of what is loaded from it, in the column."""


@dataclass(frozen=True)
class _Table:
    """One line for each place, one element of it for each column; `loads`: those of the row, by
    their place.
    """

    row: ir.Operation
    outermost: ir.Operation
    columns: range
    loads: dict[Place, list[ir.Operation]]

    @property
    def memory(self) -> set[Memory]:
        """What is loaded from."""
        return {memory for array, _ in self.loads for memory in memory_of(array)}

    def write(self) -> None:
        arrays = dict.fromkeys(array for array, _ in self.loads)
        names = listed(dict.fromkeys(name_of(each.location) or "it" for each in arrays))
        remark = f"elements of {names} that iterations of {loop_name(self.row)} load are packed"
        add_remark(self.row, NAME, remark)
        (array, _), *_ = self.loads
        element = ir.MemRefType(array.type).element_type
        with self.row.location, ir.InsertionPoint(self.outermost):
            kind = ir.MemRefType.get([len(self.loads), len(self.columns)], element)
            table = memref.alloca(kind, [], [], alignment=LINE_BYTES)
            self._fill(table, element)
        for k, ops in enumerate(self.loads.values()):
            for op in ops:
                self._read(op, table, k)

    def _fill(self, table: ir.Value, element: ir.Type) -> None:
        made = affine.AffineForOp(self.columns.start, self.columns.stop)
        with ir.InsertionPoint(made.body):
            column = made.induction_variable
            column.set_location(variable_of(self.row).location)
            for k, (array, where) in enumerate(self.loads):
                form = _map([_expression(each) for each in where])
                value = affine.AffineLoadOp(element, array, [column], form)
                affine.AffineStoreOp(value, table, [column], self._form(k))
            affine.AffineYieldOp([])

    def _read(self, op: ir.Operation, table: ir.Value, line: int) -> None:
        with op.location, ir.InsertionPoint(op):
            where = [variable_of(self.row)]
            made = affine.AffineLoadOp(op.results[0].type, table, where, self._form(line))
        op.results[0].replace_all_uses_with(made.result)
        op.erase()

    def _form(self, line: int) -> ir.AffineMapAttr:
        column = Affine.of(_COLUMN).plus(Affine(-self.columns.start))
        return _map([ir.AffineExpr.get_constant(line), _expression(column)])


def _map(results: Sequence[ir.AffineExpr]) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get(1, 0, list(results)))


def _expression(form: Affine) -> ir.AffineExpr:
    factor = dict(form.terms).get(_COLUMN, 0)
    return ir.AffineExpr.get_dim(0) * factor + form.constant


def _table_of(row: ir.Operation) -> _Table | None:
    """None where there is nothing to pack, or it is not worth it."""
    columns = columns_of_row(row)
    if columns is None:
        return None
    put_constants_before(row)
    code = RowCode(row, 1)
    bits = bits_of(code.stores[0].operands[0].type) if code.stores else None
    if bits not in WIDTHS or len(columns) < this_cpu().lanes(bits // 8):
        return None
    apart = [op for op in code.accesses if code.moves(op) is None]
    if not apart or not code.is_known(apart):
        return None
    outermost, rows = _around(row)
    loads: dict[Place, list[ir.Operation]] = {}
    for op in apart:
        place = _place(op, row, columns)
        if place is None or defined_in(outermost, place[0]):
            return None
        loads.setdefault(place, []).append(op)
    kinds = {ir.MemRefType(array.type).element_type for array, _ in loads}
    nbytes = len(loads) * len(columns) * bits // 8
    fits = len(kinds) == 1 and nbytes <= OF_CACHE * this_cpu().l1_bytes
    return _Table(row, outermost, columns, loads) if fits and rows >= FEWEST_ROWS else None


def _around(row: ir.Operation) -> tuple[ir.Operation, int]:
    """The outermost operation around, and how many rows there are; of a loop of which nobody knows
    how often it runs, enough.
    """
    counts: list[int] = []
    around = row
    while (parent := parent_of(around)) is not None and parent.name != "func.func":
        around = parent
        counts.append(_count(around))
    return around, prod(counts)


def _count(loop: ir.Operation) -> int:
    if loop.name in ("affine.if", "scf.if"):
        return 1
    if loop.name != "affine.for":
        return FEWEST_ROWS
    lows, highs = ([end for end in ends if end is not None] for ends in known_ends(loop))
    step = ir.IntegerAttr(loop.attributes["step"]).value
    if not lows or not highs:
        return FEWEST_ROWS
    return max(min(highs) - max(lows) + step - 1, 0) // step


def _place(op: ir.Operation, row: ir.Operation, columns: range) -> Place | None:
    """What an access of the row loads; None where that hangs on more than the column, where it is a
    store, or where not all columns are elements of the array.
    """
    array, *operands = op.operands
    kind = array.type
    if op.name != "affine.load" or not isinstance(kind, ir.MemRefType) or not kind.has_static_shape:
        return None
    column = variable_of(row)
    form = ir.AffineMapAttr(op.attributes["map"]).value
    values = [Affine.of(_COLUMN) if value == column else _constant(value) for value in operands]
    where: list[Affine] = []
    for result, extent in zip(form.results, kind.shape, strict=True):
        found = evaluate(result, values[: form.n_dims], values[form.n_dims :])
        if found is None or any(name != _COLUMN for name, _ in found.terms):
            return None
        factor = dict(found.terms).get(_COLUMN, 0)
        ends = [found.constant + factor * each for each in (columns[0], columns[-1])]
        if min(ends) < 0 or max(ends) >= extent:
            return None
        where.append(found)
    return array, tuple(where)


def _constant(value: ir.Value) -> Affine | None:
    number = constant_of(value)
    return None if number is None else Affine(number)

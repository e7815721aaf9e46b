"""Rows as whole vectors, whose stores begin where vectors begin in memory.

Functions of loops -> the same operations on every element of memory, so the same bits; none of
them one by one.

Source: A. Eichenberger, P. Wu, K. O'Brien, Vectorization for SIMD architectures with alignment
constraints, PLDI 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.cpu import this_cpu
from avial_lab.passes.arrays_apart import functions_of_arrays_apart
from avial_lab.passes.independent_accesses import INDEPENDENT
from avial_lab.passes.independent_to_llvm import ROLLED
from avial_lab.passes.index_code import divided, minus, number, plus, times
from avial_lab.passes.loop_bounds import bounds_of
from avial_lab.passes.operations import itemsize_of, operations_in
from avial_lab.passes.row_code import WIDTHS, RowCode, bits_of, columns_of_row, put_constants_before

NAME = "whole-vectors"

FEWEST = 8
"""Vectors of a row: the address of its first store is worth finding out."""

SHORT = 64
"""Vectors of a row, below which it stays rolled: the copies of an unrolled body would be for a few
times round, and what is left over from them runs one by one.
"""

MOST_WRITTEN_OUT = 200
"""Operations on vectors of a row that is shorter than that: about as many as LLVM writes out of a
loop, which it does before it looks for vectors.
"""


@dataclass(frozen=True)
class WholeVectors:
    """Compute a row in vectors that end where it ends, and that begin where a line of the cache
    does; the first and the last one overlap with those between.

    before:  affine.for %j = 1 to 119 { B[i, j] = f(A[i, j]) } {avial.independent}
    after:   %first = f(A[i, 1 : 9])   %last = f(A[i, 111 : 119])
             scf.for %j = %aligned to 111 step 8 { B[i, j : j + 8] = f(A[i, j : j + 8]) }
             B[i, 1 : 9] = %first      B[i, 111 : 119] = %last

    What both compute is the same, as nothing is stored before the two have loaded. A vector that
    lies in two lines of the cache costs as two do, and the elements behind the last whole vector
    would run one by one, up to seven of them, which take as long as so many vectors.

    `lanes`: elements in a vector of 32 bits each; 0 for those of this machine.
    """

    lanes: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                for loop in [op for op in operations_in(function) if INDEPENDENT in op.attributes]:
                    row = _Row.of(loop, self.lanes)
                    if row is None:
                        continue
                    if row.is_short:
                        row.write_out()
                    else:
                        row.write()

    def __str__(self) -> str:
        return f"{NAME}{{lanes={self.lanes}}}" if self.lanes else NAME


@dataclass(frozen=True)
class _Row:
    """A loop over `count` elements, of so many lanes in a vector."""

    code: RowCode
    count: int

    @staticmethod
    def of(loop: ir.Operation, given: int) -> _Row | None:
        """None where it stays to the compiler behind us."""
        columns = columns_of_row(loop)
        stores = RowCode(loop, 1).stores
        bits = bits_of(stores[0].operands[0].type) if stores else None
        if columns is None or bits not in WIDTHS:
            return None
        lanes = given * 32 // bits if given else this_cpu().lanes(bits // 8)
        if lanes < 2 or len(columns) < lanes:
            return None
        put_constants_before(loop)
        row = _Row(RowCode(loop, lanes), len(columns))
        return row if row.code.is_known() and row.is_worth_it() else None

    @property
    def is_short(self) -> bool:
        return self.count < FEWEST * self.code.lanes

    def is_worth_it(self) -> bool:
        lanes = self.code.lanes
        if self.is_short:
            few = len(self.code.body) * (self.count // lanes) <= MOST_WRITTEN_OUT
            return few and self.count % lanes in (0, lanes // 2)
        return self.code.loads_first() and any(map(_begins, self.code.stores))

    def write(self) -> None:
        code, loop, lanes = self.code, self.code.loop, self.code.lanes
        with loop.location, ir.InsertionPoint(loop):
            low, high, _ = map(number, bounds_of(loop, 0))
            around = code.around()
            last = minus(high, lanes)
            early = {} if _stays_as_read(code.body) else code.computed(last, around)
            first = code.computed(low, around)
            if not early:
                code.store(low, first)
            begin = next(op for op in code.stores if _begins(op))
            made = scf.ForOp(self._aligned(begin, low), last, number(lanes))
            if self.count < SHORT * lanes:
                made.operation.attributes[ROLLED] = ir.UnitAttr.get()
            with ir.InsertionPoint(made.body):
                column = made.induction_variable
                column.set_location(code.variable.location)
                code.store(column, code.computed(column, around))
                scf.YieldOp([])
            if early:
                code.store(low, first)
            code.store(last, early or code.computed(last, around))
        loop.erase()

    def write_out(self) -> None:
        """Vector after vector, the last one half as long where that is what is left over."""
        code, lanes = self.code, self.code.lanes
        with code.loop.location, ir.InsertionPoint(code.loop):
            low, _, _ = map(number, bounds_of(code.loop, 0))
            wide = code.around()
            for start in range(0, self.count, lanes):
                left = self.count - start
                each = code if left >= lanes else replace(code, lanes=left)
                around = wide if each is code else each.around()
                each.computed(plus(low, start), around, storing=True)
        code.loop.erase()

    def _aligned(self, store: ir.Operation, low: ir.Value) -> ir.Value:
        """The first column behind `low` where a vector of it begins in memory as all do, at most
        one vector behind.
        """
        lanes, array = self.code.lanes, store.operands[1]
        kind = ir.MemRefType(array.type)
        place, *rest = self.code.places(store, low)
        for extent, subscript in zip(list(kind.shape)[1:], rest, strict=True):
            place = plus(times(place, extent), subscript)
        base = memref.extract_aligned_pointer_as_index(array)
        first = plus(divided(base, itemsize_of(kind.element_type)), place)
        return minus(plus(low, lanes), arith.andi(first, number(lanes - 1)))


def _begins(store: ir.Operation) -> bool:
    """Whether its address can be told."""
    kind = ir.MemRefType(store.operands[1].type)
    return kind.has_static_shape and kind.affine_map == ir.AffineMap.get_identity(kind.rank)


def _stays_as_read(body: Sequence[ir.Operation]) -> bool:
    """Whether the row stores to other arrays than it loads from: it may be computed again."""
    written = {op.operands[1] for op in body if op.name == "affine.store"}
    return not any(op.operands[0] in written for op in body if op.name == "affine.load")

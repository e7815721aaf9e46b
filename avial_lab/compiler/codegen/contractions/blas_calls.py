"""A contraction that is products of matrices, as calls of a BLAS.

Contraction, Products -> calls of `avial_gemm_f64` (`runtime/native/blas.c`) at the insertion point.

    rectangle                 triangle, in blocks of rows
    ┌───────┐                 ┌─┐            each block is a rectangle, called for as it is,
    │ gemm  │                 │▒└─┐          and what its rows have of their own (▒): products of
    └───────┘                 │gem▒└─┐       whole rectangles in memory beside, of which each row
                              └──────┘       adds its part
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce

from mlir import ir
from mlir.dialects import arith, llvm, memref

from avial_lab.compiler.analysis.patterns.matrix_products import Product
from avial_lab.compiler.analysis.polyhedral.ranges import Range
from avial_lab.compiler.codegen.contractions.contraction import ContractionCode, Values
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    high_of,
    least,
    less,
    loop,
    low_of,
    minus,
    most,
    number,
    plus,
    times,
    when,
)
from avial_lab.compiler.codegen.runtime_calls import call_of
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import itemsize_of

GEMM = "avial_gemm_"
ROWS = 128
"""Of a triangle in one block: enough for a BLAS to be fast, and of a side half is for nothing."""

Ends = tuple[ir.Value, ir.Value]


@dataclass
class GemmCalls:
    """One contraction to be written."""

    code: ContractionCode
    products: Sequence[Product]
    terms: ir.Value | None = field(default=None, init=False)
    """How many, where the loops around are at."""

    def write(self, names: Values) -> None:
        at, space = dict(names), self.code.found.space
        with ExitStack() as loops:
            for each, extent in zip(self.code.around, space.around, strict=True):
                around = loop(low_of(extent, at), high_of(extent, at))
                at[each.name] = loops.enter_context(around)
            at[self.code.term.name] = low_of(space.terms, at)
            self.terms = minus(high_of(space.terms, at), at[self.code.term.name])
            rows, columns = (_ends(extent, at) for extent in (space.rows, space.columns))
            if self.code.row.name in space.columns_of_row.names:
                with loop(*rows, step=ROWS) as top:
                    block = top, least(plus(top, ROWS), rows[1])
                    self._block(block, columns, at)
            else:
                self._rectangle(rows, columns, at)

    def _rectangle(self, rows: Ends, columns: Ends, names: Values) -> None:
        at = {**names, self.code.row.name: rows[0], self.code.column.name: columns[0]}
        array, place = self.code.array, self.code.place(at)
        below = self.code.place({**at, self.code.row.name: plus(rows[0], 1)})
        first = _offset(array, place)
        self._call(rows, columns, at, _address(array, first), minus(_offset(array, below), first))

    def _block(self, rows: Ends, columns: Ends, names: Values) -> None:
        """Rows of a triangle: what they have in common, and what on either side not all have. The
        columns of a row go one way, so that the first and the last row say where all of them are.
        """
        extent, row = self.code.found.space.columns_of_row, self.code.row.name
        first, last = (_ends(extent, {**names, row: each}) for each in (rows[0], minus(rows[1], 1)))
        low = most(least(first[0], last[0]), columns[0])
        high = least(most(first[1], last[1]), columns[1])
        start = least(most(first[0], last[0], low), high)
        stop = least(most(least(first[1], last[1]), start), high)
        self._rectangle(rows, (start, stop), names)
        for side in ((low, start), (stop, high)):
            with when(less(*side)):
                self._side(rows, side, names)

    def _side(self, rows: Ends, columns: Ends, names: Values) -> None:
        """Of a rectangle of products, what the rows have in their own columns."""
        row, column = self.code.row.name, self.code.column.name
        kind = self.code.found.stored.type
        sizes = [minus(high, low) for low, high in (rows, columns)]
        made = ir.MemRefType.get([ir.ShapedType.get_dynamic_size()] * 2, kind)
        memory = memref.AllocOp(made, sizes, []).result
        # Marked, so that no pass after this one studies blocks whose ends are least and greatest.
        with loop(0, sizes[0], parallel=True) as i, loop(0, sizes[1]) as j:
            memref.StoreOp(arith.constant(kind, 0.0), memory, [i, j])
        at = {**names, row: rows[0], column: columns[0]}
        self._call(rows, columns, at, _address(memory, number(0)), sizes[1])
        with loop(*rows, parallel=True) as each:
            at = {**names, row: each}
            own = _ends(self.code.found.space.columns_of_row, at)
            with loop(most(own[0], columns[0]), least(own[1], columns[1])) as k:
                array, place = self.code.array, self.code.place({**at, column: k})
                added = memref.LoadOp(memory, [minus(each, rows[0]), minus(k, columns[0])]).result
                total = arith.AddFOp(memref.LoadOp(array, place).result, added).result
                memref.StoreOp(total, array, place)
        memref.DeallocOp(memory)

    def _call(
        self, rows: Ends, columns: Ends, at: Values, address: ir.Value, below: ir.Value
    ) -> None:
        """Add the products for these rows and columns, whose first are those of `at`, to elements
        from `address` on, whose rows are so many elements below each other.
        """
        counts = [minus(high, low) for low, high in (rows, columns)]
        sizes = [_word(count) for count in (*counts, self.terms)]
        row, column, term = (
            each.name for each in (self.code.row, self.code.column, self.code.term)
        )
        for product in self.products:
            left = self._matrix(product.left, at, (row, term))
            right = self._matrix(product.right, at, (term, column))
            factor = self._factor(product, at)
            operands = [*sizes, factor, *left, *right, address, _word(below)]
            _call(f"{GEMM}{factor.type}", operands, self.code.root)

    def _matrix(self, value: ir.Value, at: Values, along: Sequence[str]) -> list[ir.Value]:
        """Where it begins, and how many elements it is to the next along each of two loops."""
        array, place = self.code.loaded_from(value, at)
        first = _offset(array, place)
        after = (self.code.loaded_from(value, {**at, name: plus(at[name], 1)})[1] for name in along)
        strides = [_word(minus(_offset(array, each), first)) for each in after]
        return [_address(array, first), *strides]

    def _factor(self, product: Product, at: Values) -> ir.Value:
        """What the product of the matrices is multiplied by."""
        kind = self.code.found.stored.type
        factors = self.code.computed(product.factors, at)
        if not factors:
            return arith.constant(kind, -1.0 if product.negative else 1.0)
        made = reduce(lambda a, b: arith.MulFOp(a, b).result, factors)
        return arith.NegFOp(made).result if product.negative else made


def _ends(extent: Range, at: Values) -> Ends:
    return low_of(extent, at), high_of(extent, at)


def _offset(array: ir.Value, place: Sequence[ir.Value]) -> ir.Value:
    """Elements from where the memory begins to that place."""
    _, offset, *shape = memref.ExtractStridedMetadataOp(array).results
    strides = shape[len(place) :]
    parts = (arith.MulIOp(k, by).result for k, by in zip(place, strides, strict=True))
    return reduce(plus, parts, offset)


def _address(array: ir.Value, offset: ir.Value) -> ir.Value:
    start = memref.ExtractAlignedPointerAsIndexOp(array).result
    item = itemsize_of(ir.MemRefType(array.type).element_type)
    return llvm.inttoptr(llvm.PointerType.get(), _word(plus(start, times(offset, item))))


def _word(value: ir.Value) -> ir.Value:
    return arith.index_cast(ir.IntegerType.get_signless(64), value)


def _call(symbol: str, operands: Sequence[ir.Value], inside: ir.Operation) -> None:
    """Call a function of the runtime, declared once in the module around `inside`."""
    _declare(symbol, [value.type for value in operands], inside)
    call_of(symbol, operands)


def _declare(symbol: str, kinds: Sequence[ir.Type], inside: ir.Operation) -> None:
    module = inside
    while (around := parent_of(module)) is not None:
        module = around
    block = module.regions[0].blocks[0]
    for view in block.operations:
        named = view.operation.attributes
        if "sym_name" in named and ir.StringAttr(named["sym_name"]).value == symbol:
            return
    form = ir.Type.parse(f"!llvm.func<void ({', '.join(map(str, kinds))})>")
    with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
        llvm.LLVMFuncOp(symbol, ir.TypeAttr.get(form))

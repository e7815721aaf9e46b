"""A contraction in blocks: packed panels, and register tiles that walk along them.

Contraction, Tiles -> loops and vector operations at the insertion point.

              columns in panels of `tiles.columns`
              ┌────┬────┬──     right panel p [term, column of the panel]   per block of terms
    rows in   │ ▒▒ │    │       left panel    [term, row of the tile]       per block of rows, too
    blocks of ├────┼────┼──
    at most   │    │    │       ▒ register tile: rows × columns of elements, in registers
    .block    └────┴────┴──       while the terms of a block go by, in their order

Source: K. Goto, R. van de Geijn, Anatomy of high-performance matrix multiplication, TOMS 34 (2008);
F. Van Zee, R. van de Geijn, BLIS: a framework for rapidly instantiating BLAS functionality, TOMS 41
(2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import prod

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.analysis.patterns.contractions import loaded_for
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.codegen.contractions.contraction import ContractionCode, Values
from avial_lab.compiler.codegen.contractions.indirection import with_places
from avial_lab.compiler.codegen.contractions.packing import Packing
from avial_lab.compiler.codegen.contractions.register_tiles import Ends, Packed, RegisterTile, Tiles
from avial_lab.compiler.codegen.loops.hoist import Ahead
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    divided,
    high_of,
    least,
    loop,
    low_of,
    minus,
    most,
    pieces,
    plus,
    times,
)
from avial_lab.compiler.codegen.loops.unroll_and_jam import variable_of
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.nesting import FORS
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.machine.constants import LINE_BYTES

NAME = "block-contractions"

FEW = 9
"""Vectors of columns, for which left values are read where they stand."""


@dataclass(frozen=True)
class Panels:
    """One contraction to be written; `names` are the values of parameters. `parallel`: threads may
    share it. `room`: bytes of right panels that may be kept for loops around.
    """

    code: ContractionCode
    tiles: Tiles
    parallel: bool = True
    room: int = 0

    def write(self, names: Values) -> None:
        with with_places(self.code) as code:
            replace(self, code=code)._around(dict(names), 0)

    def _around(self, names: dict[str, ir.Value], depth: int) -> None:
        space = self.code.found.space
        if depth == len(space.around):
            self._all_blocks(names)
            return
        extent = space.around[depth]
        with loop(low_of(extent, names), high_of(extent, names)) as at:
            self._around({**names, self.code.around[depth].name: at}, depth + 1)

    def _all_blocks(self, names: Values) -> None:
        space, tiles = self.code.found.space, self.tiles
        column = low_of(space.columns, names)
        first_term, last_term = low_of(space.terms, names), high_of(space.terms, names)
        count = pieces(minus(high_of(space.columns, names), column), tiles.columns)
        # Blocks of one size: a last one of few terms would be packing, and hardly work.
        terms = minus(last_term, first_term)
        deep = most(pieces(terms, most(pieces(terms, tiles.terms), 1)), 1)
        all_terms = first_term, last_term
        kept = self._kept(names, (count, deep), column, all_terms)
        right = kept.panels if kept else self._right(count, deep)
        in_place = self._in_place
        with loop(*all_terms, step=deep) as start:
            block = start, least(plus(start, deep), last_term)
            packing = Packing(self.code, tiles, names, start)
            if kept is None:
                with loop(0, count, parallel=self.parallel) as panel:
                    packing.right(right, panel, plus(times(panel, tiles.columns), column), block)
            blocks = RowBlocks.of(self._rows(names, block), tiles, last_first=self._grows)
            with loop(0, blocks.count, parallel=self.parallel) as number:
                rows = blocks.rows(number)
                left = [] if in_place else self._left(packing, block, rows)
                packed = Packed(right, left, block, rows)
                with loop(0, count) as panel, loop(*rows, step=tiles.rows) as row:
                    at = plus(times(panel, tiles.columns), column)
                    place = kept.place(panel, start) if kept else panel
                    RegisterTile(self.code, tiles, packed, names, place, row, at).write()
                for each in left:
                    memref.DeallocOp(each)
        with ir.InsertionPoint.after(kept.loop) if kept else nullcontext():
            for each in right:
                memref.DeallocOp(each)

    def _right(self, count: ir.Value, deep: ir.Value) -> list[ir.Value]:
        """So many right panels of as many terms."""
        # Whole blocks of vectors are packed, beyond the last term too.
        shape = (count, plus(deep, self.tiles.lanes), self.tiles.columns)
        return [_panels(value.type, shape) for value in self.code.found.right]

    def _kept(
        self, names: Values, sizes: tuple[ir.Value, ir.Value], column: ir.Value, terms: Ends
    ) -> _Kept | None:
        """The right panels of all terms, packed before loops around that change nothing of them;
        None where there are none. `sizes`: how many panels each block has, and of how many terms.
        """
        around = ir.InsertionPoint.current.block.owner.operation
        if around.name not in FORS or self._right_bytes > self.room:
            return None
        space = self.code.found.space
        used = {*space.columns.names, *space.terms.names, *space.columns_of_term.names}
        if any(names.get(name) == variable_of(around) for name in used):
            return None
        ahead = Ahead()
        count, deep = sizes
        blocks = pieces(minus(terms[1], terms[0]), deep)
        panels = arith.MulIOp(count, blocks).result
        right = self._right(panels, deep)
        with loop(0, panels) as place:
            panel = arith.RemUIOp(place, most(count, 1)).result
            block = divided(place, most(count, 1))
            start = plus(arith.MulIOp(block, deep).result, terms[0])
            packing = Packing(self.code, self.tiles, names, start)
            first = plus(times(panel, self.tiles.columns), column)
            packing.right(right, place, first, (start, least(plus(start, deep), terms[1])))
        packed = place.owner.owner.operation
        outermost = ahead.move()
        if outermost is None:
            ahead.erase()
            return None
        if outermost.block.owner.operation.name == "func.func":
            packed.attributes[PARALLEL] = ir.UnitAttr.get()
        found = self.code.found
        what = listed(loaded_for(found.right, found) or ["it"])
        remark = f"{what}: packed once, before loop {loop_name(outermost)}"
        add_remark(self.code.root, NAME, remark)
        return _Kept(right, outermost, count, deep, terms[0])

    @property
    def _right_bytes(self) -> int:
        found = self.code.found
        extents = (found.roles.term, found.roles.column)
        count = prod(most_iterations(found.unit.domain, place) for place in extents)
        return count * sum(itemsize_of(value.type) for value in found.right)

    def _rows(self, names: Values, block: Ends) -> Ends:
        """Those that have any of the terms: of a triangle's first block they are few, which would
        all be in the first block of rows.
        """
        space, term = self.code.found.space, self.code.term.name
        extent = space.rows_of_term
        if extent is None or term not in extent.names:
            return low_of(space.rows, names), high_of(space.rows, names)
        first, last = f"first {term}", f"last {term}"
        extent = extent.over(term, first, last)
        names = {**names, first: block[0], last: minus(block[1], 1)}
        return low_of(extent, names), high_of(extent, names)

    def _left(self, packing: Packing, block: Ends, rows: Ends) -> list[ir.Value]:
        """Panels of the left values of these rows and terms."""
        tiles = self.tiles
        shape = (tiles.block // tiles.rows, tiles.terms + tiles.rows, tiles.rows)
        left = [_panels(value.type, shape) for value in self.code.found.left]
        with loop(*rows, step=tiles.rows) as row:
            tile = divided(minus(row, rows[0]), tiles.rows)
            packing.left(left, tile, row, rows, block)
        return left

    @property
    def _in_place(self) -> bool:
        """Whether left values are read where they stand: packed, few columns would make up for it.
        All rows have to have all terms, as others are zeros in a panel.
        """
        found, row = self.code.found, self.code.row.name
        columns = most_iterations(found.unit.domain, found.roles.column)
        if columns > FEW * self.tiles.lanes or row in found.space.terms_of_row.names:
            return False
        plain = all(self.code.is_loaded(value) for value in found.left)
        return plain and not self.code.beside(found.left, self.code.row)

    @property
    def _grows(self) -> bool:
        """Whether later rows have more to do: they come first then, so that no thread is left with
        the longest block when the others are done.
        """
        space, row = self.code.found.space, self.code.row.name
        forms = (*space.terms_of_row.highs, *space.columns_of_row.highs)
        return any(name == row and factor > 0 for form in forms for name, factor in form.terms)


@dataclass(frozen=True)
class _Kept:
    """Right panels before `loop`: `count` for each block of `deep` terms from `first` on."""

    panels: list[ir.Value]
    loop: ir.Operation
    count: ir.Value
    deep: ir.Value
    first: ir.Value

    def place(self, panel: ir.Value, start: ir.Value) -> ir.Value:
        """Of that panel in the block of terms that begins there."""
        block = divided(minus(start, self.first), self.deep)
        return arith.AddIOp(arith.MulIOp(block, self.count).result, panel).result


@dataclass(frozen=True)
class RowBlocks:
    """The rows `ends`, which are so many register `tiles`, in `count` blocks of about as many of
    them; with `last_first` from the last to the first.
    """

    ends: Ends
    count: ir.Value
    tiles: ir.Value
    height: int
    last_first: bool

    @staticmethod
    def of(ends: Ends, tiles: Tiles, *, last_first: bool) -> RowBlocks:
        height = minus(ends[1], ends[0])
        count = times(pieces(height, tiles.shares * tiles.block), tiles.shares)
        return RowBlocks(ends, count, pieces(height, tiles.rows), tiles.rows, last_first)

    def rows(self, number: ir.Value) -> Ends:
        if self.last_first:
            number = minus(minus(self.count, 1), number)
        return self._first(number), least(self._first(plus(number, 1)), self.ends[1])

    def _first(self, number: ir.Value) -> ir.Value:
        """Any blocks behind each other are as much as any others, or one tile more: threads take
        them so.
        """
        before = arith.MulIOp(number, self.tiles).result
        tile = divided(before, most(self.count, 1))
        return plus(times(tile, self.height), self.ends[0])


def _panels(kind: ir.Type, shape: Sequence[ir.Value | int]) -> ir.Value:
    extents = [n if isinstance(n, int) else ir.ShapedType.get_dynamic_size() for n in shape]
    sizes = [n for n in shape if not isinstance(n, int)]
    made = ir.MemRefType.get(extents, kind)
    return memref.AllocOp(made, sizes, [], alignment=LINE_BYTES).result

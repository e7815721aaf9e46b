"""A contraction in blocks: packed panels, and register tiles that walk along them.

Contraction, Tiles -> loops and vector operations at the insertion point.

              columns in panels of `tiles.columns`
              ┌────┬────┬──        right panel p   [term, column of the panel]   packed once
    rows in   │ ▒▒ │    │          left panel      [term, row of the tile]       packed per block
    blocks of ├────┼────┼──
    tiles     │    │    │          ▒ register tile: rows × columns of elements, in registers
    .block    └────┴────┴──          while the terms of a block go by, in their order

Source: K. Goto, R. van de Geijn, Anatomy of high-performance matrix multiplication, TOMS 34 (2008);
F. Van Zee, R. van de Geijn, BLIS: a framework for rapidly instantiating BLAS functionality, TOMS 41
(2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref, vector

from avial_lab.passes.contraction_code import ContractionCode, Values
from avial_lab.passes.index_code import (
    divided,
    high_of,
    least,
    less,
    loop,
    low_of,
    minus,
    most,
    number,
    pieces,
    plus,
    splat,
    times,
    when,
)
from avial_lab.passes.register_tiles import Ends, Packed, RegisterTile, Tiles

ALIGNMENT = 64
"""Bytes: a line of the cache, and no vector lies across two."""


@dataclass(frozen=True)
class Panels:
    """One contraction to be written; `names` are the values of parameters. `parallel`: threads may
    share it.
    """

    code: ContractionCode
    tiles: Tiles
    parallel: bool = True

    def write(self, names: Values) -> None:
        self._around(dict(names), 0)

    def _around(self, names: dict[str, ir.Value], depth: int) -> None:
        space = self.code.found.space
        if depth == len(space.around):
            self._all_blocks(names)
            return
        extent = space.around[depth]
        with loop(low_of(extent, names), high_of(extent, names)) as at:
            self._around({**names, self.code.around[depth].name: at}, depth + 1)

    def _all_blocks(self, names: Values) -> None:
        space, tiles, found = self.code.found.space, self.tiles, self.code.found
        column = low_of(space.columns, names)
        first_term, last_term = low_of(space.terms, names), high_of(space.terms, names)
        first_row, last_row = low_of(space.rows, names), high_of(space.rows, names)
        count = pieces(minus(high_of(space.columns, names), column), tiles.columns)
        terms = most(minus(last_term, first_term), 0)
        right = [_panels(value.type, (count, terms, tiles.columns)) for value in found.right]
        with loop(0, count, parallel=self.parallel) as panel:
            self._pack_right(names, panel, column, (first_term, last_term), right)
        with loop(first_term, last_term, step=tiles.terms) as start:
            block = start, least(plus(start, tiles.terms), last_term)
            with loop(first_row, last_row, step=tiles.block, parallel=self.parallel) as top:
                rows = top, least(plus(top, tiles.block), last_row)
                shape = (tiles.block // tiles.rows, tiles.terms, tiles.rows)
                left = [_panels(value.type, shape) for value in found.left]
                packed = Packed(right, left, first_term, block, rows)
                with loop(*rows, step=tiles.rows) as row:
                    self._pack_left(names, row, packed)
                with loop(0, count) as panel, loop(*rows, step=tiles.rows) as row:
                    at = plus(times(panel, tiles.columns), column)
                    RegisterTile(self.code, tiles, packed, names, panel, row, at).write()
                for each in left:
                    memref.DeallocOp(each)
        for each in right:
            memref.DeallocOp(each)

    def _pack_right(
        self,
        names: Values,
        panel: ir.Value,
        column: ir.Value,
        terms: Ends,
        right: Sequence[ir.Value],
    ) -> None:
        """One panel, its terms one after the other; zeros where there are no columns."""
        extent, tiles = self.code.found.space.columns_of_term, self.tiles
        first = plus(times(panel, tiles.columns), column)
        with loop(*terms) as term:
            at = {**names, self.code.term.name: term}
            low = most(first, low_of(extent, at))
            high = least(plus(first, tiles.columns), high_of(extent, at))
            place = panel, minus(term, terms[0])
            with when(less(minus(high, low), tiles.columns)):
                _clear(right, place, tiles.columns)
            with loop(low, high) as each:
                made = self.code.computed(
                    self.code.found.right, {**at, self.code.column.name: each}
                )
                _put(made, right, (*place, minus(each, first)))

    def _pack_left(self, names: Values, row: ir.Value, packed: Packed) -> None:
        """The rows of one tile; zeros where there are none."""
        extent, tiles = self.code.found.space.terms_of_row, self.tiles
        panel = divided(minus(row, packed.rows[0]), tiles.rows)
        last = least(plus(row, tiles.rows), packed.rows[1])
        with when(less(minus(last, row), tiles.rows)), loop(0, tiles.terms) as place:
            _clear(packed.left, (panel, place), tiles.rows)
        with loop(row, last) as each:
            at = {**names, self.code.row.name: each}
            low = most(packed.terms[0], low_of(extent, at))
            with loop(low, least(packed.terms[1], high_of(extent, at))) as term:
                made = self.code.computed(self.code.found.left, {**at, self.code.term.name: term})
                _put(made, packed.left, (panel, minus(term, packed.terms[0]), minus(each, row)))


def _panels(kind: ir.Type, shape: Sequence[ir.Value | int]) -> ir.Value:
    extents = [n if isinstance(n, int) else ir.ShapedType.get_dynamic_size() for n in shape]
    sizes = [n for n in shape if not isinstance(n, int)]
    made = ir.MemRefType.get(extents, kind)
    return memref.AllocOp(made, sizes, [], alignment=ALIGNMENT).result


def _clear(panels: Sequence[ir.Value], place: Sequence[ir.Value], count: int) -> None:
    for panel in panels:
        kind = ir.VectorType.get([count], ir.MemRefType(panel.type).element_type)
        vector.StoreOp(splat(kind, 0), panel, [*place, number(0)])


def _put(values: Sequence[ir.Value], panels: Sequence[ir.Value], place: Sequence[ir.Value]) -> None:
    for value, panel in zip(values, panels, strict=True):
        memref.StoreOp(value, panel, place)

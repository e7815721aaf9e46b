"""Left and right values of a contraction into panels, in the order in which tiles read them.

Contraction, Tiles -> loops that fill panels at the insertion point.

             what lies side by side in memory                    is read and written as
    columns of a right panel, rows of a left one    vectors, term by term
    the terms of a column, of a row                 square blocks of vectors, turned over
    neither                                         single values

Of a matrix that is mirrored at its diagonal, the terms before the tile are packed in one way, those
after it in another, and those of its own rows or columns one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from mlir import ir
from mlir.dialects import memref, vector

from avial_lab.compiler.analysis.costs.weights import MOVED
from avial_lab.compiler.analysis.polyhedral.scop import Loop
from avial_lab.compiler.codegen.contractions.contraction import ContractionCode, Values, spread
from avial_lab.compiler.codegen.contractions.register_tiles import Ends, Tiles
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    chosen,
    every,
    high_of,
    lanes_between,
    least,
    less,
    loop,
    low_of,
    minus,
    most,
    number,
    plus,
    splat,
    transposed,
    when,
)

WIDEST = 16
"""Lanes of vectors that are turned over: there are as many of them at once."""


@dataclass(frozen=True)
class Packing:
    """`names` are the values of parameters, and of loops around; `first` is the first term of the
    panels.
    """

    code: ContractionCode
    tiles: Tiles
    names: Values
    first: ir.Value

    # -- right panels: [panel, term, column]

    def right(
        self, panels: Sequence[ir.Value], panel: ir.Value, first: ir.Value, terms: Ends
    ) -> None:
        """One panel, whose first column that is; zeros where there are no columns."""
        values, width = self.code.found.right, self.tiles.columns
        for part, stretch in self._beside(values, self.code.column, first, width, terms):
            part._right(panels, panel, first, stretch)

    def _right(
        self, panels: Sequence[ir.Value], panel: ir.Value, first: ir.Value, terms: Ends
    ) -> None:
        values, extent = self.code.found.right, self.code.found.space.columns_of_term
        fixed = self.code.term.name not in extent.names
        if self.code.walks(values, self.code.column):
            self._right_by_columns(panels, panel, first, terms)
        elif fixed and self.code.walks(values, self.code.term) and self.tiles.lanes <= WIDEST:
            self._right_by_terms(panels, panel, first, terms)
        else:
            self._right_one_by_one(panels, panel, first, terms)

    def _right_by_columns(
        self, panels: Sequence[ir.Value], panel: ir.Value, first: ir.Value, terms: Ends
    ) -> None:
        extent, lanes = self.code.found.space.columns_of_term, self.tiles.lanes
        fixed = self.code.term.name not in extent.names
        ends = (low_of(extent, self.names), high_of(extent, self.names)) if fixed else None
        with self._shared("pack_right", self.tiles.columns, terms), loop(*terms) as term:
            at = {**self.names, self.code.term.name: term}
            low, high = ends or (low_of(extent, at), high_of(extent, at))
            for start in range(0, self.tiles.columns, lanes):
                column = plus(first, start)
                mask = lanes_between(low, high, column, lanes)
                of_column = {**at, self.code.column.name: column}
                made = self.code.vectors(self.code.found.right, of_column, self.code.column, mask)
                _put_vectors(made, panels, (panel, minus(term, self.first), number(start)))

    def _right_by_terms(
        self, panels: Sequence[ir.Value], panel: ir.Value, first: ir.Value, terms: Ends
    ) -> None:
        extent, lanes = self.code.found.space.columns_of_term, self.tiles.lanes
        low, high = low_of(extent, self.names), high_of(extent, self.names)
        shared = self._shared("pack_right", self.tiles.columns, terms)
        columns = partial(loop, 0, self.tiles.columns, step=lanes)
        with shared, loop(*terms, step=lanes) as term, columns() as start:
            there = lanes_between(*terms, term, lanes)
            each: list[list[ir.Value]] = []
            for k in range(lanes):
                column = plus(plus(first, start), k)
                mask = every(there, spread(_within(low, column, high), lanes))
                at = {**self.names, self.code.column.name: _clamped(low, column, high)}
                at[self.code.term.name] = term
                each.append(self.code.vectors(self.code.found.right, at, self.code.term, mask))
            self._put_turned(each, panels, (panel, minus(term, self.first)), start)

    def _right_one_by_one(
        self, panels: Sequence[ir.Value], panel: ir.Value, first: ir.Value, terms: Ends
    ) -> None:
        extent, tiles = self.code.found.space.columns_of_term, self.tiles
        with loop(*terms) as term:
            at = {**self.names, self.code.term.name: term}
            low = most(first, low_of(extent, at))
            high = least(plus(first, tiles.columns), high_of(extent, at))
            place = panel, minus(term, self.first)
            with when(less(minus(high, low), tiles.columns)):
                _clear(panels, place, tiles.columns)
            with loop(low, high) as each:
                of_column = {**at, self.code.column.name: each}
                made = self.code.computed(self.code.found.right, of_column)
                _put(made, panels, (*place, minus(each, first)))

    # -- left panels: [panel, term of the block, row of the tile]

    def left(
        self, panels: Sequence[ir.Value], panel: ir.Value, row: ir.Value, rows: Ends, terms: Ends
    ) -> None:
        """The rows of one tile from `row` on, of a block of rows and terms; zeros where there is no
        row.
        """
        values, height = self.code.found.left, self.tiles.rows
        for part, stretch in self._beside(values, self.code.row, row, height, terms):
            part._left(panels, panel, row, rows, stretch)

    def _left(
        self, panels: Sequence[ir.Value], panel: ir.Value, row: ir.Value, rows: Ends, terms: Ends
    ) -> None:
        values, space = self.code.found.left, self.code.found.space
        if space.rows_of_term is not None and self.code.walks(values, self.code.row):
            self._left_by_rows(panels, panel, row, rows, terms)
        elif self.code.walks(values, self.code.term):
            self._left_by_terms(panels, panel, row, rows, terms)
        else:
            self._left_one_by_one(panels, panel, row, rows, terms)

    def _left_by_rows(
        self, panels: Sequence[ir.Value], panel: ir.Value, row: ir.Value, rows: Ends, terms: Ends
    ) -> None:
        extent = self.code.found.space.rows_of_term
        assert extent is not None
        low, high = self._terms_of_tile(row, rows, terms)
        with self._shared("pack_left", self.tiles.rows, terms), loop(low, high) as term:
            at = {**self.names, self.code.term.name: term, self.code.row.name: row}
            high = least(high_of(extent, at), rows[1])
            mask = lanes_between(low_of(extent, at), high, row, self.tiles.rows)
            made = self.code.vectors(self.code.found.left, at, self.code.row, mask)
            _put_vectors(made, panels, (panel, minus(term, self.first), number(0)))

    def _left_by_terms(
        self, panels: Sequence[ir.Value], panel: ir.Value, row: ir.Value, rows: Ends, terms: Ends
    ) -> None:
        low, high = self._terms_of_tile(row, rows, terms)
        ends = [self._terms_of(row, k, rows, terms) for k in range(self._kinds_of_rows)]
        shared = self._shared("pack_left", self.tiles.rows, terms)
        with shared, loop(low, high, step=self.tiles.rows) as term:
            each: list[list[ir.Value]] = []
            for k in range(self.tiles.rows):
                place = plus(row, k)
                first, end = ends[k % len(ends)]
                there = chosen(less(place, rows[1]), end, terms[0])
                mask = lanes_between(first, there, term, self.tiles.rows)
                at = {**self.names, self.code.term.name: term}
                at[self.code.row.name] = least(place, minus(rows[1], 1))
                each.append(self.code.vectors(self.code.found.left, at, self.code.term, mask))
                below = least(plus(place, self.tiles.rows), minus(rows[1], 1))
                self.code.prefetch(self.code.found.left, {**at, self.code.row.name: below})
            self._put_turned(each, panels, (panel, minus(term, self.first)), number(0))

    def _terms_of(self, row: ir.Value, k: int, rows: Ends, terms: Ends) -> Ends:
        """Those of the block that the k-th row of a tile has, or the last row."""
        extent = self.code.found.space.terms_of_row
        at = {**self.names, self.code.row.name: least(plus(row, k), minus(rows[1], 1))}
        return most(terms[0], low_of(extent, at)), least(terms[1], high_of(extent, at))

    @property
    def _kinds_of_rows(self) -> int:
        """How many rows of a tile may differ in their terms."""
        hangs = self.code.row.name in self.code.found.space.terms_of_row.names
        return self.tiles.rows if hangs else 1

    def _shared(self, name: str, width: int, terms: Ends) -> AbstractContextManager[None]:
        """Code that packs so many values of each term, in a function of its own."""
        return self.code.shared.function(name, MOVED.additions * width, terms)

    def _terms_of_tile(self, row: ir.Value, rows: Ends, terms: Ends) -> Ends:
        """From the first one that some row has to the last."""
        ends = [self._terms_of(row, k, rows, terms) for k in range(self._kinds_of_rows)]
        return least(*(low for low, _ in ends)), most(*(high for _, high in ends))

    def _left_one_by_one(
        self, panels: Sequence[ir.Value], panel: ir.Value, row: ir.Value, rows: Ends, terms: Ends
    ) -> None:
        extent, tiles = self.code.found.space.terms_of_row, self.tiles
        with self._shared("pack_left", tiles.rows, terms):
            last = least(plus(row, tiles.rows), rows[1])
            with when(less(minus(last, row), tiles.rows)), loop(*terms) as term:
                _clear(panels, (panel, minus(term, self.first)), tiles.rows)
            with loop(row, last) as each:
                at = {**self.names, self.code.row.name: each}
                low = most(terms[0], low_of(extent, at))
                with loop(low, least(terms[1], high_of(extent, at))) as term:
                    of_term = {**at, self.code.term.name: term}
                    made = self.code.computed(self.code.found.left, of_term)
                    _put(made, panels, (panel, minus(term, self.first), minus(each, row)))

    # -- mirrored at a diagonal

    def _beside(
        self, values: Sequence[ir.Value], other: Loop, first: ir.Value, width: int, terms: Ends
    ) -> Iterator[tuple[Packing, Ends]]:
        """The terms in parts where it is known on which side of the tile's rows, or columns, they
        are, in their order: what a part writes beyond its end the next one writes again.
        """
        beside = self.code.beside(values, other)
        if not beside:
            yield self, terms
            return
        before, after = (replace(self, code=code) for code in beside)
        low, high = (least(most(end, terms[0]), terms[1]) for end in (first, plus(first, width)))
        yield before, (terms[0], low)
        yield self, (low, high)
        yield after, (high, terms[1])

    def _put_turned(
        self,
        each: Sequence[Sequence[ir.Value]],
        panels: Sequence[ir.Value],
        place: tuple[ir.Value, ir.Value],
        start: ir.Value,
    ) -> None:
        """Vectors of terms, for each column or row, as vectors of those for each term."""
        for panel, vectors in zip(panels, zip(*each, strict=True), strict=True):
            for k, turned in enumerate(transposed(vectors)):
                vector.StoreOp(turned, panel, [place[0], plus(place[1], k), start])


def _within(low: ir.Value, value: ir.Value, high: ir.Value) -> ir.Value:
    return every(less(value, high), less(minus(low, 1), value))


def _clamped(low: ir.Value, value: ir.Value, high: ir.Value) -> ir.Value:
    return most(least(value, minus(high, 1)), low)


def _put_vectors(
    values: Sequence[ir.Value], panels: Sequence[ir.Value], place: Sequence[ir.Value]
) -> None:
    for value, panel in zip(values, panels, strict=True):
        vector.StoreOp(value, panel, place)


def _clear(panels: Sequence[ir.Value], place: Sequence[ir.Value], count: int) -> None:
    for panel in panels:
        kind = ir.VectorType.get([count], ir.MemRefType(panel.type).element_type)
        vector.StoreOp(splat(kind, 0), panel, [*place, number(0)])


def _put(values: Sequence[ir.Value], panels: Sequence[ir.Value], place: Sequence[ir.Value]) -> None:
    for value, panel in zip(values, panels, strict=True):
        memref.StoreOp(value, panel, place)

"""A register tile: elements of some rows and columns, in registers while their terms go by.

Packed panels -> loops and vector operations at the insertion point.

             columns: vectors of `lanes`         per term: load the vectors of the right panel,
           ┌────────┬────────┬────────┐          spread each value of the left one, combine
    rows   │ vector │ vector │ vector │
           ├────────┼────────┼────────┤          cut by an end, or by a diagonal: elements that
           │        │        │        │          are not there are masked out
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from avial_lab.passes.contraction_code import ContractionCode, Values, spread
from avial_lab.passes.index_code import (
    divided,
    every,
    high_of,
    least,
    less,
    loop,
    low_of,
    minus,
    most,
    number,
    plus,
    splat,
    when,
)
from avial_lab.polyhedra.affine import Affine

Ends = tuple[ir.Value, ir.Value]
"""Half-open."""


@dataclass(frozen=True)
class Tiles:
    """Elements of a register tile (`columns` are whole vectors of `lanes`), and how many terms and
    rows of them stand in one block.
    """

    rows: int
    columns: int
    lanes: int
    terms: int
    block: int


@dataclass(frozen=True)
class Packed:
    """Panels of a block of terms: of right values `[panel, term, column of the panel]`, of left
    ones `[panel, term, row of the tile]`; and the terms and rows of the block.
    """

    right: Sequence[ir.Value]
    left: Sequence[ir.Value]
    terms: Ends
    rows: Ends


@dataclass(frozen=True)
class RegisterTile:
    """`row` and `column` are its first ones, `panel` that of its right values."""

    code: ContractionCode
    tiles: Tiles
    packed: Packed
    names: Values
    panel: ir.Value
    row: ir.Value
    column: ir.Value

    def write(self) -> None:
        rows = self._rows()
        columns = self._columns_of(rows if self._ragged else rows[:1])
        if not self._triangular:
            first, end = self.packed.terms
            self._add(columns, (plus(first, 0), plus(end, 0)))
            return
        lows, highs = zip(*self._terms_of(rows), strict=True)
        low = most(*dict.fromkeys(lows))
        high = most(least(*dict.fromkeys(highs)), low)
        # Terms that not all of the rows have are added row by row: before the others, and after.
        if self._hangs_on_row(self.code.found.space.terms_of_row.lows):
            self._row_by_row(lambda first, end: (first, least(end, low)))
        with when(less(low, high)):
            self._add(columns, (low, high))
        if self._hangs_on_row(self.code.found.space.terms_of_row.highs):
            self._row_by_row(lambda first, end: (most(first, high), end))

    def _rows(self) -> list[ir.Value]:
        """Those that are not there are masked out, but their ends and addresses have to be some."""
        last = minus(self.packed.rows[1], 1)
        return [least(plus(self.row, k), last) for k in range(self.tiles.rows)]

    def _hangs_on_row(self, forms: Sequence[Affine]) -> bool:
        return any(name == self.code.row.name for form in forms for name, _ in form.terms)

    @property
    def _triangular(self) -> bool:
        return self.code.row.name in self.code.found.space.terms_of_row.names

    @property
    def _ragged(self) -> bool:
        return self.code.row.name in self.code.found.space.columns_of_row.names

    @property
    def _vectors(self) -> int:
        return self.tiles.columns // self.tiles.lanes

    def _terms_of(self, rows: Sequence[ir.Value]) -> list[Ends]:
        """Those of each row that lie in the block."""
        first, end = self.packed.terms
        extent = self.code.found.space.terms_of_row
        lows = self._by_row(extent.lows, rows, lambda at: most(first, low_of(extent, at)))
        highs = self._by_row(extent.highs, rows, lambda at: least(end, high_of(extent, at)))
        return list(zip(lows, highs, strict=True))

    def _columns_of(self, rows: Sequence[ir.Value]) -> list[Ends]:
        extent, row = self.code.found.space.columns_of_row, self.code.row.name
        each = ({**self.names, row: value} for value in rows)
        return [(low_of(extent, at), high_of(extent, at)) for at in each]

    def _by_row(
        self,
        forms: Sequence[Affine],
        rows: Sequence[ir.Value],
        value: Callable[[Values], ir.Value],
    ) -> list[ir.Value]:
        """The value of each row, which is one where the forms say so."""
        if not self._hangs_on_row(forms):
            return [value(self.names)] * len(rows)
        return [value({**self.names, self.code.row.name: row}) for row in rows]

    # -- which elements are there

    def _has_some(self, columns: Sequence[Ends]) -> ir.Value:
        """Whether some row may have a column of the tile."""
        low, high = least(*(low for low, _ in columns)), most(*(high for _, high in columns))
        return every(less(low, plus(self.column, self.tiles.columns)), less(self.column, high))

    def _masks(self, columns: Ends) -> list[ir.Value]:
        """For each vector of a row, which of its columns are there."""
        low, high = columns
        kind = ir.VectorType.get([self.tiles.lanes], ir.IntegerType.get_signless(1))
        found: list[ir.Value] = []
        for k in range(self._vectors):
            first = plus(self.column, k * self.tiles.lanes)
            mask = vector.CreateMaskOp(kind, [self._lanes(high, first)]).result
            if self._ragged:
                before = vector.CreateMaskOp(kind, [self._lanes(low, first)]).result
                mask = every(mask, arith.XOrIOp(before, splat(kind, 1)).result)
            found.append(mask)
        return found

    def _lanes(self, end: ir.Value, first: ir.Value) -> ir.Value:
        return least(most(minus(end, first), 0), self.tiles.lanes)

    def _if_there(self, row: int, masks: Sequence[ir.Value]) -> list[ir.Value]:
        """No column of a row that the block does not have."""
        there = spread(less(plus(self.row, row), self.packed.rows[1]), self.tiles.lanes)
        return [every(mask, there) for mask in masks]

    # -- terms

    def _add(self, columns: Sequence[Ends], terms: Ends) -> None:
        """These terms to the elements of the tile. (They are values of their own, so that it is the
        same code whether they are those of the block or not.)
        """
        work = self.tiles.rows * self.tiles.columns * len(self.code.found.inner)
        with when(self._has_some(columns)), self._shared("add_terms", work):
            rows, each = self._rows(), [self._masks(ends) for ends in columns]
            each = each if self._ragged else each * len(rows)
            masks = [m for k, of_row in enumerate(each) for m in self._if_there(k, of_row)]
            self._through(rows, masks, terms, number(0))

    def _shared(self, name: str, work: int) -> AbstractContextManager[None]:
        """Code in a function of its own, that does so much in each term of the block."""
        return self.code.shared.function(name, work, self.packed.terms)

    def _row_by_row(self, part: Callable[[ir.Value, ir.Value], Ends]) -> None:
        """Of the terms of each row those that `part` makes of their ends."""
        with loop(self.row, least(plus(self.row, self.tiles.rows), self.packed.rows[1])) as row:
            low, high = part(*self._terms_of([row])[0])
            (columns,) = self._columns_of([row])
            # What it does is counted among the terms that all rows have.
            with when(less(low, high)), self._shared("add_to_row", 0):
                self._through([row], self._masks(columns), (low, high), minus(row, self.row))

    def _through(
        self, rows: Sequence[ir.Value], masks: Sequence[ir.Value], terms: Ends, first: ir.Value
    ) -> None:
        """Load the elements of those rows, go through the terms, store them; `first` is the place
        of the first of them in the tile.
        """
        array, lanes = self.code.array, self.tiles.lanes
        places = [place for row in rows for place in self._places(row)]
        kind = ir.VectorType.get([lanes], ir.MemRefType(array.type).element_type)
        none = splat(kind, 0)
        loaded = [
            vector.MaskedLoadOp(kind, array, place, mask, none).result
            for place, mask in zip(places, masks, strict=True)
        ]
        if len(rows) > 1:
            self._prefetch(rows)
        steps = scf.ForOp(*terms, number(1), loaded)
        with ir.InsertionPoint(steps.body):
            elements = list(steps.inner_iter_args)
            scf.YieldOp(self._step(steps.induction_variable, elements, len(rows), first))
        for value, place, mask in zip(steps.results, places, masks, strict=True):
            vector.MaskedStoreOp(array, place, mask, value)

    def _places(self, row: ir.Value) -> list[list[ir.Value]]:
        """The subscripts of the first element of each vector in a row."""
        at = {**self.names, self.code.row.name: row, self.code.column.name: self.column}
        *outer, column = self.code.place(at)
        return [[*outer, plus(column, k * self.tiles.lanes)] for k in range(self._vectors)]

    def _prefetch(self, rows: Sequence[ir.Value]) -> None:
        """The elements of the tile below, which are on their way while the terms of this one go by;
        below the last one it asks for a row of this again.
        """
        last = minus(self.packed.rows[1], 1)
        for row in rows:
            for place in self._places(least(plus(row, self.tiles.rows), last)):
                memref.PrefetchOp(self.code.array, place, True, 3, True)

    def _step(
        self, term: ir.Value, elements: Sequence[ir.Value], rows: int, first: ir.Value
    ) -> list[ir.Value]:
        """One term for every element of so many rows."""
        found, lanes, packed = self.code.found, self.tiles.lanes, self.packed
        at_term = minus(term, packed.terms[0])
        tile = divided(minus(self.row, packed.rows[0]), self.tiles.rows)
        of_column: list[dict[ir.Value, ir.Value]] = [{} for _ in range(self._vectors)]
        of_row: list[dict[ir.Value, ir.Value]] = [{} for _ in range(rows)]

        def load_right(value: ir.Value, panel: ir.Value) -> None:
            kind = ir.VectorType.get([lanes], value.type)
            for k, known in enumerate(of_column):
                place = [self.panel, at_term, number(k * lanes)]
                known[value] = vector.LoadOp(kind, panel, place).result

        def load_left(value: ir.Value, panel: ir.Value, row: int) -> None:
            one = memref.LoadOp(panel, [tile, at_term, plus(first, row)]).result
            of_row[row][value] = spread(one, lanes)

        made, old = list(elements), found.element.op.results[0]
        for stage in self.code.stages:
            used = {operand for op in stage for operand in op.operands}
            for value, panel in zip(found.right, packed.right, strict=True):
                if value in used and value not in of_column[0]:
                    load_right(value, panel)
            for row in range(rows):
                for value, panel in zip(found.left, packed.left, strict=True):
                    if value in used and value not in of_row[row]:
                        load_left(value, panel, row)
                for k in range(self._vectors):
                    place = row * self._vectors + k
                    known = of_column[k] | of_row[row] | {old: made[place]}
                    made[place] = self.code.combined(stage, known, self.names, lanes)
            old = stage[-1].results[0]
        return made

"""A register tile: elements of some rows and columns, in registers while their terms go by.

Packed panels -> loops and vector operations at the insertion point.

             columns: vectors of `lanes`         per term: load the vectors of the right panel,
           ┌────────┬────────┬────────┐          spread each value of the left one, combine
    rows   │ vector │ vector │ vector │
           ├────────┼────────┼────────┤          cut by an end, or by a diagonal: elements that
           │        │        │        │          are not there are masked out
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.codegen.contractions.contraction import ContractionCode, Values, spread
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    chosen,
    divided,
    either,
    every,
    high_of,
    least,
    less,
    low_of,
    minus,
    most,
    number,
    plus,
    splat,
    when,
)

Ends = tuple[ir.Value, ir.Value]
"""Half-open."""


@dataclass(frozen=True)
class Tiles:
    """Elements of a register tile (`columns` are whole vectors of `lanes`), how many terms and rows
    of them stand in one block at most, and of how many the blocks of rows are a multiple.
    """

    rows: int
    columns: int
    lanes: int
    terms: int
    block: int
    shares: int


@dataclass(frozen=True)
class Packed:
    """Panels of a block of terms: of right values `[panel, term, column of the panel]`, of left
    ones `[panel, term, row of the tile]`, none where they are read in place; and the terms and rows
    of the block.
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
            self._add(columns, self.packed.terms, ())
            return
        of_rows = self._terms_of(rows)
        terms = self._ends(of_rows)
        with when(less(*terms)):
            self._add(columns, terms, of_rows)

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

    def _is_whole(self, columns: Sequence[Ends]) -> ir.Value:
        """Whether all elements of the tile are there: most tiles are, and masks cost as much as
        many terms do.
        """
        lows, highs = zip(*columns, strict=True)
        row, column = (
            plus(first, count - 1)
            for first, count in ((self.row, self.tiles.rows), (self.column, self.tiles.columns))
        )
        inside = [less(row, self.packed.rows[1]), less(column, least(*highs))]
        if self._ragged:
            inside.append(less(most(*lows), plus(self.column, 1)))
        return every(*inside)

    def _masks_of(self, columns: Sequence[Ends]) -> list[ir.Value]:
        """For each vector of the tile, row by row."""
        each = [self._masks(ends) for ends in columns]
        each = each if self._ragged else each * self.tiles.rows
        return [mask for k, of_row in enumerate(each) for mask in self._if_there(k, of_row)]

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

    def _add(self, columns: Sequence[Ends], terms: Ends, of_rows: Sequence[Ends]) -> None:
        """Those terms of the block that rows have to the elements of the tile; `of_rows` are those
        of each, where they are not the same for all. (Both are found out by the caller: the same
        code is for all triangles then.)
        """
        work = self.tiles.rows * self.tiles.columns * len(self.code.found.inner)
        shared = self.code.shared.function("add_terms", work, terms)
        with when(self._has_some(columns)), shared:
            rows, whole = self._rows(), self._is_whole(columns)
            places = [place for row in rows for place in self._places(row)]
            made = self._loaded(places, whole, columns)
            self._prefetch(rows)
            for stretch, cut in self._stretches(of_rows):
                made = self._go_through(stretch, made, cut)
            self._put_back(made, places, whole, columns)

    def _loaded(
        self, places: Sequence[Sequence[ir.Value]], whole: ir.Value, columns: Sequence[Ends]
    ) -> list[ir.Value]:
        array = self.code.array
        kind = ir.VectorType.get([self.tiles.lanes], ir.MemRefType(array.type).element_type)
        branch = scf.IfOp(whole, [kind] * len(places), has_else=True)
        with ir.InsertionPoint(branch.regions[0].blocks[0]):
            scf.YieldOp([vector.LoadOp(kind, array, place).result for place in places])
        with ir.InsertionPoint(branch.regions[1].blocks[0]):
            none, each = splat(kind, 0), zip(places, self._masks_of(columns), strict=True)
            scf.YieldOp([vector.MaskedLoadOp(kind, array, *at, none).result for at in each])
        return list(branch.results)

    def _put_back(
        self,
        made: Sequence[ir.Value],
        places: Sequence[Sequence[ir.Value]],
        whole: ir.Value,
        columns: Sequence[Ends],
    ) -> None:
        def all_of_them() -> None:
            for value, place in zip(made, places, strict=True):
                vector.StoreOp(value, self.code.array, place)

        def those_there() -> None:
            masks = self._masks_of(columns)
            for value, place, mask in zip(made, places, masks, strict=True):
                vector.MaskedStoreOp(self.code.array, place, mask, value)

        either(whole, all_of_them, those_there)

    def _stretches(self, each: Sequence[Ends]) -> Iterator[tuple[Ends, Sequence[Ends]]]:
        """Stretches of terms in their order, with the ends of those that each row has where they
        are not the same for all: before those that all rows have, and after.

            row 0    ·········▒▒▒▒▒▒▒▒
            row 1    ·········▒▒▒▒▒▒▒▒▒▒
            row 2    ·········▒▒▒▒▒▒▒▒▒▒▒▒
                     low      high    end
        """
        if not each:
            yield self.packed.terms, ()
            return
        extent = self.code.found.space.terms_of_row
        first, end = self._ends(each)
        low = most(*dict.fromkeys(low for low, _ in each))
        high = most(least(*dict.fromkeys(high for _, high in each)), low)
        if self._hangs_on_row(extent.lows):
            yield (first, least(end, low)), each
        yield (low, high), ()
        if self._hangs_on_row(extent.highs):
            yield (high, end), each

    def _ends(self, each: Sequence[Ends]) -> Ends:
        """From the first term that some row has to the last."""
        lows, highs = zip(*each, strict=True)
        return least(*dict.fromkeys(lows)), most(*dict.fromkeys(highs))

    def _go_through(
        self, terms: Ends, elements: Sequence[ir.Value], cut: Sequence[Ends]
    ) -> list[ir.Value]:
        """The elements with these terms, each row those between its ends if it has such."""
        steps = scf.ForOp(*terms, number(1), list(elements))
        with ir.InsertionPoint(steps.body):
            term, old = steps.induction_variable, list(steps.inner_iter_args)
            made = self._step(term, old)
            for row, (low, high) in enumerate(cut):
                there = every(less(minus(low, 1), term), less(term, high))
                for place in range(row * self._vectors, (row + 1) * self._vectors):
                    made[place] = chosen(there, made[place], old[place])
            scf.YieldOp(made)
        return list(steps.results)

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

    def _step(self, term: ir.Value, elements: Sequence[ir.Value]) -> list[ir.Value]:
        """One term for every element."""
        found, lanes, packed, rows = self.code.found, self.tiles.lanes, self.packed, self.tiles.rows
        at_term = minus(term, packed.terms[0])
        tile = divided(minus(self.row, packed.rows[0]), self.tiles.rows)
        of_column: list[dict[ir.Value, ir.Value]] = [{} for _ in range(self._vectors)]
        of_row: list[dict[ir.Value, ir.Value]] = [{} for _ in range(rows)]

        def load_right(value: ir.Value, panel: ir.Value) -> None:
            kind = ir.VectorType.get([lanes], value.type)
            for k, known in enumerate(of_column):
                place = [self.panel, at_term, number(k * lanes)]
                known[value] = vector.LoadOp(kind, panel, place).result

        def load_left(value: ir.Value, panel: ir.Value | None, row: int) -> None:
            if panel is None:
                at = {**self.names, self.code.row.name: places[row], self.code.term.name: term}
                (one,) = self.code.computed([value], at)
            else:
                one = memref.LoadOp(panel, [tile, at_term, number(row)]).result
            of_row[row][value] = spread(one, lanes)

        places = [] if packed.left else self._rows()
        panels = packed.left or [None] * len(found.left)
        made, old = list(elements), found.element.op.results[0]
        for stage in self.code.stages:
            used = {operand for op in stage for operand in op.operands}
            for value, panel in zip(found.right, packed.right, strict=True):
                if value in used and value not in of_column[0]:
                    load_right(value, panel)
            for row in range(rows):
                for value, panel in zip(found.left, panels, strict=True):
                    if value in used and value not in of_row[row]:
                        load_left(value, panel, row)
                for k in range(self._vectors):
                    place = row * self._vectors + k
                    known = of_column[k] | of_row[row] | {old: made[place]}
                    made[place] = self.code.combined(stage, known, self.names, lanes)
            old = stage[-1].results[0]
        return made

"""Arrays that lie across each other: squares of them are loaded along the one, turned in registers,
and stored along the other.

Functions of loops -> the same operations on every element, so the same bits.

Source: M. S. Lam, E. E. Rothberg, M. E. Wolf, The cache performance and optimizations of blocked
algorithms, ASPLOS 1991, section 2, has such blocks for caches; how a square is turned in registers
is in `index_code.transposed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from mlir import ir
from mlir.dialects import affine, arith

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import may_run_at_once
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    either,
    less,
    loop,
    number,
    plus,
    transposed,
)
from avial_lab.compiler.codegen.loops.unroll_and_jam import (
    Values,
    copy_with,
    empty_like,
    in_blocks,
    shifted,
    variable_of,
)
from avial_lab.compiler.codegen.vectors.row_vectors import (
    WIDTHS,
    RowCode,
    bits_of,
    columns_of_row,
    operands_in,
    put_constants_before,
    write_past_caches,
)
from avial_lab.compiler.codegen.vectors.streaming import (
    remark_of,
    stores_past_caches,
    wait_for_memory,
)
from avial_lab.compiler.ir.attributes import INDEPENDENT, PARALLEL
from avial_lab.compiler.ir.effects import LOADS, is_pure
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import body_of, defined_in, end_of, parent_of
from avial_lab.compiler.ir.operations import itemsize_of, loops_in
from avial_lab.compiler.ir.remarks import add_remark, loop_name
from avial_lab.machine.constants import LINE_BYTES
from avial_lab.machine.cpu import this_cpu

NAME = "transpose-in-registers"

MOST_OPERATIONS = 400
"""In all rows of a tile: what is worth to be compiled."""

TIMES_LAST = 1
"""All arrays of a function are so many times as large as the last cache where one that lies across
is written past it: of a line that is stored whole nothing has to be loaded.
"""


Past = Callable[[], list[ir.Operation]]
"""The stores that may go past the caches."""


@dataclass(frozen=True)
class TransposeInRegisters:
    """Run a loop over columns for some rows at once, where some arrays lie along the columns and
    others along the rows: in the latter a vector is an element of each row.

    before:  affine.for %i { affine.for %j { B[j, i] = f(A[i, j]) } {avial.independent} }
    after:   affine.for %i step 8 { scf.for %j step 8 {
               %a = A[i, j : j + 8]  %b = A[i + 1, j : j + 8]  …      8 vectors
               %c, %d, … = f(%a), f(%b), … transposed
               B[j, i : i + 8] = %c  B[j + 1, i : i + 8] = %d  … } }

    Element by element each store is to another line of the cache, which is gone again before the
    next element of it comes. There are as many rows as a line holds elements; rows and columns that
    are left over run one by one.

    A large array that lies across is written past the caches (`--without streaming-stores` is about
    the others), but where it begins in the middle of a line.

    `lanes`: elements in a vector of 32 bits each, `cache`: bytes of the last one; 0 for those of
    this machine.
    """

    lanes: int = 0
    cache: int = 0

    def __call__(self, module: ir.Operation) -> None:
        last = self.cache or this_cpu().last_bytes
        with module.context:
            for function in functions_without_aliases(module):
                for row in [op for op in loops_in(function) if INDEPENDENT in op.attributes]:
                    past = partial(stores_past_caches, row, function, last, TIMES_LAST)
                    tiles = _tiles_of(row, self.lanes, past)
                    if tiles is not None:
                        tiles.write()

    def __str__(self) -> str:
        given = [
            f"{name}={getattr(self, name)}" for name in ("lanes", "cache") if getattr(self, name)
        ]
        return f"{NAME}{{{' '.join(given)}}}" if given else NAME


def _tiles_of(row: ir.Operation, given: int, past: Past) -> _Tiles | None:
    """Those of a loop over columns. None where all arrays lie alike, or where there is no square of
    them.
    """
    columns = columns_of_row(row)
    stores = RowCode(row, 1).stores
    bits = bits_of(stores[0].operands[0].type) if stores else None
    if columns is None or bits not in WIDTHS:
        return None
    lanes = given * 32 // bits if given else this_cpu().lanes(bits // 8)
    if lanes < 2 or len(columns) < lanes:
        return None
    put_constants_before(row)
    code = RowCode(row, lanes)
    if all(code.moves(op) is not None for op in code.accesses):
        return None
    chain = [row]
    while (around := _around(chain[0])) is not None:
        chain.insert(0, around)
        tiles = _Tiles(list(chain), code, max(lanes, LINE_BYTES * 8 // bits), columns, past)
        if tiles.across and tiles.can_be():
            return tiles
    return None


def _around(inner: ir.Operation) -> ir.Operation | None:
    """The loop around that does nothing else, but for what `inner` takes from there."""
    around = parent_of(inner)
    if around is None or around.name != "affine.for" or len(around.results):
        return None
    others = [op for op in body_of(around) if op != inner]
    plain = all(op.name in LOADS or is_pure(op) for op in others)
    return around if plain else None


@dataclass(frozen=True)
class _Tiles:
    """`chain`: the loop over rows, that over columns, and those between; `count` rows at once."""

    chain: Sequence[ir.Operation]
    code: RowCode
    count: int
    columns: range
    past: Past

    @property
    def rows(self) -> ir.Operation:
        return self.chain[0]

    @property
    def line(self) -> int:
        """Elements in a line of the cache."""
        return LINE_BYTES // itemsize_of(self.code.stores[0].operands[0].type)

    @cached_property
    def streamed(self) -> list[ir.Operation]:
        """The store across the rows that may go past the caches, if it is one and each row of its
        array begins where a line of the cache does, or none.
        """
        found = [op for op in self.past() if op in self.across]
        return found if len(found) == 1 and self._goes_by_lines(found[0]) else []

    def _goes_by_lines(self, store: ir.Operation) -> bool:
        """Whether the next column is whole lines further: all rows of the array are whole lines,
        and only which of them it is hangs on the column.
        """
        _, array, *where = store.operands
        kind, form = ir.MemRefType(array.type), ir.AffineMapAttr(store.attributes["map"]).value
        last = [where[k] for k in operands_in(form.results[-1], form)]
        return kind.shape[-1] % self.line == 0 and self.code.variable not in last

    @cached_property
    def across(self) -> list[ir.Operation]:
        """The accesses whose elements lie side by side in the rows, and not in the columns."""
        over_rows = RowCode(self.rows, self.code.lanes)
        accesses = self.code.accesses
        return [op for op in accesses if self.code.moves(op) is None and over_rows.moves(op) == 1]

    def can_be(self) -> bool:
        """Whether rows may run at once, and all else is vectors along the columns."""
        bounds = (value for each in self.chain[1:] for value in operands_of_ends(each))
        lows, highs = ([end for end in ends if end is not None] for ends in known_ends(self.rows))
        few = bool(lows and highs) and min(highs) - max(lows) < self.count
        return (
            not few
            and ir.IntegerAttr(self.rows.attributes["step"]).value == 1
            and not any(defined_in(self.rows, value) for value in bounds)
            and len(self.code.body) * self.count <= MOST_OPERATIONS
            and len(self.across) < len(self.code.accesses)
            and self.code.is_known(self.across)
            and self.code.loads_first()
            and not any(
                defined_in(self.rows, op.operands[op.name == "affine.store"])
                for op in self.code.accesses
            )
            and (PARALLEL in self.rows.attributes or may_run_at_once(self.rows))
        )

    def write(self) -> None:
        names = f"{loop_name(self.rows)} and {loop_name(self.code.loop)}"
        remark = f"{self.count} × {self.code.lanes} iterations of {names} transposed in registers"
        add_remark(self.rows, NAME, remark)
        if self.streamed:
            add_remark(self.rows, NAME, remark_of(self.streamed))
        blocks = in_blocks(self.rows, self.count)
        with self.rows.location, ir.InsertionPoint(blocks.end):
            variable = variable_of(self.rows)
            rows: list[Values] = [{variable: shifted(blocks.first, k)} for k in range(self.count)]
            self._write(self.rows, rows)
        self.rows.erase()

    def _write(self, around: ir.Operation, rows: Sequence[Values]) -> None:
        """The body of a loop of the chain for all rows: each loop inside once for all of them."""
        for op in body_of(around):
            if op == self.code.loop:
                self._write_columns(rows)
            elif op in self.chain:
                made = empty_like(op)
                with ir.InsertionPoint(end_of(made)):
                    inside = {variable_of(op): variable_of(made)}
                    self._write(op, [{**known, **inside} for known in rows])
            else:
                for known in rows:
                    copy_with([op], known)

    def _write_columns(self, rows: Sequence[Values]) -> None:
        lanes, low = self.code.lanes, self.columns.start
        whole = low + len(self.columns) // lanes * lanes
        each = [replace(self.code, names=known) for known in rows]
        around = [code.around() for code in each]

        def write(past: Sequence[ir.Operation]) -> None:
            with loop(low, whole, step=lanes) as column:
                self._write_tile(each, around, column, past)
            if past:
                wait_for_memory()

        past = self.streamed
        if past:
            first = each[0].position(past[0], number(low))
            begins = less(arith.andi(first, number(self.line - 1)), 1)
            either(begins, lambda: write(past), lambda: write(()))
        else:
            write(())
        if whole == self.columns.stop:
            return
        left = affine.AffineForOp(whole, self.columns.stop)
        with ir.InsertionPoint(left.body):
            for known in rows:
                copy_with(self.code.body, {**known, self.code.variable: left.induction_variable})
            affine.AffineYieldOp([])

    def _write_tile(
        self,
        rows: Sequence[RowCode],
        around: Sequence[Values],
        column: ir.Value,
        past: Sequence[ir.Operation],
    ) -> None:
        lanes = self.code.lanes
        squares = [rows[k : k + lanes] for k in range(0, self.count, lanes)]
        places = [plus(column, k) if k else column for k in range(lanes)]
        values: list[Values] = [dict(known) for known in around]
        for op in [op for op in self.across if op.name == "affine.load"]:
            with op.location:
                turned = [
                    vector
                    for first, *_ in squares
                    for vector in transposed([first.vector(op, place) for place in places])
                ]
            for known, vector in zip(values, turned, strict=True):
                known[op.results[0]] = vector
        for code, known in zip(rows, values, strict=True):
            known.update(code.computed(column, known))
            for op in [op for op in code.stores if op not in self.across]:
                with op.location:
                    code.store_one(op, column, known[op.operands[0]])
        for op in [op for op in self.code.stores if op in self.across]:
            stored = [known[op.operands[0]] for known in values]
            for k, (first, *_) in enumerate(squares):
                with op.location:
                    square = transposed(stored[k * lanes :][:lanes])
                    for place, vector in zip(places, square, strict=True):
                        made = first.store_one(op, place, vector)
                        if op in past:
                            write_past_caches(made, self.code.nbytes)

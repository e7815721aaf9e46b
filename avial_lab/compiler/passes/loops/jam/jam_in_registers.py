"""Short rows of sums stay in registers while a loop around adds to them; several of them at once.

Functions of loops -> the same operations on every element, in the same order, so the same bits.

Source: S. Carr, K. Kennedy, Improving the ratio of memory operations to floating-point operations
in loops, TOPLAS 16 (1994); here what is kept is a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.accesses.no_alias import ALLOCATIONS, functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import may_run_at_once, surely_runs
from avial_lab.compiler.codegen.loops.iter_args import hand_on, with_more
from avial_lab.compiler.codegen.loops.unroll_and_jam import MOST_VECTORS, put_side_by_side
from avial_lab.compiler.codegen.vectors.row_vectors import (
    RowCode,
    bits_of,
    columns_of_row,
)
from avial_lab.compiler.ir.attributes import INDEPENDENT, PARALLEL
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import body_of, defined_in
from avial_lab.compiler.ir.operations import loops_in, operations_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.ir.views import view_chain
from avial_lab.machine.constants import FMA_LATENCY_CYCLES, VECTOR_UNITS
from avial_lab.machine.cpu import this_cpu

NAME = "jam-in-registers"

MOST_ROWS = FMA_LATENCY_CYCLES * VECTOR_UNITS
"""Side by side: as many as hide how long a product and a sum take."""

MOST_OPERATIONS = 400
"""In the body of the rows together."""

AFFINE = ("affine.load", "affine.store")


@dataclass(frozen=True)
class JamInRegisters:
    """Load a row of few elements as vectors before the loop that adds to it, hand it on, store it
    behind; and do so for several iterations of the loop around at once.

    before:  affine.for %i { affine.for %k { %a = affine.load %A[%i, %k]
               affine.for %j = 0 to 4 { C[%i, %j] = %a * B[%k, %j] + C[%i, %j] } } }
    after:   affine.for %i step 8 { %c0 = vector.load %C[%i, 0] : vector<4xf64>  … %c7 = …
               %s:8 = affine.for %k iter_args(…) {
                 %b = vector.load %B[%k, 0]  %t0 = math.fma (broadcast %A[%i, %k]), %b, %c0  … }
               vector.store %s#0, %C[%i, 0]  … }

    A row that is stored and loaded again for each term waits for that, and one alone waits for each
    of its sums. What is left over from whole vectors is a shorter one.

    `rows`: how many at once; 0 where that is to follow from the machine's registers and the loop.
    """

    rows: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                self._hold_in(function)

    def __str__(self) -> str:
        return f"{NAME}{{rows={self.rows}}}" if self.rows else NAME

    def _hold_in(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                # Allocations beside the loops may go with what needed them.
                for inner in [v.operation for v in block.operations if len(v.operation.regions)]:
                    if inner.name != "affine.for" or not self._hold(inner):
                        self._hold_in(inner)

    def _hold(self, loop: ir.Operation) -> bool:
        """Whether rows of sums in its iterations are in registers now."""
        rows = list(filter(_is_short_row, loops_in(loop)))
        if not rows:
            return False
        for row in rows:
            _put_before(row)
        body = body_of(loop)
        sums = [_Sum(op) for op in body if _is_around_rows(op)]
        alone = [op for op in body if _is_short_row(op) and _is_plain(RowCode(op, 1))]
        wanted = sums or any(_shares(row, loop) for row in alone)
        if not wanted or not _may_stand_side_by_side(loop):
            return False
        if not all(each.may_be_held() for each in sums):
            return False
        vectors = max([each.vectors for each in sums] or [len(_parts(row)) for row in alone])
        rows = self.rows or _rows_of(loop, vectors)
        if rows < 2 or vectors > MOST_VECTORS:
            return False
        if PARALLEL not in loop.attributes and not may_run_at_once(loop):
            return False
        names = listed(dict.fromkeys(loop_name(row) for row in _rows_in(sums, alone)))
        remark = (
            f"{rows} rows of {loop_name(loop)} jammed, those of {names} as vectors in registers"
        )
        add_remark(loop, f"{NAME}{{rows={rows}}}", remark)
        _Iteration(loop, sums, alone).write()
        while rows > 1:
            loop, rows = put_side_by_side(loop, rows), rows // 2
        return True


def _is_short_row(op: ir.Operation) -> bool:
    free = INDEPENDENT in op.attributes and PARALLEL not in op.attributes
    columns = columns_of_row(op) if free else None
    return columns is not None and 1 <= len(columns) <= MOST_VECTORS * _lanes(4)


def _put_before(row: ir.Operation) -> None:
    """What is the same for all its columns, of which it has some."""
    for op in body_of(row):
        if is_pure(op) and not any(defined_in(row, value) for value in op.operands):
            op.move_before(row)


def _is_plain(code: RowCode) -> bool:
    return code.is_known() and code.loads_first()


def _lanes(nbytes: int) -> int:
    return this_cpu().lanes(nbytes)


def _is_around_rows(op: ir.Operation) -> bool:
    return op.name == "affine.for" and any(map(_is_short_row, body_of(op)))


def _rows_in(sums: Sequence[_Sum], alone: Sequence[ir.Operation]) -> list[ir.Operation]:
    return [row for each in sums for row in each.rows] or list(alone)


def _shares(row: ir.Operation, loop: ir.Operation) -> bool:
    """Whether it goes along a row that is the same for all iterations of `loop`."""
    code = RowCode(row, 1)
    return any(
        op.name == "affine.load"
        and code.moves(op) == 1
        and not any(defined_in(loop, v) for v in op.operands if v != code.variable)
        for op in code.body
    )


def _may_stand_side_by_side(loop: ir.Operation) -> bool:
    """Whether copies of all in its body may: its loops have the same bounds in each iteration."""
    plain = not len(loop.results) and ir.IntegerAttr(loop.attributes["step"]).value == 1
    body = body_of(loop)
    known = all(op.name in (*AFFINE, "affine.for") or is_pure(op) for op in body)
    loops = (op for op in body if op.name == "affine.for")
    bounds = (v for op in loops for v in operands_of_ends(op))
    return plain and known and not any(defined_in(loop, value) for value in bounds)


def _rows_of(loop: ir.Operation, vectors: int) -> int:
    """As many as registers hold beside a row of what they are summed from, and a number; so that
    several threads have some.
    """
    registers = (this_cpu().vector_registers - 1 - vectors) // vectors
    room = min(MOST_ROWS, registers, MOST_OPERATIONS // len(list(operations_in(loop))))
    if room < 2:
        return room
    columns = columns_of_row(loop)
    if columns is None:
        return room
    blocks = max(-(-len(columns) // room), 2 if len(columns) > 4 else 1)
    return -(-len(columns) // blocks)


@dataclass(frozen=True)
class _Part:
    """Some columns of a short row, as a vector of that many lanes."""

    code: RowCode
    first: int

    @property
    def column(self) -> ir.Value:
        return arith.constant(ir.IndexType.get(), self.first)


def _parts(row: ir.Operation) -> list[_Part]:
    """Whole vectors, and what is left over. (A vector of 5 where 4 are whole would be numbers.)"""
    columns = columns_of_row(row)
    assert columns is not None, "checked by the caller"
    bits = bits_of(next(op for op in body_of(row) if op.name == "affine.store").operands[0].type)
    lanes = _lanes((bits or 64) // 8)
    return [
        _Part(RowCode(row, min(lanes, columns.stop - first)), first) for first in columns[::lanes]
    ]


@dataclass(frozen=True)
class Place:
    """A row of an array: the same for all accesses to it. The row's own variable is None."""

    array: ir.Value
    form: ir.Attribute
    columns: range | None
    subscripts: tuple[ir.Value | None, ...]


@dataclass(frozen=True)
class _Sum:
    """A loop over terms, around rows that each term is added to."""

    loop: ir.Operation

    @cached_property
    def rows(self) -> list[ir.Operation]:
        return [op for op in body_of(self.loop) if op.name == "affine.for"]

    @property
    def vectors(self) -> int:
        """That all its sums take."""
        held = {_place(row, store): row for row, store in self.stores()}
        return sum(len(_parts(row)) for row in held.values())

    def stores(self) -> Iterator[tuple[ir.Operation, ir.Operation]]:
        for row in self.rows:
            for op in body_of(row):
                if op.name == "affine.store":
                    yield row, op

    # -- whether its rows may be held

    def may_be_held(self) -> bool:
        body = body_of(self.loop)
        if len(self.loop.results) or not all(map(_is_short_row, self.rows)):
            return False
        if not all(op in self.rows or op.name == "affine.load" or is_pure(op) for op in body):
            return False
        codes = [RowCode(row, 1) for row in self.rows]
        if not all(map(_is_plain, codes)):
            return False
        held = {_place(row, store): store for row, store in self.stores()}
        return (
            len({_root(store.operands[1]) for store in held.values()}) == len(held)
            and self._no_others(held)
            and all(self._stays(op) and self._is_added_to(place) for place, op in held.items())
            and (surely_runs(self.loop) or all(map(self._was_stored, held)))
        )

    def _no_others(self, held: Mapping[Place, ir.Operation]) -> bool:
        """Whether all accesses to the arrays that are written are to what is held."""
        written = {_root(store.operands[1]) for store in held.values()}
        inside = [op for op in operations_in(self.loop) if op.name in AFFINE]
        rows = [(row, op) for row in self.rows for op in body_of(row) if op.name in AFFINE]
        own = [op for row, op in rows if _place(row, op) in held]
        return not any(_root(_array(op)) in written for op in inside if op not in own)

    def _stays(self, store: ir.Operation) -> bool:
        """Whether it is to the same row in every iteration."""
        variables = [RowCode(row, 1).variable for row in self.rows]
        where = [value for value in list(store.operands)[2:] if value not in variables]
        return not any(defined_in(self.loop, value) for value in where)

    def _is_added_to(self, place: Place) -> bool:
        """Whether what is held is read before it is written."""
        for row in self.rows:
            for op in body_of(row):
                if op.name in AFFINE and _place(row, op) == place:
                    return op.name == "affine.load"
        return False

    def _was_stored(self, place: Place) -> bool:
        """Whether it is written before the loop, which then may do so where it does not run."""
        for op in (view.operation for view in self.loop.block.operations):
            if op == self.loop:
                break
            row = body_of(op) if _is_short_row(op) else ()
            if any(each.name == "affine.store" and _place(op, each) == place for each in row):
                return True
        return False

    # -- what becomes of it

    def write(self, iteration: _Iteration) -> None:
        held: dict[Place, tuple[ir.Operation, list[_Part]]] = {}
        for row, store in self.stores():
            held.setdefault(_place(row, store), (store, _parts(row)))
        with self.loop.location, ir.InsertionPoint(self.loop):
            firsts = [
                iteration.values[place][number]
                if place in iteration.values
                else part.code.loaded(store, part.column)
                for place, (store, parts) in held.items()
                for number, part in enumerate(parts)
            ]
            loop = with_more(self.loop, firsts)
        results, arguments = iter(loop.results), iter(loop.regions[0].blocks[0].arguments[1:])
        inside: dict[Place, list[ir.Value]] = {
            place: [next(arguments) for _ in parts] for place, (_, parts) in held.items()
        }
        after: dict[Place, list[ir.Value]] = {
            place: [next(results) for _ in parts] for place, (_, parts) in held.items()
        }
        with self.loop.location, ir.InsertionPoint.after(loop):
            for place, (store, parts) in held.items():
                iteration.store(store, place, parts, after[place])
        for row in [op for op in body_of(loop) if op.name == "affine.for"]:
            with row.location, ir.InsertionPoint(row):
                _computed(row, inside)
            row.erase()
        with loop.location:
            hand_on(loop, [value for each in inside.values() for value in each])
        self.loop.erase()


def _place(row: ir.Operation, access: ir.Operation) -> Place:
    """Of an access in a row."""
    array, *where = list(access.operands)[access.name == "affine.store" :]
    variable = RowCode(row, 1).variable
    subscripts = tuple(None if value == variable else value for value in where)
    return Place(array, access.attributes["map"], columns_of_row(row), subscripts)


def _computed(row: ir.Operation, values: dict[Place, list[ir.Value]]) -> None:
    """The row's body for each part, where `values` are those rows that are known; they are also
    what it stores then.
    """
    made: dict[Place, list[ir.Value]] = {}
    for number, part in enumerate(_parts(row)):
        code, known = part.code, part.code.around()
        for op in code.body:
            place = _place(row, op) if op.name == "affine.load" else None
            if place in values:
                known[op.results[0]] = values[place][number]
        known = code.computed(part.column, known)
        for op in code.stores:
            made.setdefault(_place(row, op), []).append(known[op.operands[0]])
    values.update(made)


@dataclass
class _Iteration:
    """Writes what is in an iteration of `loop`: the sums, and short rows that stand alone.

    `values` are the rows that are known at a place of its body. An array that is memory for these
    rows alone is not needed then.
    """

    loop: ir.Operation
    sums: Sequence[_Sum]
    alone: Sequence[ir.Operation]
    values: dict[Place, list[ir.Value]] = field(default_factory=dict)
    _temporary: Sequence[ir.Value] = ()

    def write(self) -> None:
        self._temporary = self._only_for_rows()
        parts = [(op, self._sum(op), op in self.alone) for op in body_of(self.loop)]
        for op, sums, alone in parts:  # known before: what is written is gone then
            if sums is not None:
                sums.write(self)
            elif alone:
                self._row(op)
            else:
                self._forget(op)
        for array in self._temporary:
            for use in [use.owner.operation for use in array.uses]:
                use.erase()
            array.owner.operation.erase()

    def _sum(self, op: ir.Operation) -> _Sum | None:
        return next((each for each in self.sums if each.loop == op), None)

    def _row(self, row: ir.Operation) -> None:
        parts, stores = _parts(row), RowCode(row, 1).stores
        with row.location, ir.InsertionPoint(row):
            now = dict(self.values)
            _computed(row, now)
            for store in stores:
                place = _place(row, store)
                self.store(store, place, parts, now[place])
        row.erase()

    def store(
        self,
        store: ir.Operation,
        place: Place,
        parts: Sequence[_Part],
        values: Sequence[ir.Value],
    ) -> None:
        """A whole row of them, which is known from here on, and no other of its array."""
        array = store.operands[1]
        self._forget_array(array)
        self.values[place] = list(values)
        if array not in self._temporary:
            for part, value in zip(parts, values, strict=True):
                part.code.store_one(store, part.column, value)

    def _forget(self, op: ir.Operation) -> None:
        """What `op` writes."""
        for each in (op, *operations_in(op)):
            if each.name.endswith("store"):
                self._forget_array(each.operands[1])

    def _forget_array(self, array: ir.Value) -> None:
        self.values = {
            place: row for place, row in self.values.items() if _root(place.array) != _root(array)
        }

    def _only_for_rows(self) -> list[ir.Value]:
        """The arrays of which an iteration writes one row before it reads it, and nobody has
        another.
        """
        first: dict[Place, bool] = {}
        accesses: list[ir.Operation] = []
        for op in body_of(self.loop):
            sums = self._sum(op)
            rows = sums.rows if sums is not None else [op] if op in self.alone else []
            for row, access in ((r, a) for r in rows for a in body_of(r) if a.name in AFFINE):
                first.setdefault(_place(row, access), access.name == "affine.store" and op == row)
                accesses.append(access)
        arrays = {place.array: None for place in first}
        return [
            array
            for array in arrays
            if not isinstance(array.owner, ir.Block)
            and array.owner.operation.name in ALLOCATIONS
            and [written for place, written in first.items() if place.array == array] == [True]
            and all(
                use.owner.operation.name == "memref.dealloc" or use.owner.operation in accesses
                for use in array.uses
            )
        ]


def _array(op: ir.Operation) -> ir.Value:
    return op.operands[op.name == "affine.store"]


def _root(array: ir.Value) -> ir.Value:
    return view_chain(array)[-1]

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
from mlir.dialects import affine, arith, memref, scf

from avial_lab.cpu import this_cpu
from avial_lab.passes.arrays_apart import functions_of_arrays_apart
from avial_lab.passes.contraction_code import on_vectors, spread
from avial_lab.passes.independent_accesses import INDEPENDENT
from avial_lab.passes.independent_to_llvm import ROLLED
from avial_lab.passes.index_code import divided, minus, number, plus, times
from avial_lab.passes.jam_rows import body_of
from avial_lab.passes.loop_bounds import bounds_of
from avial_lab.passes.operations import itemsize_of, operations_in

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

WIDTHS = (32, 64)
"""Bits of elements; of narrower ones there are several vectors in the making of one."""

FUNCTIONS = ("math.fma", "math.sqrt", "math.absf", "math.copysign")
"""Beside arithmetic: what one instruction does for a vector."""


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
                    if row.count < FEWEST * row.lanes:
                        row.write_out()
                    else:
                        row.write()

    def __str__(self) -> str:
        return f"{NAME}{{lanes={self.lanes}}}" if self.lanes else NAME


@dataclass(frozen=True)
class _Row:
    """A loop over `count` elements, of so many `lanes` in a vector."""

    loop: ir.Operation
    count: int
    lanes: int

    @staticmethod
    def of(loop: ir.Operation, given: int) -> _Row | None:
        """None where it stays to the compiler behind us."""
        count = _count(loop)
        body = body_of(loop)
        stores = [op for op in body if op.name == "affine.store"]
        bits = _bits(stores[0].operands[0].type) if stores else None
        if count is None or bits not in WIDTHS:
            return None
        lanes = given * 32 // bits if given else this_cpu().lanes(bits // 8)
        row = _Row(loop, count, lanes)
        if lanes < 2 or not all(row._is_known(op, bits) for op in body):
            return None
        if count < FEWEST * lanes:
            few = len(body) * (count // lanes) <= MOST_WRITTEN_OUT
            return row if few and count >= lanes and count % lanes in (0, lanes // 2) else None
        plain = not _loads_what_it_stored(body)
        return row if plain and any(row._begins(op) for op in stores) else None

    @property
    def _variable(self) -> ir.Value:
        return self.loop.regions[0].blocks[0].arguments[0]

    # -- whether it is one

    def _is_known(self, op: ir.Operation, bits: int) -> bool:
        if op.name in ("affine.load", "affine.store"):
            value = op.operands[0] if op.name == "affine.store" else op.results[0]
            moves = self._moves(op)
            return _bits(value.type) == bits and (
                moves == 1 or (moves == 0 and op.name == "affine.load")
            )
        if _is_subscript(op):
            return True
        known = op.name.startswith("arith.") or op.name in FUNCTIONS
        types = [value.type for value in (*op.operands, *op.results)]
        return known and not len(op.regions) and all(_bits(each) in (bits, 1) for each in types)

    def _moves(self, op: ir.Operation) -> int | None:
        """By how many elements of memory it is further in the next iteration; None where they do
        not lie in one row.
        """
        array, *where = list(op.operands)[op.name == "affine.store" :]
        form = ir.AffineMapAttr(op.attributes["map"]).value
        if not _lies_in_rows(array) or not form.results:
            return None
        dims = [ir.AffineExpr.get_dim(k) for k in range(form.n_dims)]
        symbols = [ir.AffineExpr.get_symbol(k) for k in range(form.n_symbols)]
        if self._variable in where[form.n_dims :]:
            return None
        moved = [d + 1 if where[k] == self._variable else d for k, d in enumerate(dims)]
        after = ir.AffineMap.get(form.n_dims, form.n_symbols, [*moved, *symbols])
        *others, last = (_difference(each.compose(after), each, form) for each in form.results)
        return last if not any(others) and last in (0, 1) else None

    def _begins(self, store: ir.Operation) -> bool:
        """Whether its address can be told."""
        kind = ir.MemRefType(store.operands[1].type)
        return kind.has_static_shape and kind.affine_map == ir.AffineMap.get_identity(kind.rank)

    # -- what becomes of it

    def _moved(self) -> list[ir.Operation]:
        """The body, without constant subscripts: they stand before the loop now."""
        body = body_of(self.loop)
        for op in body:
            if _is_subscript(op):
                op.move_before(self.loop)
        return [op for op in body if not _is_subscript(op)]

    def write(self) -> None:
        loop, lanes = self.loop, self.lanes
        body = self._moved()
        stores = [op for op in body if op.name == "affine.store"]
        with loop.location, ir.InsertionPoint(loop):
            low, high, _ = map(number, bounds_of(loop, 0))
            around = self._around(body)
            last = minus(high, lanes)
            early = {} if _stays_as_read(body) else self._computed(body, last, around)
            first = self._computed(body, low, around)
            if not early:
                self._store(stores, low, first)
            begin = next(op for op in stores if self._begins(op))
            made = scf.ForOp(self._aligned(begin, low), last, number(lanes))
            if self.count < SHORT * lanes:
                made.operation.attributes[ROLLED] = ir.UnitAttr.get()
            with ir.InsertionPoint(made.body):
                column = made.induction_variable
                column.set_location(self._variable.location)
                self._store(stores, column, self._computed(body, column, around))
                scf.YieldOp([])
            if early:
                self._store(stores, low, first)
            self._store(stores, last, early or self._computed(body, last, around))
        loop.erase()

    def write_out(self) -> None:
        """Vector after vector, the last one half as long where that is what is left over."""
        body = self._moved()
        with self.loop.location, ir.InsertionPoint(self.loop):
            low, _, _ = map(number, bounds_of(self.loop, 0))
            wide = self._around(body)
            for start in range(0, self.count, self.lanes):
                left = self.count - start
                row = self if left >= self.lanes else replace(self, lanes=left)
                around = wide if row is self else row._around(body)
                row._computed(body, plus(low, start), around, storing=True)
        self.loop.erase()

    def _around(self, body: Sequence[ir.Operation]) -> dict[ir.Value, ir.Value]:
        """Vectors of what is computed outside."""
        inside = {value for op in body for value in op.results}
        taken = (
            value
            for op in body
            for value in (list(op.operands)[:1] if op.name == "affine.store" else op.operands)
            if op.name != "affine.load"
        )
        return {v: spread(v, self.lanes) for v in dict.fromkeys(taken) if v not in inside}

    def _computed(
        self,
        body: Sequence[ir.Operation],
        column: ir.Value,
        around: dict[ir.Value, ir.Value],
        *,
        storing: bool = False,
    ) -> dict[ir.Value, ir.Value]:
        """The values of the body as vectors that begin at `column`; what it stores as well where
        that is asked for.
        """
        known = dict(around)
        for op in body:
            if op.name == "affine.store":
                if storing:
                    self._store([op], column, known)
                continue
            with op.location:
                made = (
                    self._loaded(op, column)
                    if op.name == "affine.load"
                    else spread(op.clone().operation.results[0], self.lanes)
                    if op.name == "arith.constant"
                    else on_vectors(op, [known[v] for v in op.operands], self.lanes).result
                )
            known[op.results[0]] = made
        return known

    def _loaded(self, op: ir.Operation, column: ir.Value) -> ir.Value:
        places = self._places(op, column)
        kind = op.results[0].type
        if not self._moves(op):
            return spread(memref.load(op.operands[0], places), self.lanes)
        whole = ir.VectorType.get([self.lanes], kind)
        return ir.Operation.create("vector.load", [whole], [op.operands[0], *places]).result

    def _store(
        self,
        stores: Sequence[ir.Operation],
        column: ir.Value,
        known: dict[ir.Value, ir.Value],
    ) -> None:
        for op in stores:
            with op.location:
                places = self._places(op, column)
                ir.Operation.create(
                    "vector.store", [], [known[op.operands[0]], op.operands[1], *places]
                )

    def _places(self, op: ir.Operation, column: ir.Value) -> list[ir.Value]:
        """Its subscripts at that column."""
        where = list(op.operands)[1 + (op.name == "affine.store") :]
        where = [column if value == self._variable else value for value in where]
        form = ir.AffineMapAttr(op.attributes["map"]).value
        return [
            affine.AffineApplyOp(
                ir.AffineMap.get(form.n_dims, form.n_symbols, [each]), where
            ).result
            for each in form.results
        ]

    def _aligned(self, store: ir.Operation, low: ir.Value) -> ir.Value:
        """The first column behind `low` where a vector of it begins in memory as all do, at most
        one vector behind.
        """
        array = store.operands[1]
        kind = ir.MemRefType(array.type)
        place, *rest = self._places(store, low)
        for extent, subscript in zip(list(kind.shape)[1:], rest, strict=True):
            place = plus(times(place, extent), subscript)
        base = memref.extract_aligned_pointer_as_index(array)
        first = plus(divided(base, itemsize_of(kind.element_type)), place)
        return minus(plus(low, self.lanes), arith.andi(first, number(self.lanes - 1)))


def _count(loop: ir.Operation) -> int | None:
    """How many iterations a loop has; None where that is not known, or it hands something on."""
    if loop.name != "affine.for" or len(loop.results):
        return None
    if ir.IntegerAttr(loop.attributes["step"]).value != 1:
        return None
    ends = [ir.AffineMapAttr(loop.attributes[f"{n}BoundMap"]).value for n in ("lower", "upper")]
    if any(len(each.results) != 1 for each in ends):
        return None
    low, high = (each.results[0] for each in ends)
    if not all(isinstance(each, ir.AffineConstantExpr) for each in (low, high)):
        return None
    return high.value - low.value


def _is_subscript(op: ir.Operation) -> bool:
    return op.name == "arith.constant" and isinstance(op.results[0].type, ir.IndexType)


def _bits(kind: ir.Type) -> int | None:
    if isinstance(kind, (ir.FloatType, ir.IntegerType)):
        return kind.width
    return None


def _lies_in_rows(array: ir.Value) -> bool:
    kind = array.type
    if not isinstance(kind, ir.MemRefType) or not kind.rank:
        return False
    return kind.get_strides_and_offset()[0][-1] == 1


def _difference(after: ir.AffineExpr, before: ir.AffineExpr, form: ir.AffineMap) -> int | None:
    by = ir.AffineExpr.simplify_affine_expr(after - before, form.n_dims, form.n_symbols)
    return next((k for k in (0, 1) if by == ir.AffineConstantExpr.get(k)), None)


def _stays_as_read(body: Sequence[ir.Operation]) -> bool:
    """Whether the row stores to other arrays than it loads from: it may be computed again."""
    written = {op.operands[1] for op in body if op.name == "affine.store"}
    return not any(op.operands[0] in written for op in body if op.name == "affine.load")


def _loads_what_it_stored(body: Sequence[ir.Operation]) -> bool:
    """Whether an iteration reads from an array that it has written before."""
    written: set[ir.Value] = set()
    for op in body:
        if op.name == "affine.load" and op.operands[0] in written:
            return True
        if op.name == "affine.store":
            written.add(op.operands[1])
    return False

"""Rows of independent elements as vectors: an innermost loop's body, once for some of its columns.

A loop, a number of lanes, the first column -> operations at the insertion point.

    %x = affine.load %A[%i, %j + 1]    %x = vector.load %A[%i, %column + 1] : vector<4xf64>
    %l = affine.load %A[%i, 0]         %l = vector.broadcast (memref.load %A[%i, 0])
    affine.store %s, %B[%i, %j]        vector.store %s, %B[%i, %column] : vector<4xf64>
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mlir import ir
from mlir.dialects import affine, memref

from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.codegen.contractions.contraction import on_vectors, spread
from avial_lab.compiler.codegen.loops.index_arithmetic import divided, plus, times
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.views import may_be

WIDTHS = (32, 64)
"""Bits of elements; of narrower ones there are several vectors in the making of one."""

FUNCTIONS = ("math.fma", "math.sqrt", "math.absf", "math.copysign")
"""Beside arithmetic: what one instruction does for a vector."""


@dataclass(frozen=True)
class RowCode:
    """The body of `loop`, whose iterations are independent, for `lanes` of them at once; no
    constant stands in it (`put_constants_before`). `names`: what stands for values of loops around,
    but for arrays.
    """

    loop: ir.Operation
    lanes: int
    names: Mapping[ir.Value, ir.Value] = field(default_factory=dict)

    @cached_property
    def body(self) -> list[ir.Operation]:
        return body_of(self.loop)

    @cached_property
    def accesses(self) -> list[ir.Operation]:
        return [op for op in self.body if op.name in ("affine.load", "affine.store")]

    @cached_property
    def stores(self) -> list[ir.Operation]:
        return [op for op in self.body if op.name == "affine.store"]

    @property
    def variable(self) -> ir.Value:
        return self.loop.regions[0].blocks[0].arguments[0]

    @property
    def nbytes(self) -> int:
        """Of a vector that is stored."""
        return self.lanes * itemsize_of(self.stores[0].operands[0].type)

    # -- whether there is such code

    def is_known(self, others: Sequence[ir.Operation] = (), kind: ir.Type | None = None) -> bool:
        """Whether all of the body is elements that lie side by side, of one width, and arithmetic
        on them; `others` are accesses whose elements may lie anywhere. `kind`: that of an element,
        where maybe none is stored.
        """
        stored = (op.operands[0].type for op in self.stores)
        kind = next(stored, None) if kind is None else kind
        bits = bits_of(kind) if kind is not None else None
        return bits in WIDTHS and all(self._is_known(op, bits, others) for op in self.body)

    def loads_first(self) -> bool:
        """Whether an iteration reads from no array that it has written before."""
        written: set[ir.Value] = set()
        for op in self.body:
            if op.name == "affine.load" and written & may_be(op.operands[0]):
                return False
            if op.name == "affine.store":
                written |= may_be(op.operands[1])
        return True

    def stays_as_read(self) -> bool:
        """Whether it stores to other arrays than it loads from: it may be computed again."""
        written = {each for op in self.stores for each in may_be(op.operands[1])}
        loads = (op for op in self.body if op.name == "affine.load")
        return not any(written & may_be(op.operands[0]) for op in loads)

    def _is_known(self, op: ir.Operation, bits: int, others: Sequence[ir.Operation]) -> bool:
        if op.name in ("affine.load", "affine.store"):
            value = op.operands[0] if op.name == "affine.store" else op.results[0]
            moves = self.moves(op)
            return bits_of(value.type) == bits and (
                moves == 1 or (moves == 0 and op.name == "affine.load") or op in others
            )
        known = op.name.startswith("arith.") or op.name in FUNCTIONS
        types = [value.type for value in (*op.operands, *op.results)]
        return known and not len(op.regions) and all(bits_of(each) in (bits, 1) for each in types)

    def moves(self, op: ir.Operation) -> int | None:
        """By how many elements of memory it is further in the next iteration; None where they do
        not lie in one row.
        """
        array, *where = list(op.operands)[op.name == "affine.store" :]
        form = ir.AffineMapAttr(op.attributes["map"]).value
        if not _lies_in_rows(array) or not form.results:
            return None
        dims = [ir.AffineExpr.get_dim(k) for k in range(form.n_dims)]
        symbols = [ir.AffineExpr.get_symbol(k) for k in range(form.n_symbols)]
        if self.variable in where[form.n_dims :]:
            return None
        moved = [d + 1 if where[k] == self.variable else d for k, d in enumerate(dims)]
        after = ir.AffineMap.get(form.n_dims, form.n_symbols, [*moved, *symbols])
        *others, last = (_difference(each.compose(after), each, form) for each in form.results)
        return last if all(each == 0 for each in others) else None

    def are_alike(self, store: ir.Operation, other: ir.Operation) -> bool:
        """Whether a vector of one begins where vectors do if that of the other does, and if their
        arrays both do or both do not: rows are whole vectors, where there is more than one, and
        they are in the same column.
        """
        kinds = [ir.MemRefType(op.operands[1].type) for op in (store, other)]
        return store == other or (
            all(kind.rank == 1 or kind.shape[-1] % self.lanes == 0 for kind in kinds)
            and (own := self._column(store)) is not None
            and own == self._column(other)
        )

    def columns_of(self, array: ir.Value) -> set[str]:
        """Those of `array` that an iteration loads, in its own variable, `d0`."""
        loads = [op for op in self.body if op.name == "affine.load" and op.operands[0] == array]
        return {text for op in loads if "d0" in (text := str(self._column(op)))}

    def _column(self, op: ir.Operation) -> ir.AffineExpr | None:
        """The last subscript, of the loop's variable (d0) alone; None where it takes more."""
        where = list(op.operands)[1 + (op.name == "affine.store") :]
        form = ir.AffineMapAttr(op.attributes["map"]).value
        last = form.results[-1]
        if form.n_symbols or any(where[k] != self.variable for k in operands_in(last, form)):
            return None
        return last.compose(ir.AffineMap.get(1, 0, [ir.AffineExpr.get_dim(0)] * form.n_dims))

    # -- what becomes of it

    def around(self) -> dict[ir.Value, ir.Value]:
        """Vectors of what is computed outside."""
        inside = {value for op in self.body for value in op.results}
        inside.update(self.loop.regions[0].blocks[0].arguments)
        taken = (
            value
            for op in self.body
            for value in (list(op.operands)[:1] if op.name == "affine.store" else op.operands)
            if op.name != "affine.load"
        )
        return {
            v: spread(self.names.get(v, v), self.lanes)
            for v in dict.fromkeys(taken)
            if v not in inside
        }

    def computed(
        self, column: ir.Value, known: Mapping[ir.Value, ir.Value], *, storing: bool = False
    ) -> dict[ir.Value, ir.Value]:
        """The values of the body as vectors that begin at `column`; some are `known`. `storing`:
        what the body stores is stored, too.
        """
        values = dict(known)
        for op in self.body:
            if op.name == "affine.store":
                if storing:
                    with op.location:
                        self.store_one(op, column, values[op.operands[0]])
                continue
            if op.results[0] in values:
                continue
            with op.location:
                made = (
                    self.loaded(op, column)
                    if op.name == "affine.load"
                    else on_vectors(op, [values[v] for v in op.operands], self.lanes).result
                )
            values[op.results[0]] = made
        return values

    def loaded(self, op: ir.Operation, column: ir.Value) -> ir.Value:
        """What a load, or a store, of the body finds in memory."""
        if self.moves(op):
            return self.vector(op, column)
        array = op.operands[op.name == "affine.store"]
        return spread(memref.load(array, self.places(op, column)), self.lanes)

    def vector(self, op: ir.Operation, column: ir.Value) -> ir.Value:
        """What lies side by side in memory from where an access of the body is."""
        array = op.operands[op.name == "affine.store"]
        whole = ir.VectorType.get([self.lanes], ir.MemRefType(array.type).element_type)
        operands = [array, *self.places(op, column)]
        return ir.Operation.create("vector.load", [whole], operands).result

    def store(
        self,
        column: ir.Value,
        known: Mapping[ir.Value, ir.Value],
        streamed: Collection[ir.Operation] = (),
    ) -> None:
        """All that the body stores; the `streamed` ones past the caches, where vectors begin."""
        for op in self.stores:
            with op.location:
                made = self.store_one(op, column, known[op.operands[0]])
            if op in streamed:
                write_past_caches(made, self.nbytes)

    def store_one(self, op: ir.Operation, column: ir.Value, value: ir.Value) -> ir.Operation:
        places = self.places(op, column)
        return ir.Operation.create("vector.store", [], [value, op.operands[1], *places])

    def position(self, store: ir.Operation, column: ir.Value) -> ir.Value:
        """Which element of all memory it is that is stored, in a whole array of known extents."""
        array = store.operands[1]
        kind = ir.MemRefType(array.type)
        place, *rest = self.places(store, column)
        for extent, subscript in zip(list(kind.shape)[1:], rest, strict=True):
            place = plus(times(place, extent), subscript)
        base = memref.extract_aligned_pointer_as_index(array)
        return plus(divided(base, itemsize_of(kind.element_type)), place)

    def places(self, op: ir.Operation, column: ir.Value) -> list[ir.Value]:
        """Its subscripts at that column."""
        where = list(op.operands)[1 + (op.name == "affine.store") :]
        where = [column if v == self.variable else self.names.get(v, v) for v in where]
        form = ir.AffineMapAttr(op.attributes["map"]).value
        return [
            affine.AffineApplyOp(
                ir.AffineMap.get(form.n_dims, form.n_symbols, [each]), where
            ).result
            for each in form.results
        ]


def write_past_caches(store: ir.Operation, nbytes: int) -> None:
    """Make a store of a vector of so many bytes, which begins where such vectors do, one."""
    store.attributes["nontemporal"] = ir.BoolAttr.get(True)
    whole = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), nbytes)
    store.attributes["alignment"] = whole


def put_constants_before(loop: ir.Operation) -> None:
    """Those in its body, of which the subscripts are no elements."""
    for op in body_of(loop):
        if op.name == "arith.constant":
            op.move_before(loop)


def columns_of_row(loop: ir.Operation) -> range | None:
    """Those of a loop that hands nothing on, where they are known and side by side."""
    if loop.name != "affine.for" or len(loop.results):
        return None
    if ir.IntegerAttr(loop.attributes["step"]).value != 1:
        return None
    low, high = (ends[0] if len(ends) == 1 else None for ends in known_ends(loop))
    return None if low is None or high is None else range(low, high)


def operands_in(result: ir.AffineExpr, form: ir.AffineMap) -> list[int]:
    """Which of an affine map's operands (dimensions, then symbols) a result of it is made of."""
    dims = [ir.AffineExpr.get_dim(k) for k in range(form.n_dims)]
    symbols = [ir.AffineExpr.get_symbol(k) for k in range(form.n_symbols)]
    return [k for k, each in enumerate((*dims, *symbols)) if _stands_in(each, result)]


def _stands_in(each: ir.AffineExpr, whole: ir.AffineExpr) -> bool:
    if isinstance(whole, ir.AffineDimExpr | ir.AffineSymbolExpr | ir.AffineConstantExpr):
        return whole == each
    both = ir.AffineBinaryExpr(whole)
    return _stands_in(each, both.lhs) or _stands_in(each, both.rhs)


def is_cleared(store: ir.Operation) -> bool:
    """Whether it stores zeros: a processor fills memory with them without vectors, and faster
    (`memset`, which LLVM makes of it).
    """
    value = store.operands[0]
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return False
    constant = value.owner.operation.attributes["value"]
    known = isinstance(constant, ir.FloatAttr | ir.IntegerAttr)
    return known and constant.value == 0 and math.copysign(1, constant.value) > 0


def bits_of(kind: ir.Type) -> int | None:
    if isinstance(kind, (ir.FloatType, ir.IntegerType)):
        return kind.width
    return None


def _lies_in_rows(array: ir.Value) -> bool:
    kind = array.type
    if not isinstance(kind, ir.MemRefType) or not kind.rank:
        return False
    return kind.get_strides_and_offset()[0][-1] == 1


def _difference(after: ir.AffineExpr, before: ir.AffineExpr, form: ir.AffineMap) -> int | None:
    """Where it is 0 or 1; None for any other."""
    by = ir.AffineExpr.simplify_affine_expr(after - before, form.n_dims, form.n_symbols)
    return next((k for k in (0, 1) if by == ir.AffineConstantExpr.get(k)), None)

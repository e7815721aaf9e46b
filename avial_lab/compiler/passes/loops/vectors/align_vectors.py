"""Rows as whole vectors, whose stores begin where vectors begin in memory.

Functions of loops -> the same operations on every element of memory, so the same bits; none of
them one by one.

Source: A. Eichenberger, P. Wu, K. O'Brien, Vectorization for SIMD architectures with alignment
constraints, PLDI 2004.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.codegen.loops.index_arithmetic import (
    divided,
    either,
    least,
    less,
    minus,
    most,
    number,
    plus,
    times,
)
from avial_lab.compiler.codegen.vectors.row_vectors import (
    WIDTHS,
    RowCode,
    bits_of,
    columns_of_row,
    is_cleared,
    put_constants_before,
)
from avial_lab.compiler.codegen.vectors.streaming import wait_for_memory
from avial_lab.compiler.ir.attributes import INDEPENDENT, ROLLED, STREAMED
from avial_lab.compiler.ir.loop_bounds import bounds_of
from avial_lab.compiler.ir.operations import lies_whole, loops_in, nbytes_of
from avial_lab.machine.cpu import this_cpu

NAME = "align-vectors"

Vectors = Mapping[ir.Value, ir.Value]
"""What values are in all lanes."""

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


@dataclass(frozen=True)
class AlignVectors:
    """Compute a row in vectors that end where it ends, and that begin where a line of the cache
    does; the first and the last one overlap with those between.

    before:  affine.for %j = 1 to 119 { B[i, j] = f(A[i, j]) } {avial.independent}
    after:   %first = f(A[i, 1 : 9])   %last = f(A[i, 111 : 119])
             scf.for %j = %aligned to 111 step 8 { B[i, j : j + 8] = f(A[i, j : j + 8]) }
             B[i, 1 : 9] = %first      B[i, 111 : 119] = %last

    What both compute is the same, as nothing is stored before the two have loaded. A vector that
    lies in two lines of the cache costs as two do, and the elements behind the last whole vector
    would run one by one, up to seven of them, which take as long as so many vectors.

    Stores that `streaming-stores` marked go past the caches, whole vectors of them: also in rows of
    which nobody knows how long they are, whose first and last elements run one by one. Behind
    their function's last operation there is a fence.

    `lanes`: elements in a vector of 32 bits each; 0 for those of this machine, or for half of them
    where vectors go through it in halves and neighbours are loaded.
    """

    lanes: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                streaming = False
                for loop in [op for op in loops_in(function) if INDEPENDENT in op.attributes]:
                    row = _row_of(loop, self.lanes)
                    if row is not None:
                        streaming = bool(row.streamed) or streaming
                        row.write()
                if streaming:
                    ends = function.regions[0].blocks[0].operations[-1]
                    with ends.location, ir.InsertionPoint(ends):
                        wait_for_memory()

    def __str__(self) -> str:
        return f"{NAME}{{lanes={self.lanes}}}" if self.lanes else NAME


def _row_of(loop: ir.Operation, given: int) -> _Row | None:
    """None where it stays to the compiler behind us."""
    stores = RowCode(loop, 1).stores
    bits = bits_of(stores[0].operands[0].type) if stores else None
    if bits not in WIDTHS or loop.name != "affine.for" or len(loop.results):
        return None
    lanes = given * 32 // bits if given else this_cpu().lanes(bits // 8)
    columns = columns_of_row(loop)
    if lanes < 2 or (columns is not None and len(columns) < lanes):
        return None
    # Zeros in all of a large array are better left to `memset`.
    if all(is_cleared(op) and _exceeds(op.operands[1], this_cpu().l2_bytes) for op in stores):
        return None
    put_constants_before(loop)
    code = RowCode(loop, lanes)
    if not given and this_cpu().halves and _may_be_halved(code, columns):
        code = replace(code, lanes=lanes // 2)
    if not code.is_known():
        return None
    row: _Row
    if columns is None:
        row = _OpenRow(code)
    elif len(columns) < FEWEST * code.lanes:
        row = _ShortRow(code, len(columns))
    else:
        row = _LongRow(code, len(columns))
    return row if row.is_worth_it() else None


@dataclass(frozen=True)
class _Row(ABC):
    """A loop over elements side by side, of so many lanes in a vector."""

    code: RowCode

    @property
    def streamed(self) -> list[ir.Operation]:
        """The stores that go past the caches."""
        return []

    @abstractmethod
    def is_worth_it(self) -> bool: ...

    @abstractmethod
    def write(self) -> None:
        """Vectors in place of the loop."""


@dataclass(frozen=True)
class _ShortRow(_Row):
    """Vector after vector, the last one half as long where that is what is left over."""

    count: int

    def is_worth_it(self) -> bool:
        lanes = self.code.lanes
        few = len(self.code.body) * (self.count // lanes) <= MOST_WRITTEN_OUT
        return few and self.count % lanes in (0, lanes // 2)

    def write(self) -> None:
        code, lanes = self.code, self.code.lanes
        with code.loop.location, ir.InsertionPoint(code.loop):
            low, _, _ = map(number, bounds_of(code.loop, 0))
            wide = code.around()
            for start in range(0, self.count, lanes):
                left = self.count - start
                each = code if left >= lanes else replace(code, lanes=left)
                around = wide if each is code else each.around()
                each.computed(plus(low, start), around, storing=True)
        code.loop.erase()


@dataclass(frozen=True)
class _AlignedRow(_Row):
    """One whose vectors begin where those in memory do, behind its first elements."""

    @property
    def begin(self) -> ir.Operation:
        """The store that says where."""
        stores = [op for op in self.code.stores if _begins(op)]
        return min(stores, key=lambda op: STREAMED not in op.attributes)

    @property
    def streamed(self) -> list[ir.Operation]:
        """All that are marked, or none: one row past the caches and one through them is as slow as
        both through them.
        """
        begin = self.begin
        marked = [op for op in self.code.stores if STREAMED in op.attributes]
        return marked if all(self.code.are_alike(begin, op) for op in marked) else []

    def aligned(self, low: ir.Value) -> ir.Value:
        """The first column behind `low` where a vector begins in memory as all do, at most one
        vector behind.
        """
        lanes = self.code.lanes
        first = self.code.position(self.begin, low)
        return minus(plus(low, lanes), arith.andi(first, number(lanes - 1)))

    def write_between(self, low: ir.Value, high: ir.Value, around: Vectors, *marks: str) -> None:
        """The loop over whole vectors that begin in `low` and later, below `high`, with `marks`."""
        streamed = self.streamed

        def write(past: Sequence[ir.Operation]) -> None:
            code = self.code
            made = scf.ForOp(low, high, number(code.lanes))
            for mark in marks:
                made.operation.attributes[mark] = ir.UnitAttr.get()
            with ir.InsertionPoint(made.body):
                column = made.induction_variable
                column.set_location(code.variable.location)
                code.store(column, code.computed(column, around), past)
                scf.YieldOp([])

        arrays = list(dict.fromkeys(op.operands[1] for op in streamed))
        if len(arrays) < 2:
            write(streamed)
            return
        first, *others = map(memref.extract_aligned_pointer_as_index, arrays)
        apart = reduce(arith.ori, (arith.xori(first, each) for each in others))
        alike = less(arith.andi(apart, number(self.code.nbytes - 1)), 1)
        either(alike, lambda: write(streamed), lambda: write(()))


@dataclass(frozen=True)
class _LongRow(_AlignedRow):
    """Its first and its last vector overlap with those between."""

    count: int

    def is_worth_it(self) -> bool:
        return self.code.loads_first() and any(map(_begins, self.code.stores))

    def write(self) -> None:
        code, loop, lanes = self.code, self.code.loop, self.code.lanes
        with loop.location, ir.InsertionPoint(loop):
            low, high, _ = map(number, bounds_of(loop, 0))
            around = code.around()
            last = minus(high, lanes)
            early = {} if code.stays_as_read() else code.computed(last, around)
            first = code.computed(low, around)
            if not early:
                code.store(low, first)
            marks = (ROLLED,) if self.count < SHORT * lanes else ()
            self.write_between(self.aligned(low), last, around, *marks)
            if early:
                code.store(low, first)
            code.store(last, early or code.computed(last, around))
        loop.erase()


@dataclass(frozen=True)
class _OpenRow(_AlignedRow):
    """Of a length that is not known, maybe of nothing: its first and last elements one by one."""

    def is_worth_it(self) -> bool:
        marked = [op for op in self.code.stores if STREAMED in op.attributes]
        step = ir.IntegerAttr(self.code.loop.attributes["step"]).value
        return step == 1 and self.code.loads_first() and any(map(_begins, marked))

    def write(self) -> None:
        code, loop, lanes = self.code, self.code.loop, self.code.lanes
        with loop.location, ir.InsertionPoint(loop):
            low, high, _ = map(number, bounds_of(loop, 0))
            begin = least(self.aligned(low), high)
            whole = times(divided(most(minus(high, begin), 0), lanes), lanes)
            self._write_one_by_one(low, begin)
            self.write_between(begin, plus(begin, whole), code.around())
            self._write_one_by_one(plus(begin, whole), high)
        loop.erase()

    def _write_one_by_one(self, low: ir.Value, high: ir.Value) -> None:
        code = replace(self.code, lanes=1)
        around = code.around()
        made = scf.ForOp(low, high, number(1))
        made.operation.attributes[ROLLED] = ir.UnitAttr.get()
        with ir.InsertionPoint(made.body):
            column = made.induction_variable
            column.set_location(code.variable.location)
            code.computed(column, around, storing=True)
            scf.YieldOp([])


def _begins(store: ir.Operation) -> bool:
    """Whether its address can be told."""
    kind = ir.MemRefType(store.operands[1].type)
    return kind.has_static_shape and lies_whole(kind)


def _may_be_halved(code: RowCode, columns: range | None) -> bool:
    """Whether vectors of half the length are better, if they are as fast.

    It is so for a row that has too few others, and for a long one that loads an array in several
    columns: where vectors of one begin as lines of the cache do, those of the next lie in two of
    them each, and of half the length every other one. The first cache does not mind.
    """
    if columns is not None and FEWEST * code.lanes <= len(columns) < SHORT * code.lanes:
        return False
    loaded = {op.operands[0] for op in code.body if op.name == "affine.load"}
    large = (each for each in loaded if _exceeds(each, this_cpu().l1_bytes))
    return any(len(code.columns_of(each)) > 1 for each in large)


def _exceeds(array: ir.Value, nbytes: int) -> bool:
    """Whether it may be larger than that."""
    kind = ir.MemRefType(array.type)
    return not kind.has_static_shape or nbytes_of(kind) > nbytes

"""Several rows at once where each waits for itself: one's latency is hidden behind the others'.

Functions of loops -> the same operations on every element, so the same bits; a processor finds
enough that is independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.patterns.time_tiling import SIDE_BY_SIDE
from avial_lab.compiler.analysis.patterns.wavefront_skew import is_recurrence, lag_of
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Loop, Scop
from avial_lab.compiler.analysis.polyhedral.strides import move_of
from avial_lab.compiler.codegen.loops.unroll_and_jam import (
    ENDS,
    INDEPENDENT_ROWS,
    Rows,
    put_side_by_side,
)
from avial_lab.compiler.ir.attributes import INDEPENDENT, PARALLEL
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, STORES, is_pure
from avial_lab.compiler.ir.llvm_attributes import NO_VECTORS, tell_llvm
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import FORS, body_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.remarks import add_remark, loop_name
from avial_lab.compiler.ir.views import may_be

COLUMNS = 32
"""Where the rows are columns of an array: some lines of the cache of each, whole and beside each
other, as memory is fastest.
"""

MOST_OPERATIONS = 400
"""In the body of the rows together: what a processor looks ahead, and what registers hold."""

MOST_OF_COLUMNS = 2000
"""Of columns, which wait for memory first."""


@dataclass(frozen=True)
class JamForLatency:
    """Run rows of a recurrence side by side, each some columns behind the one before.

    before:  affine.for %i { affine.for %j { A[i, j] = … A[i, j - 1] … A[i - 1, j + 1] … } }
    after:   affine.for %i step 8 { affine.for %c { …[i, c]  …[i + 1, c - 2]  …[i + 2, c - 4] … } }

    A function that has nothing but such rows is `noimplicitfloat`: no vectors are made of them.

    Iterations of a loop that are independent (`avial.parallel`) need no lag, and may hold several
    loops after each other. Columns at the two ends, and rows that are left over, run one by one.

    `rows`: how many; 0 where that is to follow from the loops.
    """

    rows: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                rows = _count_rows(function)
                lagging = self._interleave_in(function)
                if lagging and lagging == rows:
                    # LLVM would gather columns of several rows in vectors: shuffles for each, in
                    # the very chain of operations whose latency is to be hidden.
                    tell_llvm(function, NO_VECTORS)

    def _interleave_in(self, op: ir.Operation) -> int:
        """How many loops in it have rows now that lag behind each other."""
        lagging = 0
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    lag = self._interleave(inner) if inner.name == "affine.for" else None
                    lagging += self._interleave_in(inner) if lag is None else lag > 0
        return lagging

    def _interleave(self, loop: ir.Operation) -> int | None:
        """By how many columns the loop's rows lag behind each other, which run side by side now;
        None where they do not.
        """
        body = body_of(loop)
        inner = [op for op in body if op.name == "affine.for"]
        if not _is_plain(loop) or not inner or not all(map(_may_repeat, body)):
            return None
        variable = loop.regions[0].blocks[0].arguments[0]
        # What a row is handed first may be another in each.
        if any(_depends(each, variable, loop) for op in inner for each in operands_of_ends(op)):
            return None
        if all(INDEPENDENT in op.attributes and not len(op.results) for op in inner):
            return None  # none waits for itself: known without another look
        scop = read_scop(loop)
        (outer,) = scop.loops_of(loop)
        loops = [scop.loops_of(op)[0] for op in inner]
        if not any(is_recurrence(each, scop) for each in loops):
            return None
        rows = self._rows(loop, outer, loops, scop)
        if rows < 2:
            return None
        taken = f"jam-for-latency{{rows={rows}}}"
        remark = (
            f"{rows} rows of {loop_name(loop)} interleaved: each alone is a chain of dependences"
        )
        if PARALLEL in loop.attributes:
            add_remark(loop, taken, remark)
            left = put_side_by_side(loop, rows)
            if rows > INDEPENDENT_ROWS:
                put_side_by_side(left, INDEPENDENT_ROWS)
            return 0
        alone = all(op == inner[0] or is_pure(op) or _is_fixed_load(op, loop) for op in body)
        if not alone or len(inner[0].results):
            return None
        if any(len(ir.AffineMapAttr(inner[0].attributes[n]).value.results) > 1 for n in ENDS):
            return None
        lag = lag_of(scop, outer, loops[0], rows)
        if lag is None or lag > _MOST_LAG or _is_over(inner[0], lag):
            return None
        add_remark(loop, taken, f"{remark}; each row {lag} columns behind the one before")
        Rows(loop, rows, lag).write()
        return lag

    def _rows(self, loop: ir.Operation, outer: Loop, inner: Sequence[Loop], scop: Scop) -> int:
        """How many rows are to be side by side."""
        columns = PARALLEL in loop.attributes and _are_columns(outer, inner, scop)
        most = MOST_OF_COLUMNS if columns else MOST_OPERATIONS
        wanted = SIDE_BY_SIDE
        if PARALLEL in loop.attributes:
            wanted = COLUMNS if columns else INDEPENDENT_ROWS
        return min(self.rows or wanted, most // max(1, len(list(operations_in(loop)))))

    def __str__(self) -> str:
        return f"jam-for-latency{{rows={self.rows}}}" if self.rows else "jam-for-latency"


def _are_columns(outer: Loop, inner: Sequence[Loop], scop: Scop) -> bool:
    """Whether an array lies so that the rows are beside each other in it, and what an inner loop
    goes along is not.
    """
    return any(
        move_of(access, s.loops.index(outer)) == 1 and move_of(access, s.loops.index(each)) is None
        for each in inner
        for s in scop.within(each)
        for access in s.accesses
        if access.array.kind is ArrayKind.MEMORY
    )


def _count_rows(function: ir.Operation) -> int:
    """Innermost loops."""
    return sum(not operations_named(op, *FORS) for op in operations_named(function, *FORS))


_MOST_LAG = 8
"""Columns at the ends of the rows run one by one: lag × rows of them."""


def _is_plain(loop: ir.Operation) -> bool:
    return not len(loop.results) and _steps_by_one(loop)


def _steps_by_one(loop: ir.Operation) -> bool:
    return ir.IntegerAttr(loop.attributes["step"]).value == 1


def _may_repeat(op: ir.Operation) -> bool:
    """Whether copies of it may stand beside each other: accesses, arithmetic, innermost loops."""
    if op.name == "affine.for":
        inside = body_of(op)
        return _steps_by_one(op) and all(not len(o.regions) and _may_repeat(o) for o in inside)
    return op.name in ACCESSES or (is_pure(op) and not _may_be_reordered(op))


def _may_be_reordered(op: ir.Operation) -> bool:
    """Whether it is part of a sum in any order, which is fast in vectors."""
    return "fastmath" in op.attributes and "reassoc" in str(op.attributes["fastmath"])


def _is_fixed_load(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether it loads from an array that `loop` does not write: each row may do so by itself."""
    written = {m for e in operations_in(loop) if e.name in STORES for m in may_be(e.operands[1])}
    return op.name in LOADS and not written & may_be(op.operands[0])


def _is_over(columns: ir.Operation, lag: int) -> bool:
    """Whether a row is through before the next one begins: none would be beside another."""
    ends = known_ends(columns)
    lows, highs = ([end for end in each if end is not None] for each in ends)
    return bool(lows and highs) and min(highs) - max(lows) <= lag


def _depends(value: ir.Value, on: ir.Value, loop: ir.Operation) -> bool:
    """Whether the value is computed from `on` in the body of `loop`."""
    if value == on:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.block.owner != loop:
        return False
    return any(_depends(each, on, loop) for each in owner.operation.operands)

"""Several rows at once where each adds to the same sums: those are loaded and stored once for all.

Functions of loops -> the same operations on every element of memory, in the same order.

Source: S. Carr, K. Kennedy, Improving the ratio of memory operations to floating-point operations
in loops, TOPLAS 16 (1994), unroll-and-jam.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import (
    ends_of,
    goes_along,
    loops_over_columns,
)
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import Dependence, carried_among
from avial_lab.compiler.analysis.polyhedral.loop_ends import steps_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Loop, Scop, Statement
from avial_lab.compiler.codegen.loops.index_arithmetic import say_places
from avial_lab.compiler.codegen.loops.unroll_and_jam import (
    MANY_ROWS,
    put_all_side_by_side,
    put_side_by_side,
)
from avial_lab.compiler.ir.effects import STORES
from avial_lab.compiler.ir.loop_bounds import operands_of_ends
from avial_lab.compiler.ir.nesting import body_of, holds
from avial_lab.compiler.ir.remarks import add_remark, loop_name

NAME = "jam-for-stores"
ROWS = 4
"""Rows at once, of short ones."""

LONG = 256
"""Columns of a row that is long: a good part of a page, or some."""

MOST_OPERATIONS = 400
"""In all rows at once: what is worth to be compiled."""

IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class JamForStores:
    """Unroll a loop over rows, and make one loop over columns of those inside.

    before:  affine.for %i { affine.for %j { y[j] += A[i, j] * x[i] } }
    after:   affine.for %i step 4 { affine.for %j {
               y[j] = y[j] + A[i, j] * x[i] + … + A[i + 3, j] * x[i + 3] } }

    before:  affine.for %p = 0 to 3 { affine.for %c { y[c] += x[j + p, c] * w[p, c] } }
    after:   affine.for %c { y[c] = y[c] + … + x[j + 2, c] * w[2, c] }

    A loop over few rows is gone: what is around it may be one over rows then.

    Only where a loop inside writes a row that is the same for all of them (`y`): one that is only
    read is in the nearest cache, and several streams from memory are none the faster. Rows that are
    left over run one by one.

    `rows`: how many; 0 where that is to follow from the loops.
    """

    rows: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                self._jam_in(function)

    def __str__(self) -> str:
        return f"{NAME}{{rows={self.rows}}}" if self.rows else NAME

    def _jam_in(self, op: ir.Operation) -> bool:
        """Whether loops right in it are gone."""
        gone = False
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    if inner.name != "affine.for":
                        self._jam_in(inner)
                        continue
                    left = self._jam(inner)
                    if left is _Left.ALL and self._jam_in(inner):
                        left = self._jam(inner)
                    gone = gone or left is _Left.NOTHING
        return gone

    def _jam(self, loop: ir.Operation) -> _Left:
        inner = loops_over_columns(loop)
        if not any(_may_write_again(op, loop) for row in inner for op in body_of(row)):
            return _Left.ALL
        scop = read_scop(loop)
        (own,) = scop.loops_of(loop)
        shared = sorted({name for each in inner for name in _shared(each, own, scop)})
        if not shared or not _may_be_jammed(own, scop):
            return _Left.ALL
        remark = f"rows of {loop_name(loop)} jammed: they share {', '.join(shared)}"
        steps = None if self.rows else steps_of(loop, MANY_ROWS)
        if steps is not None and len(steps) * _operations(inner) <= MOST_OPERATIONS:
            add_remark(loop, NAME, f"all {len(steps)} {remark}")
            around = loop.parent
            assert around is not None
            put_all_side_by_side(loop, steps)
            say_places(around.operation)
            return _Left.NOTHING
        rows = self.rows or _rows_at_once(loop, inner)
        add_remark(loop, f"{NAME}{{rows={rows}}}", f"{rows} {remark}")
        put_side_by_side(loop, rows)
        return _Left.ONE_BY_ONE


class _Left(Enum):
    """What is left of a loop over rows."""

    ALL = auto()
    ONE_BY_ONE = auto()
    """Side by side, and those that are left over."""
    NOTHING = auto()


def _rows_at_once(loop: ir.Operation, inner: Sequence[ir.Operation]) -> int:
    """Many where they are long, and so many that next to none of them are left over."""
    many = _goes_up_to(loop, 4 * MANY_ROWS) and MANY_ROWS * _operations(inner) <= MOST_OPERATIONS
    return MANY_ROWS if many and all(map(_is_long, inner)) else ROWS


def _operations(inner: Sequence[ir.Operation]) -> int:
    return sum(len(body_of(row)) for row in inner)


def _is_long(row: ir.Operation) -> bool:
    """(The length of one whose ends are arguments of the function is known when it runs.)"""
    return _goes_up_to(row, LONG) and all(map(_is_of_function, operands_of_ends(row)))


def _goes_up_to(loop: ir.Operation, iterations: int) -> bool:
    """Whether it may have so many."""
    low, high = ends_of(loop) or (0, None)
    return high is None or high - low >= iterations


def _is_of_function(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Block) and value.owner.owner.name == "func.func"


def _may_write_again(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether `op` is a store that may write the same elements in all iterations of `loop`, as far
    as one sees without the polyhedral model.
    """
    if op.name not in STORES:
        return False
    variable, where = loop.regions[0].blocks[0].arguments[0], list(op.operands)[2:]
    if op.name != "affine.store":
        return variable not in where
    form = ir.AffineMapAttr(op.attributes["map"]).value
    text = str(form).partition("->")[2]
    if any(word in text for word in ("mod", "div")):
        return True  # whether these change, only the model knows
    own = [
        f"d{k}" if k < form.n_dims else f"s{k - form.n_dims}"
        for k, value in enumerate(where)
        if value == variable
    ]
    return not set(own) & set(re.findall(r"[ds]\d+", text))


def _shared(row: ir.Operation, own: Loop, scop: Scop) -> Iterator[str]:
    """What every iteration of `own` writes in the loop `row` again, as it is written there."""
    for statement in scop.statements:
        if statement.op.name in STORES and holds(row, statement.op) and goes_along(statement, own):
            yield str(statement.accesses[0])


def _may_be_jammed(own: Loop, scop: Scop) -> bool:
    """Whether all that is ordered still is where one iteration of `own` does not wait until the one
    before is through: it has to meet it at the same place in the text, and no later column.
    """
    body = body_of(own.op)
    carried = carried_among(own, scop.statements)
    return limited(lambda: all(_stays(each, body, own) for each in carried), lambda: False)


def _stays(dependence: Dependence, body: Sequence[ir.Operation], own: Loop) -> bool:
    if dependence.array.kind is not ArrayKind.MEMORY or not dependence.exact:
        return False
    first, then = (_place(s, body) for s in (dependence.source, dependence.target))
    if first != then:
        return first < then
    column = own.depth + 1
    if len(dependence.source.loops) <= column:
        return True
    back = dependence.relation.order_gt(IN, column, OUT, column)
    return back.is_empty()


def _place(statement: Statement, body: Sequence[ir.Operation]) -> int:
    return next(k for k, op in enumerate(body) if op == statement.op or holds(op, statement.op))

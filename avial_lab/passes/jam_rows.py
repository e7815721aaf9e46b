"""Several rows at once where each adds to the same sums: those are loaded and stored once for all.

Functions of loops -> the same operations on every element of memory, in the same order.

Source: S. Carr, K. Kennedy, Improving the ratio of memory operations to floating-point operations
in loops, TOPLAS 16 (1994), unroll-and-jam.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from avial_lab.passes.arrays_apart import functions_of_arrays_apart
from avial_lab.passes.interleave_rows import put_side_by_side
from avial_lab.passes.notes import loop_name, tell
from avial_lab.passes.program import is_pure
from avial_lab.passes.promote_scalars import LOADS, STORES
from avial_lab.polyhedra import ArrayKind, Dependence, Loop, Scop, Statement, read_scop
from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.dependences import carried_among
from avial_lab.polyhedra.nesting import defined_in, holds
from avial_lab.polyhedra.orders import move_of

NAME = "jam-rows"
ROWS = 4
"""Rows at once: no more streams from memory than a processor follows."""

ACCESSES = (*LOADS, *STORES)
IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class JamRows:
    """Unroll a loop over rows, and make one loop over columns of those inside.

    before:  affine.for %i { affine.for %j { y[j] += A[i, j] * x[i] } }
    after:   affine.for %i step 4 { affine.for %j {
               y[j] = y[j] + A[i, j] * x[i] + … + A[i + 3, j] * x[i + 3] } }

    Only where a loop inside writes a row that is the same for all of them (`y`): one that is only
    read is in the nearest cache, and several streams from memory are none the faster. Rows that are
    left over run one by one.
    """

    rows: int = ROWS

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                self._jam_in(function)

    def __str__(self) -> str:
        return NAME if self.rows == ROWS else f"{NAME}{{rows={self.rows}}}"

    def _jam_in(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    if inner.name != "affine.for" or not self._jam(inner):
                        self._jam_in(inner)

    def _jam(self, loop: ir.Operation) -> bool:
        """Whether its rows run side by side now."""
        inner = loops_over_columns(loop)
        if not any(_may_write_again(op, loop) for row in inner for op in body_of(row)):
            return False
        scop = read_scop(loop)
        (own,) = scop.loops_of(loop)
        shared = sorted({name for each in inner for name in _shared(each, own, scop)})
        if not shared or not _may_be_jammed(own, scop):
            return False
        told = f"{self.rows} rows of {loop_name(loop)} at once, which share {', '.join(shared)}"
        tell(loop, f"{NAME}{{rows={self.rows}}}", told)
        put_side_by_side(loop, self.rows)
        return True


def loops_over_columns(loop: ir.Operation) -> list[ir.Operation]:
    """The loops in the body of `loop`, where copies of all that stands there can be put beside each
    other: their bounds are the same in every iteration, and nothing is inside of them.
    """
    body = body_of(loop)
    inner = [op for op in body if op.name == "affine.for"]
    plain = not len(loop.results) and _steps_by_one(loop) and all(map(_is_row, inner))
    others = (op.name in ACCESSES or is_pure(op) for op in body if op not in inner)
    bounds = (v for op in inner for v in list(op.operands)[: len(op.operands) - len(op.results)])
    if not plain or not all(others) or any(defined_in(loop, value) for value in bounds):
        return []
    return inner


def body_of(loop: ir.Operation) -> list[ir.Operation]:
    """Without the terminator."""
    return [view.operation for view in loop.regions[0].blocks[0].operations][:-1]


def _steps_by_one(loop: ir.Operation) -> bool:
    return ir.IntegerAttr(loop.attributes["step"]).value == 1


def _is_row(loop: ir.Operation) -> bool:
    return _steps_by_one(loop) and all(
        not len(op.regions) and (op.name in ACCESSES or is_pure(op)) for op in body_of(loop)
    )


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


def goes_along(statement: Statement, own: Loop) -> bool:
    """Whether it goes from element to element, over the same ones in all iterations of `own`."""
    (access,) = statement.accesses
    row, place = len(statement.loops) - 1, statement.loops.index(own)
    return access.exact and move_of(access, row) == 1 and move_of(access, place) == 0


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

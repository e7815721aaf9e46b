"""How far rows that are computed side by side have to lag behind each other.

Two loops, one in the other -> columns by which each row starts later than the one before it.

    for i, j: A[i, j] = A[i, j - 1] + A[i - 1, j + 1]      row i + 1 needs column j + 1 of row i,
                                                           so it is two columns behind
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import DependenceKind, carried_among
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Scop, Statement

IN, SET, PARAM = isl.dim_type.in_, isl.dim_type.set, isl.dim_type.param


def is_recurrence(loop: Loop, scop: Scop) -> bool:
    """Whether an iteration of the loop needs what an earlier one computed."""
    inside = scop.within(loop)
    return any(d.kind is DependenceKind.FLOW for d in carried_among(loop, inside))


def lag_of(scop: Scop, rows: Loop, columns: Loop, count: int) -> int | None:
    """The least lag with which `count` rows need nothing of each other in one step; None where no
    number of columns is enough, or is known to be.
    """
    return limited(lambda: _lag(scop.within(columns), rows, columns, count), lambda: None)


def _lag(statements: Sequence[Statement], rows: Loop, columns: Loop, count: int) -> int | None:
    lag = 0
    for distances in _distances(statements, rows, columns):
        for apart in range(1, count):
            there = distances.fix_val(SET, 0, apart)
            if there.is_empty():
                continue
            least = there.dim_min_val(1)
            if not least.is_int():
                return None
            lag = max(lag, -((least.to_python() - 1) // apart))
    return lag


def _distances(statements: Sequence[Statement], rows: Loop, columns: Loop) -> Iterator[isl.Set]:
    """{ [Δrow, Δcolumn] } of accesses that meet, at least one of them a write, one row after the
    other.
    """
    later = isl.Map("{ [i, j] -> [k, l] : i < k }")
    placed = [
        (access, access.relation.apply_domain(_placing(statement, rows, columns)))
        for statement in statements
        for access in statement.accesses
    ]
    for one, first in placed:
        for other, second in placed:
            if one.array == other.array and (one.writes or other.writes):
                pairs = first.apply_range(second.reverse())
                pairs = pairs.intersect(later.align_params(pairs.get_space()))
                deltas = pairs.deltas()
                yield deltas.project_out(PARAM, 0, deltas.dim(PARAM))


def _placing(statement: Statement, rows: Loop, columns: Loop) -> isl.Map:
    names = [f"d{k}" for k in range(len(statement.loops))]
    where = dict(zip(statement.loops, names, strict=True))
    return isl.Map(
        f"{{ {statement.name}[{', '.join(names)}] -> [{where[rows]}, {where[columns]}] }}"
    )

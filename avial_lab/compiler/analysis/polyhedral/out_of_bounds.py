"""Accesses that leave their array whenever the code runs.

Scop -> the accesses that certainly touch an element their array does not have, with the index and
the size. Only what is sure: sizes known at compile time, bounds and subscripts that are affine.

    for i = 0 to 10                A has 10 elements: A[i + 1] reaches index 10 of dimension 0
      … = A[i + 1]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, ArrayKind, Scop, Statement
from avial_lab.core.errors import CellSpan

SET = isl.dim_type.set


@dataclass(frozen=True)
class Outside:
    """`access` (`A[i + 1]`) reaches `index` in a dimension of that size."""

    access: str
    dimension: int
    index: int
    size: int
    span: CellSpan | None

    def __str__(self) -> str:
        """`A[i + 1] reaches index 10 of dimension 0, which has size 10`."""
        where = f"index {self.index} of dimension {self.dimension}"
        return f"{self.access} reaches {where}, which has size {self.size}"


def out_of_bounds(scop: Scop) -> tuple[Outside, ...]:
    """The accesses of a whole function that leave their array, whatever the parameters are."""
    return tuple(
        Outside(str(access), dimension, index, size, statement.span)
        for statement in scop.statements
        if statement.exact
        for access in statement.accesses
        if access.exact and access.array.kind is ArrayKind.MEMORY
        for dimension, size in enumerate(access.array.shape)
        if size is not None
        and (index := _reached(statement, access, dimension, size, scop.context)) is not None
    )


def _reached(
    statement: Statement, access: Access, dimension: int, size: int, context: isl.Set
) -> int | None:
    """An index outside 0 … size - 1 that is touched for all parameters in the context."""
    relation = access.relation.intersect_domain(statement.domain)
    return limited(partial(_outside, relation, dimension, size, context), lambda: None)


def _outside(relation: isl.Map, dimension: int, size: int, context: isl.Set) -> int | None:
    rest = relation.dim(isl.dim_type.out) - dimension - 1
    touched = relation.range().project_out(SET, dimension + 1, rest).project_out(SET, 0, dimension)
    below = touched.upper_bound_val(SET, 0, -1)
    above = touched.lower_bound_val(SET, 0, size)
    if context.is_empty() or not context.is_subset(below.union(above).params()):
        return None
    # The furthest one where that is a number, else the nearest, for some value of the parameters.
    found = above if below.is_empty() else below
    low, high = found.dim_min_val(0), found.dim_max_val(0)
    first, second = (high, low) if below.is_empty() else (low, high)
    return (first if first.is_int() else second).to_python()

"""Accesses that leave their array whenever the code runs, or for some values of its parameters.

Scop -> the accesses that certainly touch an element their array does not have, with the index and
the size. Only what is sure: sizes known at compile time, bounds and subscripts that are affine.

    for i = 0 to 10                A has 10 elements: A[i + 1] reaches index 10 of dimension 0
      … = A[i + 1]

    for i = 0 to n                 A[i] leaves it where n > 10, and reaches index n - 1 then
      … = A[i]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, ArrayKind, Scop, Statement
from avial_lab.core.errors import CellSpan

PARAM, SET = isl.dim_type.param, isl.dim_type.set


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
    touched = _places(relation, dimension)
    below = touched.upper_bound_val(SET, 0, -1)
    above = touched.lower_bound_val(SET, 0, size)
    if context.is_empty() or not context.is_subset(below.union(above).params()):
        return None
    # The furthest one where that is a number, else the nearest, for some value of the parameters.
    found = above if below.is_empty() else below
    low, high = found.dim_min_val(0), found.dim_max_val(0)
    first, second = (high, low) if below.is_empty() else (low, high)
    return (first if first.is_int() else second).to_python()


@dataclass(frozen=True)
class Leaving:
    """`access` of `statement` leaves its array for the parameters in `when`, and then reaches
    `index`, the farthest, in a dimension of that size.
    """

    statement: Statement
    access: Access
    dimension: int
    size: int
    when: isl.Set
    index: isl.PwAff

    @property
    def parameters(self) -> set[str]:
        """Those that the condition and the index hang on."""
        return {*_involved(self.when), *_involved(self.index)}


def leaving(scop: Scop, parameters: Collection[str]) -> tuple[Leaving, ...]:
    """The accesses that leave their array for some values of these parameters, whose values only
    the run knows; what isl does not decide within its budget is left out, and what is not exact.
    """
    return tuple(
        found
        for statement in scop.statements
        if statement.exact
        for access in statement.accesses
        if access.exact and access.array.kind is ArrayKind.MEMORY
        for dimension, size in enumerate(access.array.shape)
        if size is not None
        for found in limited(
            partial(_leaving, scop, statement, access, dimension, size, parameters), tuple
        )
    )


def _leaving(
    scop: Scop,
    statement: Statement,
    access: Access,
    dimension: int,
    size: int,
    parameters: Collection[str],
) -> tuple[Leaving, ...]:
    relation = access.relation.intersect_domain(statement.domain)
    touched = _places(relation, dimension).intersect_params(scop.context)
    below, above = touched.upper_bound_val(SET, 0, -1), touched.lower_bound_val(SET, 0, size)
    ends = [(below, isl.Set.dim_min), (above, isl.Set.dim_max)]
    return tuple(
        Leaving(statement, access, dimension, size, when, farthest(part, 0).coalesce())
        for part, farthest in ends
        if not part.is_empty()
        and not set(parameters).isdisjoint(
            _involved(when := part.params().gist(scop.context).coalesce())
        )
    )


def _places(relation: isl.Map, dimension: int) -> isl.Set:
    """The indices of one dimension that are touched."""
    rest = relation.dim(isl.dim_type.out) - dimension - 1
    return relation.range().project_out(SET, dimension + 1, rest).project_out(SET, 0, dimension)


def _involved(what: isl.Set | isl.PwAff) -> Iterator[str]:
    """The names of the parameters that it hangs on."""
    for place in range(what.dim(PARAM)):
        if what.involves_dims(PARAM, place, 1):
            yield str(what.get_dim_name(PARAM, place))

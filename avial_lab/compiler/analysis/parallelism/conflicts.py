"""Which executions must not meet on different ranks: those that touch one element, one of them
writing it.

Statements, each with the loop whose values are dealt out to the ranks -> the pairs of accesses of
which one element may be touched at two different values. No pair: each value may run anywhere.

    for i = 0 to N                     chosen j: C[k, j] and C[i, j] are one element only where
      for j = 0 to M                   both j are equal: no conflict
        for k = 0 to i
          C[k, j] += …                 chosen i: C[k, j] of i and C[i, j] of a smaller i: a conflict
        C[i, j] = …

Loops around the nest are at one iteration. With the nest's own outermost loop chosen, this is the
same question as whether that loop carries a dependence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, Scop, Statement

IN, OUT = isl.dim_type.in_, isl.dim_type.out

Place = int
"""The depth of a statement's chosen loop: which of its loops, and of its domain's dimensions."""


@dataclass(frozen=True)
class Conflict:
    """Two accesses (perhaps one, of two executions) that meet at different chosen values."""

    first: Statement
    first_access: Access
    second: Statement
    second_access: Access

    @property
    def array(self) -> Array:
        return self.first_access.array


class Conflicts:
    """Finds conflicts; remembers the answer for each pair of accesses, as nests share pairs."""

    def __init__(self, scop: Scop) -> None:
        self._parameters = frozenset(scop.parameters)
        self._known: dict[tuple[int, int, Place, Place, int], bool] = {}

    def among(
        self, statements: Sequence[Statement], places: Mapping[str, Place], around: int
    ) -> Iterator[Conflict]:
        """The conflicts of `statements`, in textual order.

        `places` by the statement's name; `around`: how many loops are around all of them. Takes
        time for the pairs that touch one array, not for all.
        """
        touching = _touching(statements)
        for k, first in enumerate(statements):
            arrays = {id(access.array) for access in first.accesses}
            for other in sorted({m for each in arrays for m in touching.get(each, ()) if m >= k}):
                yield from self.between(first, statements[other], places, around)

    def between(
        self, first: Statement, second: Statement, places: Mapping[str, Place], around: int
    ) -> Iterator[Conflict]:
        for k, a in enumerate(first.accesses):
            for b in second.accesses[k if first is second else 0 :]:
                if a.array is not b.array or not (a.writes or b.writes):
                    continue
                key = (id(a), id(b), places[first.name], places[second.name], around)
                if key not in self._known:
                    self._known[key] = self._meet(Conflict(first, a, second, b), *key[2:])
                if self._known[key]:
                    yield Conflict(first, a, second, b)

    def _meet(self, pair: Conflict, p: Place, q: Place, around: int) -> bool:
        """Whether both touch one element at different values of their chosen loops."""
        here = _separating_subscripts(pair.first, pair.first_access, p, around, self._parameters)
        there = _separating_subscripts(pair.second, pair.second_access, q, around, self._parameters)
        return here.isdisjoint(there) and limited(
            lambda: _exactly(pair, p, q, around), lambda: True
        )


def _touching(statements: Sequence[Statement]) -> dict[int, list[int]]:
    """For each array that is written (by its identity) the numbers of those that touch it."""
    found: dict[int, list[int]] = {}
    written: set[int] = set()
    for k, statement in enumerate(statements):
        for access in statement.accesses:
            found.setdefault(id(access.array), []).append(k)
            if access.writes:
                written.add(id(access.array))
    return {array: numbers for array, numbers in found.items() if array in written}


def _exactly(pair: Conflict, p: Place, q: Place, around: int) -> bool:
    first, a, second, b = pair.first, pair.first_access, pair.second, pair.second_access
    pairs = a.relation.apply_range(b.relation.reverse())
    # An array allocated inside loops is another one in each of their iterations.
    for dim in range(max(around, _shared(a.array, first, second))):
        pairs = pairs.equate(IN, dim, OUT, dim)
    if pairs.is_empty():
        return False
    if not pairs.order_lt(IN, p, OUT, q).is_empty():
        return True
    return a is not b and not pairs.order_gt(IN, p, OUT, q).is_empty()


def _shared(array: Array, first: Statement, second: Statement) -> int:
    """How many of the loops around its allocation both statements are in; those come first."""
    both = zip(array.loops, first.loops, second.loops, strict=False)
    return sum(1 for own, x, y in both if own is x and own is y)


def _separating_subscripts(
    statement: Statement, access: Access, place: Place, around: int, parameters: frozenset[str]
) -> frozenset[tuple[object, ...]]:
    """The subscripts that differ whenever the chosen values do, as what must be equal for that.

    `A[k, 2*j + n]` with j chosen: dimension 1, factor 2, and the rest n, a parameter. Two accesses
    that have one of them in common need no isl.
    """
    if access.forms is None:
        return frozenset()
    chosen = statement.loops[place].name
    # Any other term may vary: an inner loop, a quotient, a choice.
    fixed = parameters | {loop.name for loop in statement.loops[:around]}
    found: set[tuple[object, ...]] = set()
    for dim, form in enumerate(access.forms):
        terms = dict(form.terms) if form is not None else {}
        factor = terms.pop(chosen, 0)
        if form is not None and factor and fixed.issuperset(terms):
            found.add((dim, factor, frozenset(terms.items()), form.constant))
    return frozenset(found)

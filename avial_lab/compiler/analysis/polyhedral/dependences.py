"""Which iterations must stay in order, and why: exact memory-based dependences.

Statements -> flow, anti and output dependences, one for each pair of accesses and each loop that
carries it, with the pairs of iterations as an isl relation.

    for i = 1 to N                 flow, carried by i, distance (1):
      A[i] = A[i - 1]              { S1[i] -> S0[i + 1] : 1 <= i < N - 1 }

For source access a and target access b of one array, at least one of them a write, the dependence
at level p holds the pairs x -> y with a(x) = b(y), x and y equal in the loops outside p, and
x[p] < y[p]; loop-independent: equal in all common loops, a's statement first in the text.

Source: P. Feautrier, Dataflow analysis of array and scalar references, IJPP 20 (1991);
J. R. Allen, K. Kennedy, Automatic translation of Fortran programs to vector form, TOPLAS 9 (1987),
for levels; W. Pugh, The Omega test, CACM 35 (1992), for exactness.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.budget import OPERATIONS, TOO_HARD, limited, remembered
from avial_lab.compiler.analysis.polyhedral.scop import (
    Access,
    Array,
    ArrayKind,
    Loop,
    LoopKind,
    Scop,
    Statement,
)

IN, OUT = isl.dim_type.in_, isl.dim_type.out


class DependenceKind(Enum):
    FLOW = "flow"  # write, then read
    ANTI = "anti"  # read, then write
    OUTPUT = "output"  # write, then write


@dataclass(frozen=True)
class Dependence:
    """`source` must run before `target`, for the pairs of iterations in `relation`.

    `carrier` is the outermost loop whose iterations it orders; None where both run in one
    iteration of all their common loops. Where `exact` is false, `relation` is a superset.
    """

    kind: DependenceKind
    source: Statement
    source_access: Access
    target: Statement
    target_access: Access
    carrier: Loop | None
    relation: isl.Map
    exact: bool
    note: str | None = None

    @property
    def array(self) -> Array:
        return self.source_access.array

    @property
    def common_loops(self) -> tuple[Loop, ...]:
        return _common(self.source, self.target)

    @cached_property
    def distance(self) -> tuple[int | None, ...]:
        """By how much each common loop's variable is greater at the target; None where it varies.

        In values of the variable: a loop of step 2 has distances 0, 2, 4, …
        """
        count = len(self.common_loops)
        return limited(lambda: tuple(self._fixed_difference(k) for k in range(count)),
                       lambda: (None,) * count)  # fmt: skip

    def _fixed_difference(self, dim: int) -> int | None:
        low, high = (self._differences(dim).dim_min_val(0), self._differences(dim).dim_max_val(0))
        return low.to_python() if low.is_int() and low == high else None

    def _differences(self, dim: int) -> isl.Set:
        """{ y[dim] - x[dim] } over all pairs and all values of the parameters."""
        pairs = self.relation
        pairs = pairs.project_out(isl.dim_type.param, 0, pairs.dim(isl.dim_type.param))
        pairs = pairs.reset_tuple_id(IN).reset_tuple_id(OUT)
        for kind in (IN, OUT):
            after = pairs.dim(kind) - dim - 1
            pairs = pairs.project_out(kind, dim + 1, after).project_out(kind, 0, dim)
        return pairs.deltas()

    @cached_property
    def directions(self) -> tuple[str, ...]:
        """For each common loop `<`, `=` or `>` as far as it is one of them for all pairs, else `*`.

        Source's variable compared with target's: `<` is forward.
        """
        count = len(self.common_loops)
        return limited(lambda: tuple(self._direction(k) for k in range(count)),
                       lambda: ("*",) * count)  # fmt: skip

    def _direction(self, dim: int) -> str:
        values = self._differences(dim)
        low, high = values.dim_min_val(0), values.dim_max_val(0)
        if low.is_zero() and high.is_zero():
            return "="
        if low.is_pos():
            return "<"
        return ">" if high.is_neg() else "*"

    def reason(self) -> str:
        """One line for people, `A[i - 1] is written by the previous iteration of i: line 7`.

        It names the array with the subscripts as written, the loop, the distance and the line of
        the other access.
        """
        return _reason(self)

    def __str__(self) -> str:
        where = f"carried by {self.carrier}" if self.carrier is not None else "loop-independent"
        return (
            f"{self.kind.value} {self.source.name}:{self.source_access} -> "
            f"{self.target.name}:{self.target_access}, {where}"
        )


def dependences(statements: Scop | Sequence[Statement]) -> tuple[Dependence, ...]:
    """All dependences among the statements, in textual order of their sources.

    Read after read is none. Takes time proportional to the pairs of accesses of one array.
    """
    listed = statements.statements if isinstance(statements, Scop) else tuple(statements)
    order = {statement.name: k for k, statement in enumerate(listed)}
    found = [
        dependence
        for accesses in map(list, _by_array(listed).values())
        for k, first in enumerate(accesses)
        for second in accesses[k:]
        if first[1].writes or second[1].writes
        for dependence in _between(first, second)
    ]
    found.sort(key=lambda d: (order[d.source.name], order[d.target.name], _depth(d)))
    return tuple(found)


def dependences_between(
    before: Sequence[Statement], after: Sequence[Statement]
) -> tuple[Dependence, ...]:
    """Those of statements on such as stand before them all; cheaper than all of them."""
    earlier = _by_array(before)
    return tuple(
        dependence
        for later in after
        for access in later.accesses
        for placed in earlier.get(access.array.name, ())
        if access.writes or placed[1].writes
        for dependence in _between(placed, (later, access), back=False)
    )


def _by_array(statements: Sequence[Statement]) -> dict[str, deque[Placed]]:
    """The accesses of each array in textual order: no others can depend on each other."""
    found: dict[str, deque[Placed]] = {}
    for statement in statements:
        for access in statement.accesses:
            found.setdefault(access.array.name, deque()).append((statement, access))
    return found


def carried_among(loop: Loop, statements: Sequence[Statement]) -> tuple[Dependence, ...]:
    """The dependences that `loop` carries among the statements in it; cheaper than all of them.

    In the order of `carried_by`.
    """
    inside = [s for s in statements if loop in s.loops]
    later = _by_array(inside)
    found: list[Dependence] = []
    for statement in inside:
        for access in statement.accesses:
            placed = later[access.array.name]
            for other in placed:
                if access.writes or other[1].writes:
                    found += _between((statement, access), other, only=loop)
            placed.popleft()
    return carried_by(loop, found)


def carried_by(
    loop: Loop | ir.Operation | ir.OpView, among: Scop | Sequence[Dependence]
) -> tuple[Dependence, ...]:
    """The dependences that forbid running the loop's iterations at the same time, in any order.

    For an operation of several dimensions, those of all of them. None at all: the loop is parallel.
    Flow dependences come first, then anti, then output: a reader understands them in that order.
    """
    given = dependences(among) if isinstance(among, Scop) else among
    if isinstance(loop, Loop):
        found = [d for d in given if d.carrier == loop]
    else:
        op = loop.operation
        found = [d for d in given if d.carrier is not None and d.carrier.op == op]
    return tuple(sorted(found, key=lambda d: list(DependenceKind).index(d.kind)))


def _depth(dependence: Dependence) -> int:
    return dependence.carrier.depth if dependence.carrier is not None else 1 << 30


def _common(a: Statement, b: Statement) -> tuple[Loop, ...]:
    common: list[Loop] = []
    for first, second in zip(a.loops, b.loops, strict=False):
        if first != second:
            break
        common.append(first)
    return tuple(common)


Placed = tuple[Statement, Access]
NoPairs = tuple[None, None]


def _between(
    first: Placed, second: Placed, *, only: Loop | None = None, back: bool = True
) -> Iterator[Dependence]:
    """The dependences between two accesses of one array, both ways unless without those `back`;
    all, or those of one loop.
    """
    # Values carried from iteration to iteration are never overwritten: each has its own element.
    common = _common(first[0], second[0])
    shared = [loop for loop in first[1].array.loops if loop in common]
    pairs, reverse = _meetings(first[1].relation, second[1].relation, len(shared))
    if pairs is not None and pairs.plain_is_empty():
        return
    same = first is second or (first[0] is second[0] and first[1] is second[1])
    yield from _levels(first, second, pairs, common, only)
    if back and not same:
        yield from _levels(second, first, reverse, common, only)


@remembered
def _meetings(first: isl.Map, second: isl.Map, shared: int) -> tuple[isl.Map, isl.Map] | NoPairs:
    """The pairs of instances on one element, and the same the other way round."""
    pairs = limited(lambda: _same_element(first, second, shared), lambda: None)
    return (None, None) if pairs is None else (pairs, pairs.reverse())


def _same_element(first: isl.Map, second: isl.Map, shared: int) -> isl.Map:
    pairs = first.apply_range(second.reverse())
    for dim in range(shared):  # each of these iterations allocates an array of its own
        pairs = pairs.equate(IN, dim, OUT, dim)
    return isl.Map.empty(pairs.get_space()) if pairs.is_empty() else pairs


def meet_within(first: Access, second: Access, around: int) -> bool:
    """Whether there is an element that both touch in one iteration of the outermost `around` loops,
    which are those of both.
    """
    return not _same_element(first.relation, second.relation, around).is_empty()


def _levels(
    source: Placed,
    target: Placed,
    pairs: isl.Map | None,
    common: Sequence[Loop],
    only: Loop | None,
) -> Iterator[Dependence]:
    """The pairs in program order, split by the loop that carries them."""
    before: tuple[Loop, ...] = ()
    for loop in common:
        found = _ordered(source, target, pairs, before, loop) if only in (None, loop) else None
        if found is not None:
            yield found
        before = (*before, loop)
    if only is None and source[0].position < target[0].position:
        found = _ordered(source, target, pairs, before, None)
        if found is not None:
            yield found


def _ordered(
    source: Placed,
    target: Placed,
    pairs: isl.Map | None,
    equal: Sequence[Loop],
    carrier: Loop | None,
) -> Dependence | None:
    def anything() -> isl.Map:
        universe = isl.Map.from_domain_and_range(source[0].domain, target[0].domain)
        return _level(universe, len(equal), carrier is not None)

    relation = None if pairs is None else _in_order(pairs, len(equal), carrier is not None)
    note = None
    exact = all(s.exact and access.exact for s, access in (source, target))
    if relation is None:
        relation, exact = anything(), False
        note = TOO_HARD.format(limit=OPERATIONS)
    if relation.plain_is_empty():
        return None
    kind = _KINDS[source[1].writes, target[1].writes]
    return Dependence(kind, *source, *target, carrier, relation, exact, note)


def _level(pairs: isl.Map, equal: int, carried: bool) -> isl.Map:
    """Of one iteration of so many loops; `carried`: the first in an earlier one of the next."""
    for dim in range(equal):
        pairs = pairs.equate(IN, dim, OUT, dim)
    return pairs.order_lt(IN, equal, OUT, equal) if carried else pairs


@remembered
def _in_order(pairs: isl.Map, equal: int, carried: bool) -> isl.Map | None:
    """The same, exactly; None where isl finds that too hard."""

    def exactly() -> isl.Map:
        ordered = _level(pairs, equal, carried)
        return isl.Map.empty(ordered.get_space()) if ordered.is_empty() else ordered.coalesce()

    return limited(exactly, lambda: None)


_KINDS = {
    (True, False): DependenceKind.FLOW,
    (False, True): DependenceKind.ANTI,
    (True, True): DependenceKind.OUTPUT,
}


# -- in words


def _reason(dependence: Dependence) -> str:
    array, loop = dependence.array, dependence.carrier
    source = dependence.source
    if loop is not None and loop.kind is LoopKind.WHILE and array.kind is ArrayKind.VALUE:
        return f"{loop.op.name} decides after each iteration whether to run another{_line(source)}"
    if array.kind is ArrayKind.VALUE:
        return f"{array} is passed from one iteration of {loop} to the next{_line(source)}"
    if array.kind is ArrayKind.EFFECT:
        return f"{source.op.name} has unknown side effects and runs in order{_line(source)}"
    here, there, verb, other, when = _sides(dependence)
    modal = "is" if dependence.exact else "may be"
    text = f"{here} {modal} {verb} by {when}{_line(other)}"
    if str(there) != str(here):
        text += f", as {there}"
    return text + (f" ({dependence.note})" if dependence.note else "")


def _sides(dependence: Dependence) -> tuple[Access, Access, str, Statement, str]:
    """The access that is spoken of, the other one, what the other does to it, where, and when."""
    flow = dependence.kind is DependenceKind.FLOW
    spoken = dependence.target_access if flow else dependence.source_access
    other = dependence.source_access if flow else dependence.target_access
    statement = dependence.source if flow else dependence.target
    verb = "written" if flow else "overwritten" if spoken.writes is False else "written again"
    return spoken, other, verb, statement, _when(dependence, earlier=flow)


def _when(dependence: Dependence, *, earlier: bool) -> str:
    loop = dependence.carrier
    if loop is None:
        return "the same iteration"
    distance = dependence.distance[dependence.common_loops.index(loop)]
    iterations = distance // loop.step if distance is not None and loop.step else None
    if iterations is None:
        return f"{'an earlier' if earlier else 'a later'} iteration of {loop}"
    if iterations == 1:
        return f"the previous iteration of {loop}" if earlier else f"the next iteration of {loop}"
    return f"iteration {loop} {'-' if earlier else '+'} {distance}"


def _line(statement: Statement) -> str:
    return f": line {statement.span.line}" if statement.span is not None else ""

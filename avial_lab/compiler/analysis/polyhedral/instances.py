"""Instances of units, when they run, and which of them have to stay in order.

Units, dependences of their statements -> Parts with points in time, Edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.dependences import Dependence, DependenceKind
from avial_lab.compiler.analysis.polyhedral.units import Unit

IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class UnitInstances:
    """Instances of a unit; `step` is the place of the loop that comes before all others, if one
    does.
    """

    unit: Unit
    points: isl.Set
    step: int | None = None


def together(times: Iterable[isl.Map]) -> isl.UnionMap:
    return reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, times), isl.UnionMap("{ }"))


def shorter(times: isl.UnionMap) -> tuple[isl.UnionMap, tuple[int, ...]]:
    """The same order with the dimensions alone that decide anything, and which ones these are: isl
    takes as long for a dimension that says nothing as for a loop.

    A dimension says nothing of maps whose values there are one number, or those of an earlier
    dimension; nor of maps that an earlier one keeps apart by their numbers.

    >>> order = isl.UnionMap("{ A[i, j] -> [0, i, 1, i, j]; B[i] -> [0, i, 2, i, 7] }")
    >>> short, kept = shorter(order)
    >>> kept, short.is_equal(isl.UnionMap("{ A[i, j] -> [i, 1, j]; B[i] -> [i, 2, 7] }"))
    ((1, 2, 4), True)
    """
    maps: list[isl.Map] = []
    times.foreach_map(maps.append)
    groups, kept = [maps], list[int]()
    for dim in range(max((each.dim(OUT) for each in maps), default=0)):
        if not all(_is_known(group, dim, kept) for group in groups):
            kept.append(dim)
            groups = [part for group in groups for part in _kept_apart(group, dim)]
    return together(_with_only(each, kept) for each in maps), tuple(kept)


def _is_known(group: Sequence[isl.Map], dim: int, earlier: Sequence[int]) -> bool:
    numbers = {_number(each, dim) for each in group}
    if None not in numbers:
        return len(numbers) == 1
    return any(
        all(each.equate(OUT, other, OUT, dim).plain_is_equal(each) for each in group)
        for other in earlier
    )


def _kept_apart(group: Sequence[isl.Map], dim: int) -> list[list[isl.Map]]:
    """The group by its numbers there, where all of it has such."""
    found: dict[int | None, list[isl.Map]] = {}
    for each in group:
        found.setdefault(_number(each, dim), []).append(each)
    return [list(group)] if None in found else list(found.values())


def _number(time: isl.Map, dim: int) -> int | None:
    value = time.plain_get_val_if_fixed(OUT, dim)
    return value.to_python() if value.is_int() else None


def _with_only(time: isl.Map, dims: Sequence[int]) -> isl.Map:
    for dim in reversed(range(time.dim(OUT))):
        if dim not in dims:
            time = time.project_out(OUT, dim, 1)
    return time


def times_of(parts: Sequence[UnitInstances]) -> dict[str, isl.Map]:
    """When the instances of each unit run: the step, then as in the program; points in time of one
    length, or isl would not compare them.
    """
    length = max(2 * len(part.unit.loops) + 1 for part in parts)
    times: dict[str, isl.Map] = {}
    for part in parts:
        time = part.unit.statements[-1].schedule.set_tuple_name(IN, part.unit.name)
        for place in range(time.dim(OUT), length):
            time = time.insert_dims(OUT, place, 1).fix_val(OUT, place, 0)
        if part.step is not None:
            time = time.insert_dims(OUT, 0, 1).equate(IN, part.step, OUT, 0)
        times[part.unit.name] = time.intersect_domain(part.points)
    return times


@dataclass(frozen=True)
class Edge:
    """A dependence between instances of units; `reader`: the statement of them that reads."""

    source: str
    target: str
    relation: isl.Map
    kind: DependenceKind
    reader: str
    statements: frozenset[str]


def edges_among(units: Sequence[Unit], found: Sequence[Dependence]) -> list[Edge]:
    of = {statement.name: unit.name for unit in units for statement in unit.statements}
    edges: list[Edge] = []
    for each in found:
        source, target = of.get(each.source.name), of.get(each.target.name)
        if source is None or target is None or (source == target and each.carrier is None):
            continue
        relation = each.relation.set_tuple_name(IN, source).set_tuple_name(OUT, target)
        both = frozenset({each.source.name, each.target.name})
        reader = each.source.name if each.kind is DependenceKind.ANTI else each.target.name
        edges.append(Edge(source, target, relation, each.kind, reader, both))
    return edges


def first_of(relation: isl.Map) -> isl.Map:
    return _with_explicit_equalities(relation).lexmin()


def last_of(relation: isl.Map) -> isl.Map:
    return _with_explicit_equalities(relation).lexmax()


def _with_explicit_equalities(relation: isl.Map) -> isl.Map:
    """Without equalities that only inequalities imply: with some of these isl's answer is one of
    the points, and not the extreme one (seen in islpy 2026.2.2).
    """
    return relation.detect_equalities()

"""Substitutions: rows that wait for all rows before, term by term, as in triangular solves.

Scop, Units -> Substitution: blocks of rows, in each what waits for earlier blocks only, then the
rest.

    for i:                                          ┌───┐
      for j < i:  x[i] -= L[i, j] * x[j]            │ ╲ │ late: columns of the block's own rows
      x[i] /= L[i, i]                               ├───┼───┐
                                                    │   │ ╲ │
    The terms of a row that later rows of its       ├───┴───┼───┐
    block do not wait for are in order, and all     │ early │ ╲ │
    before the others: every sum stays as it is.    └───────┴───┘

Source: G. Golub, C. Van Loan, Matrix computations, 4th edition (2013), section 3.1.4, block forward
substitution. Here it follows from the dependences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from avial_lab.compiler.analysis.patterns.factorisations import (
    extent_of,
    known_length,
    starts,
    within_block,
)
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.instances import Edge, UnitInstances, edges_among
from avial_lab.compiler.analysis.polyhedral.ranges import Range
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.units import Unit

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set

FEWEST = 4
"""Blocks: of less there is little that threads could share."""

ROUNDS = 4
"""Of looking what waits for what waits: dependences are known between all pairs, not only between
neighbours, so that more would be a nest of another kind.
"""


@dataclass(frozen=True)
class Substitution:
    """For each block of `width` iterations of the outermost loop, from the parameter `first` on,
    all of whose values are `firsts`: the instances that are `early`, of which no row waits for
    another; then those that are `late`, in the order of the program.
    """

    first: str
    firsts: isl.Set
    width: int
    rows: Range
    early: tuple[UnitInstances, ...]
    late: tuple[UnitInstances, ...]


def substitution_in(
    scop: Scop, units: Sequence[Unit], *, width: int, first: str
) -> Substitution | None:
    """The scop in blocks of rows, where most of each row waits for earlier blocks only."""
    rows = [unit.name for unit in units if len(unit.loops) > 1]
    extent = extent_of(units, dict.fromkeys((unit.name for unit in units), 0))
    if not rows or extent is None or known_length(extent) < FEWEST * width:
        return None
    inside = {unit.name: within_block(unit, 0, first, width, extent) for unit in units}
    late = _late(inside, edges_among(units, dependences(scop)), first)
    if late is None:
        return None
    early = {name: inside[name].subtract(late[name]).coalesce() for name in inside}
    if not all(_is_mostly_early(early[name], late[name], width) for name in rows):
        return None
    return Substitution(
        first,
        starts(first, extent),
        width,
        extent,
        tuple(
            UnitInstances(unit, early[unit.name])
            for unit in units
            if not early[unit.name].is_empty()
        ),
        tuple(
            UnitInstances(unit, late[unit.name]) for unit in units if not late[unit.name].is_empty()
        ),
    )


def _late(
    inside: Mapping[str, isl.Set], known: Sequence[Edge], first: str
) -> dict[str, isl.Set] | None:
    """For each unit the instances of a block that wait for another row of it, however indirectly;
    None where there are none, or that is hard to say.
    """
    here = {
        edge: edge.relation.intersect_domain(inside[edge.source]).intersect_range(
            inside[edge.target]
        )
        for edge in known
    }
    late = {name: points.subtract(points) for name, points in inside.items()}
    for edge, relation in here.items():
        late[edge.target] = late[edge.target].union(_to_later_rows(relation).range())
    if all(points.is_empty() for points in late.values()):
        return None
    for _ in range(ROUNDS):
        late = {name: _simpler(points, inside[name], first) for name, points in late.items()}
        then = dict(late)
        for edge, relation in here.items():
            then[edge.target] = then[edge.target].union(
                relation.intersect_domain(late[edge.source]).range()
            )
        if all(then[name].is_subset(late[name]) for name in late):
            return late
        late = then
    return None


def _to_later_rows(relation: isl.Map) -> isl.Map:
    every = isl.Map.universe(relation.get_space())
    return relation.intersect(every.order_lt(IN, 0, OUT, 0))


def _simpler(late: isl.Set, inside: isl.Set, first: str) -> isl.Set:
    """All rows, where only a block's first one waits for no other."""
    late = late.coalesce()
    row = isl.Set.universe(inside.get_space())
    place = row.find_dim_by_name(isl.dim_type.param, first)
    rest = inside.subtract(late)
    return inside if rest.is_subset(row.equate(isl.dim_type.param, place, SET, 0)) else late


def _is_mostly_early(early: isl.Set, late: isl.Set, width: int) -> bool:
    """Whether some are early, and of each row less than `width` in each direction are not."""
    pairs = isl.Map.from_domain_and_range(late, late).equate(IN, 0, OUT, 0)
    between = pairs.deltas()
    few = isl.Set.universe(between.get_space())
    for place in range(1, few.dim(SET)):
        few = few.lower_bound_val(SET, place, 1 - width).upper_bound_val(SET, place, width - 1)
    return not early.is_empty() and between.is_subset(few)

"""Tables whose elements are the best split of a stretch: most of what a tile waits for lies in
tiles before it.

Scop, Units -> Table: tiles of rows and columns, in each a contraction of what other tiles have,
then the rest in its order.

    for i descending, j > i, i < k < j:                   columns ─►
      T[i, j] = max(T[i, j], T[i, k] + T[k + 1, j])      ┌────┬────┬────┐  rows I come after those
                                                         │ I  │I, K│I, J│  below: T[I, K] and
    Terms k between the tile's rows and its columns      └────┼────┼────┤  T[K + 1, J] are there
    come first, all at once; those that meet the tile         │  K │K, J│  where K lies between I
    itself follow. Only of updates that any order             └────┼────┤  and J
    leaves the same bits of (`exact_families`).                    │ J  │
    Tiles of one wave do not wait for each other.                  └────┘

Source: Z. Galil, K. Park, Parallel algorithms for dynamic programming recurrences with more than
O(1) dependency, JPDC 21 (1994); tiles and waves as in J. Xue, Loop tiling for parallelism (2000).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from avial_lab.compiler.analysis.parallelism.reductions import exact_families
from avial_lab.compiler.analysis.patterns.contractions import (
    Contraction,
    candidates_of,
    one_element_each,
    space_of,
)
from avial_lab.compiler.analysis.patterns.factorisations import (
    convex_pieces,
    extent_of,
    known_length,
    starts,
    within_ranges,
)
from avial_lab.compiler.analysis.patterns.interchange import better_order, first_order, order_among
from avial_lab.compiler.analysis.polyhedral.ranges import Range
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.units import Unit

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set
ROW, COLUMN, TERM = 0, 1, 2


@dataclass(frozen=True)
class Table:
    """A tile is `width` iterations of the outer loop from the parameter `firsts[0]` on, and of the
    next one from `firsts[1]` on, which lie in the two `extents`; `known` is what is known of them
    and of other parameters.

    In each tile: the contraction `far`, then what else there is at the times `near`.
    """

    firsts: tuple[str, str]
    extents: tuple[Range, Range]
    width: int
    known: isl.Set
    far: Contraction
    near: isl.UnionMap


def table_in(
    scop: Scop,
    units: Sequence[Unit],
    *,
    width_of: Callable[[Contraction], int],
    firsts: tuple[str, str],
) -> Table | None:
    """The scop as tiles, where one of its units is a contraction of what other tiles have."""
    candidates = [
        each for unit in units for each in candidates_of(scop, unit) if _may_be_far(each, scop)
    ]
    if not candidates or not _share_loops(units):
        return None
    rows, columns = _extent(units, ROW), _extent(units, COLUMN)
    if rows is None or columns is None:
        return None
    extents = rows, columns
    ordered = order_among(scop, units)
    if any(_goes_back(each, place) for each in _maps(ordered) for place in (ROW, COLUMN)):
        return None
    known = starts(firsts[0], rows).intersect(starts(firsts[1], columns)).intersect(scop.context)
    for candidate in candidates:
        width = width_of(candidate)
        if min(map(known_length, extents)) < 2 * width:
            continue
        inside = {unit.name: _within(unit, firsts, width, known) for unit in units}
        far, points = _far(candidate, inside, ordered, known)
        if far is not None:
            rest = inside | {
                candidate.unit.name: inside[candidate.unit.name].subtract(points).coalesce()
            }
            times = better_order(scop, units) or first_order(units, ordered)
            near = times.intersect_domain(_together(rest))
            return Table(firsts, extents, width, known, far, near)
    return None


def _may_be_far(candidate: Contraction, scop: Scop) -> bool:
    """Whether its terms may come in any order, and its rows and columns are the outer loops."""
    families = exact_families(scop)
    return (
        not candidate.roles.around
        and {candidate.roles.row, candidate.roles.column} == {ROW, COLUMN}
        and candidate.store.name in families
        and families.get(candidate.element.name) == families[candidate.store.name]
        and one_element_each(candidate)
    )


def _share_loops(units: Sequence[Unit]) -> bool:
    """Whether all of them stand in the same two loops."""
    return len({unit.loops[:TERM] for unit in units}) == 1 and len(units[0].loops) >= TERM


def _extent(units: Sequence[Unit], place: int) -> Range | None:
    """From the first to the last value of a loop; None where that is not one form each."""
    found = extent_of(units, {unit.name: place for unit in units})
    return found if found and len(found.lows) == len(found.highs) == 1 else None


def _goes_back(pairs: isl.Map, place: int) -> bool:
    """Whether something waits for a later row, or column."""
    back = isl.Map.universe(pairs.get_space()).order_gt(IN, place, OUT, place)
    return not pairs.is_disjoint(back)


def _maps(ordered: isl.UnionMap) -> list[isl.Map]:
    found: list[isl.Map] = []
    ordered.foreach_map(found.append)
    return found


def _within(unit: Unit, firsts: tuple[str, str], width: int, known: isl.Set) -> isl.Set:
    """The instances of `unit` in the tile."""
    dims = ", ".join(f"x{k}" for k in range(len(unit.loops)))
    ends = [f"{first} <= x{k} < {first} + {width}" for k, first in enumerate(firsts)]
    tile = isl.Set(f"[{', '.join(firsts)}] -> {{ {unit.name}[{dims}] : {' and '.join(ends)} }}")
    return unit.domain.intersect(tile).intersect_params(known)


def _together(points: Mapping[str, isl.Set]) -> isl.UnionSet:
    return reduce(isl.UnionSet.union, map(isl.UnionSet.from_set, points.values()))


# -- what other tiles have -------------------------------------------------------------------------


def _far(
    candidate: Contraction, inside: Mapping[str, isl.Set], ordered: isl.UnionMap, known: isl.Set
) -> tuple[Contraction | None, isl.Set]:
    """The instances of the candidate that wait for nothing in their tile, of terms that all of its
    elements have, as one convex piece; and they as a contraction.
    """
    name = candidate.unit.name
    points = inside[name]
    for each in _maps(ordered):
        source, target = each.get_tuple_name(IN), each.get_tuple_name(OUT)
        if target == name and source is not None:
            waits = each.intersect_domain(inside[source]).intersect_range(inside[name])
            points = points.subtract(waits.range())
    for piece in convex_pieces(_of_all_elements(points)):
        space = space_of(piece, candidate.unit, candidate.roles)
        if space is not None:
            found = replace(candidate, space=space)
            if within_ranges(found).intersect_params(known).is_subset(piece):
                return found, piece
    return None, points


def _of_all_elements(points: isl.Set) -> isl.Set:
    """The points whose terms all elements have, so that the terms are those of the tile."""
    name = points.get_tuple_name()
    plain = points.reset_tuple_id()
    elements = plain.project_out(SET, TERM, 1).add_dims(SET, 1)
    terms = plain.project_out(SET, 0, TERM).insert_dims(SET, 0, TERM)
    some = elements.intersect(terms).subtract(plain)
    some = some.project_out(SET, 0, TERM).insert_dims(SET, 0, TERM)
    return plain.subtract(some).coalesce().set_tuple_name(name)

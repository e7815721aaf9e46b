"""Another order of the loops, where the innermost then walks memory in steps of one element.

Scop, Units -> the times of all iterations, or None where the loops are good as they are.

    for i, j, k: C[i, j] += A[i, k] * B[k, j]     B moves by a row with every k
    for i, k, j: C[i, j] += A[i, k] * B[k, j]     C and B by an element with every j

All dependences stay as they are, so that every element gets its values in the same order; but for
updates of integers, of which any order leaves the same bits.

    for i, j, k < j: T[i, j] = max(T[i, j], T[i, k] + T[k + 1, j])     T moves by a row with every k
    for i, k, j > k: T[i, j] = max(T[i, j], T[i, k] + T[k + 1, j])     T[i, k] has its last value

Source: K. S. McKinley, S. Carr, C.-W. Tseng, Improving data locality with loop transformations,
TOPLAS 18 (1996).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from avial_lab.compiler.analysis.parallelism.reductions import exact_families
from avial_lab.compiler.analysis.patterns.loop_sinking import (
    Times,
    innermost,
    keeps,
    schedule_of,
    starts_of,
    sunk,
)
from avial_lab.compiler.analysis.patterns.reuse_distance import nearer
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.strides import move_of
from avial_lab.compiler.analysis.polyhedral.units import Immovable, Unit
from avial_lab.machine.constants import LINE_BYTES

IN, OUT = isl.dim_type.in_, isl.dim_type.out
OPERATIONS = 500_000
"""isl operations for one question."""

LINE = LINE_BYTES // 8
"""A loop of longer steps finds no element on the line of memory where the last one was."""

MOST_MOVES = 8
"""Loops that are moved in one nest: more than any nest has that somebody wrote."""


def better_order(scop: Scop, units: Sequence[Unit], near: int = 0) -> isl.UnionMap | None:
    """Times in which some innermost loop jumps less, and none more; and, with a cache of `near`
    bytes, in which less is brought there anew. None if there are none.

    Loops are moved inwards one by one, each time the one that saves most. Raises Immovable where
    isl finds it too hard.
    """
    first = next(starts_of(units))
    if not any(_may_gain(unit) for unit in units) and not any(nearer(units, first, near)):
        return None
    ordered = limited(lambda: order_among(scop, units), lambda: None, limit=OPERATIONS)
    if ordered is None:
        raise Immovable("isl gave up computing the dependences")
    times, best = _start(units, ordered), None
    for _ in range(MOST_MOVES):
        legal = (
            (each, schedule)
            for each in (*_with_fewer_jumps(units, times), *nearer(units, times, near))
            if _is_kept(schedule := schedule_of(units, each), ordered)
        )
        found = next(legal, None)
        if found is None:
            break
        times, best = found
    return best


def _with_fewer_jumps(units: Sequence[Unit], times: Times) -> list[Times]:
    now = jumps_of(units, times)
    moved = [(sum(then.values()), k, each) for k, each in enumerate(sunk(times))
             if _is_better(then := jumps_of(units, each), now)]  # fmt: skip
    return [each for _, _, each in sorted(moved, key=lambda item: item[:2])]


def first_order(units: Sequence[Unit], ordered: isl.UnionMap) -> isl.UnionMap:
    """The times of the text."""
    return schedule_of(units, _start(units, ordered))


def _may_gain(unit: Unit) -> bool:
    walks = [jumps(unit, k) for k in range(len(unit.loops))]
    return len(walks) > 1 and min(walks) < walks[-1]


def _start(units: Sequence[Unit], ordered: isl.UnionMap) -> Times:
    """The order of the text, where every unit runs at one time."""
    for times in starts_of(units):
        if _is_kept(schedule_of(units, times), ordered):
            return times
    raise Immovable("statements of one iteration depend on each other in a cycle")


def _is_kept(times: isl.UnionMap, ordered: isl.UnionMap) -> bool:
    return limited(lambda: keeps(times, ordered), lambda: False, limit=OPERATIONS)


def jumps_of(units: Sequence[Unit], times: Times) -> dict[str, int]:
    """How many accesses of each unit jump from element to element in its innermost loop."""
    return {
        unit.name: 0 if (dim := innermost(unit, times)) is None else jumps(unit, dim)
        for unit in units
    }


def _is_better(then: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return then != now and all(then[name] <= now[name] for name in now)


def jumps(unit: Unit, dim: int) -> int:
    """Accesses of `unit` that neither stay nor go to an element nearby when its loop `dim` alone
    goes on.
    """
    step = unit.loops[dim].step
    near = (0, 1) if step is not None and abs(step) <= LINE else (0,)
    return sum(move_of(access, dim) not in near for s in unit.statements for access in s.accesses)


def steps(unit: Unit, dim: int) -> int:
    """Accesses of `unit` that go to the element beside when its loop `dim` alone goes on."""
    return sum(move_of(access, dim) == 1 for s in unit.statements for access in s.accesses)


def order_among(scop: Scop, units: Sequence[Unit]) -> isl.UnionMap:
    """{ U0[x] -> U1[y] }: all pairs of which the first has to run before the second."""
    ordered = isl.UnionMap("{ }")
    unit_of = {statement.name: unit.name for unit in units for statement in unit.statements}
    families = exact_families(scop)
    for each in dependences(scop):
        source, target = unit_of.get(each.source.name), unit_of.get(each.target.name)
        if source is None or target is None or (source == target and each.carrier is None):
            continue  # of one iteration: its operations stay in their order
        family = families.get(each.source.name)
        if family is not None and family == families.get(each.target.name):
            continue
        relation = each.relation.set_tuple_name(IN, source).set_tuple_name(OUT, target)
        ordered = ordered.union(isl.UnionMap.from_map(relation))
    return ordered


def loops_under(times: isl.UnionMap) -> dict[str, list[frozenset[int]]]:
    """For each unit that runs, from the outside, which of its loops each new loop goes on with."""
    maps: list[isl.Map] = []
    times.foreach_map(maps.append)
    found: dict[str, list[frozenset[int]]] = {}
    for each in maps:
        time = isl.PwMultiAff.from_map(each)
        dims = [_dims(time.get_pw_aff(k)) for k in range(time.dim(OUT))]
        found[each.get_tuple_name(IN)] = [loops for loops in dims if loops]
    return found


def _dims(member: isl.PwAff) -> frozenset[int]:
    """The loops that the member goes on with."""
    return frozenset(
        d
        for _, aff in member.get_pieces()
        for d in range(aff.dim(IN))
        if not aff.get_coefficient_val(IN, d).is_zero()
    )

"""An order whose outer loops carry all dependences, so that the iterations of the inner ones are
free of each other: fronts that move through what a nest computes.

Scop, Units -> the times of all iterations, or None where isl finds none.

    for i, j < i, k < j: A[i, j] -= A[i, k] A[k, j]     front j + k: all A[i, j] with this sum at
                         A[i, j] /= A[j, j]             once; those with 2 j are divided

Every element gets its values in the order of the text. Sizes that are numbers are parameters here:
isl would make a single time of several loops, times these numbers.

Source: P. Feautrier, Some efficient solutions to the affine scheduling problem, part II:
multidimensional time, International Journal of Parallel Programming 21 (1992).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import islpy as isl

from avial_lab.compiler.analysis.patterns.interchange import order_among
from avial_lab.compiler.analysis.patterns.loop_sinking import keeps
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.instances import together
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.units import Unit

PARAM, DIV = isl.dim_type.param, isl.dim_type.div

OPERATIONS = 2_000_000
"""isl operations for one question."""

LEAST_SIZE = 8
"""Smaller numbers are distances, such as those between neighbours."""

NEAR = 2
"""Numbers that are no further apart are ends of loops over one size."""


def fronts(scop: Scop, units: Sequence[Unit]) -> isl.UnionMap | None:
    """{ unit[iteration] -> time }, valid for the dependences of `scop`.

    Raises Immovable where the order of its statements is not known exactly.
    """
    return limited(lambda: _fronts(scop, units), lambda: None, limit=OPERATIONS)


def _fronts(scop: Scop, units: Sequence[Unit]) -> isl.UnionMap | None:
    ordered = order_among(scop, units)
    pairs: list[isl.Map] = []
    ordered.foreach_map(pairs.append)
    sizes = _sizes(units)
    domain = _all(_opened(unit.domain, sizes) for unit in units)
    order = together(_opened(each.coalesce().wrap(), sizes).unwrap() for each in pairs)
    wanted = isl.ScheduleConstraints.on_domain(domain).set_validity(order).set_coincidence(order)
    context = isl.DEFAULT_CONTEXT
    before = context.get_schedule_algorithm()
    context.set_schedule_algorithm(isl.schedule_algorithm.FEAUTRIER)
    try:
        times = wanted.compute_schedule().get_map()
    except isl.Error:
        return None
    finally:
        context.set_schedule_algorithm(before)
    times = _closed(times, sizes).intersect_domain(_all(unit.domain for unit in units))
    return times if keeps(times, ordered) else None


def _all(sets: Iterable[isl.Set]) -> isl.UnionSet:
    return reduce(isl.UnionSet.union, map(isl.UnionSet.from_set, sets), isl.UnionSet("{ }"))


# Sizes that are numbers ---------------------------------------------------------------------------


def _sizes(units: Sequence[Unit]) -> tuple[int, ...]:
    """Numbers at which loops of the units end, one of those near to each other."""
    ends = {
        abs(constraint.get_constant_val().to_python())
        for unit in units
        for case in unit.domain.get_basic_sets()
        for constraint in case.get_constraints()
    }
    found: list[int] = []
    for end in sorted(ends):
        if end >= LEAST_SIZE and (not found or end - found[-1] > NEAR):
            found.append(end)
    return tuple(found)


def _named(sizes: Sequence[int]) -> str:
    return ", ".join(f"size{k}" for k in range(len(sizes)))


def _opened(points: isl.Set, sizes: Sequence[int]) -> isl.Set:
    """The same for any sizes, where they are told by linear constraints alone."""
    points = points.align_params(isl.Set(f"[{_named(sizes)}] -> {{ : }}").get_space())
    cases = points.get_basic_sets()
    if any(case.dim(DIV) for case in cases):
        return points
    found = isl.Set.empty(points.get_space())
    for case in cases:
        each = isl.BasicSet.universe(case.get_space())
        for constraint in case.get_constraints():
            each = each.add_constraint(_of_any_size(constraint, sizes))
        found = found.union(isl.Set.from_basic_set(each))
    return found


def _of_any_size(constraint: isl.Constraint, sizes: Sequence[int]) -> isl.Constraint:
    number = constraint.get_constant_val().to_python()
    near = [k for k, size in enumerate(sizes) if abs(abs(number) - size) <= NEAR]
    if not near:
        return constraint
    k = min(near, key=lambda k: abs(abs(number) - sizes[k]))
    sign = 1 if number > 0 else -1
    rest = constraint.set_constant_val(isl.Val(number - sign * sizes[k]))
    return rest.set_coefficient_val(PARAM, k, isl.Val(sign))


def _closed(times: isl.UnionMap, sizes: Sequence[int]) -> isl.UnionMap:
    """With the sizes as they are."""
    known = " and ".join(f"size{k} = {size}" for k, size in enumerate(sizes)) or "1 = 1"
    maps: list[isl.Map] = []
    fixed = isl.Set(f"[{_named(sizes)}] -> {{ : {known} }}")
    times.intersect_params(fixed).foreach_map(maps.append)
    return together(_without_sizes(each, sizes) for each in maps)


def _without_sizes(times: isl.Map, sizes: Sequence[int]) -> isl.Map:
    for k in range(len(sizes)):
        place = times.find_dim_by_name(PARAM, f"size{k}")
        if place >= 0:
            times = times.project_out(PARAM, place, 1)
    return times

"""How large a piece of code lets its parameters be: every access has to stay inside its array.

Scop -> values for its parameters, extents its arrays need at least, operations it runs.

    for i = 0 to n            A: memref<?x1000>       n at most 64   ->   n = 64, A: 64 x 1000
      for j = 0 to i + 1
        A[i, j] = …
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from math import prod

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, Array, ArrayKind, Scop, Statement

_FREE = isl.dim_type.param
_BOUND = isl.dim_type.set


def fitting_values(
    scop: Scop,
    largest: Mapping[str, int],
    fixed: Mapping[str, int],
    equal: Sequence[tuple[str, str]] = (),
) -> dict[str, int] | None:
    """Values at which no affine access leaves its array; None where there are none.

    The parameters in `largest` get, in that order, the greatest value from 1 (else 0) to the one
    given there at which the most statements run. Others (sizes that only have to hold what is
    accessed) get the least from 1 on; those in `fixed` keep theirs. `equal`: expressions that have
    to have the same value, where that is possible.
    """
    names = tuple(scop.parameters)
    inside = limited(
        lambda: _inside(scop, names, fixed), lambda: _unconstrained(scop, names, fixed)
    )
    inside = _with_equal(inside, names, equal)
    rest = [name for name in names if name not in largest and name not in fixed]
    chosen = [*(name for name in largest if name in names), *rest]
    for least in (1, 0):
        bounded = inside
        for name in chosen:
            place = names.index(name)
            bounded = bounded.lower_bound_val(_BOUND, place, least)
            if name in largest:
                bounded = bounded.upper_bound_val(_BOUND, place, largest[name])
        if not bounded.is_empty():
            running = _running(bounded, scop, names)
            return dict(fixed) | _extremes(running, names, chosen, largest, least)
    return None


def needed_extents(scop: Scop) -> dict[str, tuple[int | None, ...]]:
    """What each array has to hold along each dimension, by the array's name, in a scop whose
    parameters have values; None where an index is data, or below 0.
    """
    needed: dict[str, list[int | None]] = {}
    for _, access in _accesses(scop):
        elements = access.relation.range()
        elements = elements.project_out(_FREE, 0, elements.dim(_FREE))
        if elements.is_empty():
            needed.setdefault(access.array.name, [0] * access.array.rank)
            continue
        found = [_extent(elements, dim) for dim in range(access.array.rank)]
        old = needed.get(access.array.name, [0] * access.array.rank)
        needed[access.array.name] = [
            None if a is None or b is None else max(a, b) for a, b in zip(old, found, strict=True)
        ]
    return {name: tuple(extents) for name, extents in needed.items()}


def operations_in(scop: Scop) -> int:
    """How often a statement runs, at most, in a scop whose parameters have values."""
    return sum(_iterations(statement) for statement in scop.statements)


def in_control(scop: Scop) -> frozenset[str]:
    """The parameters that decide how much runs: in loop bounds and conditions, and sizes of arrays
    that are taken as a whole.
    """
    # Without what every parameter satisfies, as that a size is not negative.
    known: list[isl.Set | isl.Map] = [s.domain.gist_params(scop.context) for s in scop.statements]
    known += [access.relation.gist_params(scop.context) for _, access in _accesses(scop)]
    return frozenset(
        name
        for relation in known
        for place in range(relation.dim(_FREE))
        if relation.involves_dims(_FREE, place, 1)
        if (name := relation.get_dim_name(_FREE, place)) is not None
    )


def _accesses(scop: Scop) -> list[tuple[Statement, Access]]:
    return [
        (statement, access)
        for statement in scop.statements
        for access in statement.accesses
        if access.array.kind is ArrayKind.MEMORY
    ]


def _inside(scop: Scop, names: Sequence[str], fixed: Mapping[str, int]) -> isl.Set:
    """Values of the parameters, as points, at which every affine access is inside its array.

    An access that is outside whatever they are does not count: its index or its loop is data.
    """
    inside = _unconstrained(scop, names, fixed)
    for _, access in _accesses(scop):
        elements = access.relation.range().subtract(_box(access.array, names))
        if not elements.is_empty():
            rest = inside.subtract(_points(elements.params(), names))
            if not _is_trivial(rest):
                inside = rest.coalesce()
    return inside


def _with_equal(points: isl.Set, names: Sequence[str], equal: Sequence[tuple[str, str]]) -> isl.Set:
    for one, other in equal:
        wanted = points.intersect(isl.Set(f"{{ [{', '.join(names)}] : {one} = {other} }}"))
        if not _is_trivial(wanted):
            points = wanted
    return points


def _is_trivial(points: isl.Set) -> bool:
    """Whether no point has all its coordinates above 0."""
    for place in range(points.dim(_BOUND)):
        points = points.lower_bound_val(_BOUND, place, 1)
    return points.is_empty()


def _unconstrained(scop: Scop, names: Sequence[str], fixed: Mapping[str, int]) -> isl.Set:
    free = _points(scop.context, names)
    for name, value in fixed.items():
        if name in names:
            free = free.fix_val(_BOUND, names.index(name), value)
    return free


def _points(values: isl.Set, names: Sequence[str]) -> isl.Set:
    """A set of parameter values as a set of points `[names…]`."""
    text = f"[{', '.join(names)}] -> {{ [{', '.join(names)}] }}"
    points = isl.Set(text).intersect_params(values)
    return points.project_out(_FREE, 0, points.dim(_FREE))


def _box(array: Array, names: Sequence[str]) -> isl.Set:
    """All elements the array has; a size that is not affine bounds nothing."""
    dims = [f"x{dim}_" for dim in range(array.rank)]
    where = [
        f"{dim} >= 0" if size is None else f"0 <= {dim} < {size}"
        for dim, size in zip(dims, array.sizes, strict=True)
    ]
    head = f"[{', '.join(names)}] -> " if names else ""
    text = f"{{ {array.name}[{', '.join(dims)}] : {' and '.join(where) or 'true'} }}"
    try:
        return isl.Set(head + text)
    except isl.Error:  # a size that a name of its own stands for
        return isl.Set(f"{{ {array.name}[{', '.join(dims)}] }}")


def _running(points: isl.Set, scop: Scop, names: Sequence[str]) -> isl.Set:
    """Of the points those at which every statement runs, as far as there are such."""
    for statement in scop.statements:
        wanted = limited(partial(_intersection, points, statement, names), partial(_same, points))
        if not wanted.is_empty():
            points = wanted
    return points


def _intersection(points: isl.Set, statement: Statement, names: Sequence[str]) -> isl.Set:
    return points.intersect(_points(statement.domain.params(), names))


def _same(points: isl.Set) -> isl.Set:
    return points


def _extremes(
    points: isl.Set,
    names: Sequence[str],
    chosen: Sequence[str],
    largest: Collection[str],
    least: int,
) -> dict[str, int]:
    """One point: greatest in the names of `largest`, least in the others, in that order."""
    values: dict[str, int] = {}
    for name in chosen:
        place = names.index(name)
        extreme = points.dim_max_val(place) if name in largest else points.dim_min_val(place)
        values[name] = extreme.to_python() if extreme.is_int() else least
        points = points.fix_val(_BOUND, place, values[name])
    return values


def _extent(elements: isl.Set, dim: int) -> int | None:
    low, high = elements.dim_min_val(dim), elements.dim_max_val(dim)
    if not low.is_int() or not high.is_int() or low.is_neg():
        return None
    return high.to_python() + 1


def _iterations(statement: Statement) -> int:
    domain = statement.domain
    domain = domain.project_out(_FREE, 0, domain.dim(_FREE))
    if domain.is_empty():
        return 0
    ranges = [
        (domain.dim_min_val(dim), domain.dim_max_val(dim)) for dim in range(domain.dim(_BOUND))
    ]
    return prod(
        high.to_python() - low.to_python() + 1
        for low, high in ranges
        if low.is_int() and high.is_int()
    )

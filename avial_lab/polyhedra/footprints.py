"""Which elements a part of a loop touches: what has to be there before it runs, and what it leaves.

A loop lo <= i < hi -> for each array the elements read, perhaps written, and written for sure, as
isl sets with `lo` and `hi` as parameters; isl sets -> boxes.

    for i = 1 to N - 1                       reads of A:   { A[x] : lo - 1 <= x <= hi, … }
      B[i] = A[i - 1] + A[i] + A[i + 1]      writes of B:  { B[x] : lo <= x < hi, … }

      A   . . o o o o . .       lo = 3, hi = 5: A[2:6] in, B[3:5] out
      B   . . . # # . . .
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from avial_lab.polyhedra.affine import identifier
from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.model import Array, ArrayKind, Loop, Scop, Statement
from avial_lab.regions import Box, Region, union

MOST_BOXES = 32
"""A set of more boxes than this is given as their hull."""


@dataclass(frozen=True)
class Footprint:
    """Elements of `array`, as sets `{ A[x0, x1] : … }` with parameters.

    `reads` and `writes` may hold more than is touched, `must_writes` only what is written for sure
    whenever the part runs. `exact`: reads and writes hold exactly what is touched.
    """

    array: Array
    reads: isl.Set
    writes: isl.Set
    must_writes: isl.Set
    exact: bool


@dataclass(frozen=True)
class Boxes:
    """A set as disjoint boxes; where `exact` is false they hold more than the set."""

    region: Region
    exact: bool


def footprint(
    part: Scop | Sequence[Statement],
    loop: Loop | None = None,
    *,
    low: str = "lo",
    high: str = "hi",
) -> tuple[Footprint, ...]:
    """What `part` touches while `loop` runs from `low` to below `high` (names of parameters).

    Loops around `loop` are at one iteration, their variables parameters of their own names; loops
    inside it run in full. Without a loop: all that `part` touches.
    """
    statements = part.statements if isinstance(part, Scop) else tuple(part)
    inside = [s for s in statements if loop is None or loop in s.loops]
    found: dict[str, Footprint] = {}
    for statement in inside:
        chosen = _chosen(statement, loop, low, high)
        for access in statement.accesses:
            if access.array.kind is not ArrayKind.MEMORY:
                continue
            touched = access.relation.intersect_domain(chosen).range()
            nothing = isl.Set.empty(touched.get_space())
            sure = touched if statement.must_write(access) else nothing
            exact = access.exact and statement.exact
            new = Footprint(
                access.array,
                nothing if access.writes else touched,
                touched if access.writes else nothing,
                sure,
                exact,
            )
            old = found.get(access.array.name)
            found[access.array.name] = new if old is None else _both(old, new)
    return tuple(_tidy(f) for f in found.values())


def _chosen(statement: Statement, loop: Loop | None, low: str, high: str) -> isl.Set:
    """The statement's iterations in the part: outer loops fixed, `loop` in its range."""
    if loop is None:
        return statement.domain
    place = statement.loops.index(loop)
    dims = [f"d{k}_" for k in range(len(statement.loops))]
    outer = [identifier(each.name) for each in statement.loops[:place]]
    where = [f"{dim} = {name}" for dim, name in zip(dims, outer, strict=False)]
    where.append(f"{low} <= {dims[place]} < {high}")
    text = (
        f"[{', '.join([*outer, low, high])}] -> "
        f"{{ {statement.name}[{', '.join(dims)}] : {' and '.join(where)} }}"
    )
    return statement.domain.intersect(isl.Set(text))


def _both(a: Footprint, b: Footprint) -> Footprint:
    return Footprint(
        a.array,
        a.reads.union(b.reads),
        a.writes.union(b.writes),
        a.must_writes.union(b.must_writes),
        a.exact and b.exact,
    )


def _tidy(f: Footprint) -> Footprint:
    def short(elements: isl.Set) -> isl.Set:
        return limited(lambda: elements.coalesce(), lambda: elements)

    return Footprint(f.array, short(f.reads), short(f.writes), short(f.must_writes), f.exact)


def at(elements: isl.Set, values: Mapping[str, int]) -> isl.Set:
    """The set with those parameters fixed; names it does not have are ignored."""
    for name, value in values.items():
        place = elements.find_dim_by_name(isl.dim_type.param, name)
        if place >= 0:
            elements = elements.fix_val(isl.dim_type.param, place, value)
    return elements


def boxes_of(elements: isl.Set, values: Mapping[str, int] | None = None) -> Boxes:
    """The set for those parameter values, as boxes: exactly where it is a union of few boxes.

    Otherwise (a triangle, a stride, more than MOST_BOXES) the hull of its pieces, and `exact` is
    false. Raises ValueError where it is unbounded: a parameter is missing, or an unknown size.

    >>> found = boxes_of(isl.Set("[lo, hi] -> { A[x] : lo - 1 <= x <= hi }"), {"lo": 3, "hi": 5})
    >>> [str(box) for box in found.region], found.exact
    (['[2:6]'], True)
    """
    fixed = at(elements, values or {})
    fixed = fixed.project_out(isl.dim_type.param, 0, fixed.dim(isl.dim_type.param))
    return limited(lambda: _exact_boxes(fixed), lambda: Boxes(_hull([fixed]), exact=False))


def _exact_boxes(elements: isl.Set) -> Boxes:
    if elements.is_empty():
        return Boxes((), exact=True)
    pieces = [isl.Set.from_basic_set(b) for b in elements.coalesce().get_basic_sets()]
    boxes = [box for piece in pieces if (box := _hull_of(piece)) is not None]
    region = union(boxes)
    if len(region) > MOST_BOXES:
        return Boxes(_hull([elements]), exact=False)
    return Boxes(region, exact=_as_set(region, elements).is_subset(elements))


def _as_set(region: Region, like: isl.Set) -> isl.Set:
    filled = isl.Set.empty(like.get_space())
    for box in region:
        piece = isl.Set.universe(like.get_space())
        for dim, (start, stop) in enumerate(zip(box.start, box.stop, strict=True)):
            piece = piece.lower_bound_val(isl.dim_type.set, dim, start)
            piece = piece.upper_bound_val(isl.dim_type.set, dim, stop - 1)
        filled = filled.union(piece)
    return filled


def _hull(pieces: Iterable[isl.Set]) -> Region:
    boxes = [box for piece in pieces if (box := _hull_of(piece)) is not None]
    return union(boxes)


def _hull_of(elements: isl.Set) -> Box | None:
    """The smallest box around the set; None for the empty set."""
    if elements.is_empty():
        return None
    starts: list[int] = []
    stops: list[int] = []
    for dim in range(elements.dim(isl.dim_type.set)):
        low, high = elements.dim_min_val(dim), elements.dim_max_val(dim)
        if not low.is_int() or not high.is_int():
            raise ValueError(f"not bounded in dimension {dim}: {elements}")
        starts.append(low.to_python())
        stops.append(high.to_python() + 1)
    return Box(tuple(starts), tuple(stops))

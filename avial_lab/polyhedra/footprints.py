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
from functools import partial
from itertools import pairwise

import islpy as isl

from avial_lab.polyhedra.affine import identifier
from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.model import Access, Array, ArrayKind, Loop, Scop, Statement
from avial_lab.regions import Box, Region

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
            touched, known = limited(
                partial(_elements, access, chosen), partial(_all_elements, access)
            )
            nothing = isl.Set.empty(touched.get_space())
            sure = touched if known and statement.must_write(access) else nothing
            exact = known and access.exact and statement.exact
            new = Footprint(
                access.array,
                nothing if access.writes else touched,
                touched if access.writes else nothing,
                sure,
                exact,
            )
            old = found.get(access.array.name)
            found[access.array.name] = new if old is None else _both(old, new)
    return tuple(found.values())


def _elements(access: Access, iterations: isl.Set) -> tuple[isl.Set, bool]:
    return access.relation.intersect_domain(iterations).range(), True


def _all_elements(access: Access) -> tuple[isl.Set, bool]:
    """All that the array has, for what isl finds too hard."""
    sizes = access.array.sizes
    dims = [f"x{k}_" for k in range(len(sizes))]
    bounds = [
        f"0 <= {dim} < {size}" if (size or "").isdigit() else f"{dim} >= 0"
        for dim, size in zip(dims, sizes, strict=True)
    ]
    text = f"{{ {access.array}[{', '.join(dims)}] : {' and '.join(bounds) or 'true'} }}"
    return isl.Set(text), False


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
    found = Boxes((), exact=False)
    # Joining pieces makes boxes of halves, but also octagons of crosses: whichever is exact counts.
    for form in (elements, elements.coalesce()):
        region = _hull(isl.Set.from_basic_set(piece) for piece in form.get_basic_sets())
        if len(region) > MOST_BOXES:
            region = _hull([elements])
        found = Boxes(region, exact=_as_set(region, elements).is_subset(elements))
        if found.exact:
            break
    return found


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
    return _slabs([box for piece in pieces if (box := _hull_of(piece)) is not None])


def _slabs(boxes: Sequence[Box]) -> Region:
    """The union as disjoint boxes, cut along dimension 0 first, neighbours of one section joined.

       +--+               +--+
    +--+--+--+   ->    +--------+       a cross is three boxes, however its pieces overlap
       +--+               +--+
    """
    if not boxes or not boxes[0].start:
        return tuple(boxes[:1])
    cuts = sorted({cut for box in boxes for cut in (box.start[0], box.stop[0])})
    found: list[tuple[int, int, Region]] = []
    for low, high in pairwise(cuts):
        section = _slabs(
            [
                Box(box.start[1:], box.stop[1:])
                for box in boxes
                if box.start[0] <= low and high <= box.stop[0]
            ]
        )
        if found and found[-1][1:] == (low, section):
            low, _, _ = found.pop()
        found.append((low, high, section))
    return tuple(
        Box((low, *box.start), (high, *box.stop)) for low, high, section in found for box in section
    )


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

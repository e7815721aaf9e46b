"""Boxes around sets whose ends are only known at run time.

isl sets of elements with parameters -> boxes whose ends are expressions of the parameters.

    { A[x] : lo - 1 <= x <= hi - 2 and x >= 0 }      one box, max(lo - 1, 0) … hi - 2
    { A[x] : x = i - 1 or x = i + 1 }                two boxes; their hull holds A[i], which is not
                                                     in the set

The ends are read off the constraints of the set's projections: no case distinctions, as parametric
integer programming would make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

SET = isl.dim_type.set

MOST_BOXES = 8
"""More boxes than this are given as one."""

MOST_PIECES = 16
"""More pieces than this are not tried in pairs."""

End = tuple[tuple[isl.Aff, ...], ...]
"""One end of a box in one dimension, inclusive; () where there is none.

A low end is the least over its choices of the greatest in each, rounded up; a high end the greatest
over its choices of the least in each, rounded down.
"""


@dataclass(frozen=True, eq=False)  # isl's sets do not compare
class ParametricBox:
    """The elements low <= x <= high, in the cases of `when`; `when` is None for all cases in which
    no low end is above its high end.

    `elements` is the same as a set; a dimension without an end is unbounded there.
    """

    low: tuple[End, ...]
    high: tuple[End, ...]
    when: isl.Set | None
    elements: isl.Set

    @property
    def bounded(self) -> bool:
        return all(self.low) and all(self.high)

    @property
    def size(self) -> int:
        """The number of expressions its ends are made of."""
        return sum(len(choice) for end in (*self.low, *self.high) for choice in end)


def pieces_of(elements: isl.Set) -> list[isl.Set]:
    """The convex parts of a set, one set each."""
    return [isl.Set.from_basic_set(piece) for piece in elements.coalesce().get_basic_sets()]


def box_around(piece: isl.Set, context: isl.Set) -> ParametricBox:
    """The smallest box around a convex set, rounding aside where it has strides."""
    rank = piece.dim(SET)
    box = isl.Set.universe(piece.get_space())
    for dim in range(rank):
        box = box.intersect(_projection(piece, dim))
    low: list[End] = []
    high: list[End] = []
    for dim in range(rank):
        lower, upper = _ends(box, dim)
        low.append((lower,) if lower else ())
        high.append((upper,) if upper else ())
    box = box.intersect_params(piece.params())
    return ParametricBox(tuple(low), tuple(high), _guard(box, context), box)


def boxes_around(
    pieces: Sequence[isl.Set], within: isl.Set, context: isl.Set
) -> list[ParametricBox]:
    """Boxes that hold the pieces, as few as may be without leaving `within`.

    Pieces that are no boxes get the box around them, whether that stays in `within` or not.
    """
    if not pieces:
        return []
    whole = hull(pieces)
    if whole is not None:
        found = box_around(whole, context)
        if found.bounded and found.elements.is_subset(within):
            return [found]
    boxes = without_contained([box_around(piece, context) for piece in pieces])
    return _joined(boxes, within, context) if len(boxes) <= MOST_PIECES else boxes


def one_box(boxes: Sequence[ParametricBox], context: isl.Set) -> ParametricBox:
    """One box around several."""
    if len(boxes) == 1:
        return boxes[0]
    low: list[End] = []
    high: list[End] = []
    for dim in range(len(boxes[0].low)):
        lows, highs = [box.low[dim] for box in boxes], [box.high[dim] for box in boxes]
        low.append(tuple(choice for end in lows for choice in end) if all(lows) else ())
        high.append(tuple(choice for end in highs for choice in end) if all(highs) else ())
    elements = union_of([box.elements for box in boxes])
    return ParametricBox(tuple(low), tuple(high), _cases(elements.params(), context), elements)


def union_of(sets: Sequence[isl.Set]) -> isl.Set:
    """Of one set at least."""
    found = sets[0]
    for elements in sets[1:]:
        found = found.union(elements)
    return found


def hull(pieces: Sequence[isl.Set]) -> isl.Set | None:
    """A convex set around all, by the constraints they have; None where those do not bound it."""
    around = isl.Set.from_basic_set(union_of(pieces).simple_hull())
    bounded = all(
        around.dim_has_lower_bound(SET, dim) and around.dim_has_upper_bound(SET, dim)
        for dim in range(around.dim(SET))
    )
    return around if bounded else None


def _projection(piece: isl.Set, dim: int) -> isl.Set:
    """What is left of the set's constraints when only one dimension is looked at."""
    rank = piece.dim(SET)
    line = piece.eliminate(SET, 0, dim).eliminate(SET, dim + 1, rank - dim - 1)
    line = line.remove_divs_involving_dims(SET, dim, 1).remove_unknown_divs()
    return isl.Set.from_basic_set(line.simple_hull())


def _ends(box: isl.Set, dim: int) -> tuple[tuple[isl.Aff, ...], tuple[isl.Aff, ...]]:
    """The expressions that bound a dimension of a box from below, and from above."""
    lower: list[isl.Aff] = []
    upper: list[isl.Aff] = []
    for convex in box.remove_redundancies().get_basic_sets():
        for constraint in convex.get_constraints():
            if not constraint.involves_dims(SET, dim, 1):
                continue
            end = constraint.get_bound(SET, dim)
            if constraint.is_equality() or constraint.is_lower_bound(SET, dim):
                lower.append(end)
            if constraint.is_equality() or constraint.is_upper_bound(SET, dim):
                upper.append(end)
    return tuple(lower), tuple(upper)


def _guard(box: isl.Set, context: isl.Set) -> isl.Set | None:
    """When there is such a box, where its ends alone do not tell."""
    alone = box.drop_constraints_not_involving_dims(SET, 0, box.dim(SET))
    cases = box.params()
    if box.dim(SET) and alone.params().intersect(context).is_subset(cases):
        return None
    return _cases(cases, context)


def _cases(cases: isl.Set, context: isl.Set) -> isl.Set | None:
    cases = cases.compute_divs().gist(context).coalesce()
    return None if context.is_subset(cases) else cases


def without_contained(boxes: Sequence[ParametricBox]) -> list[ParametricBox]:
    kept: list[ParametricBox] = []
    for box in boxes:
        if any(box.elements.is_subset(other.elements) for other in kept):
            continue
        kept = [other for other in kept if not other.elements.is_subset(box.elements)]
        kept.append(box)
    return kept


def _joined(boxes: list[ParametricBox], within: isl.Set, context: isl.Set) -> list[ParametricBox]:
    """With two of them replaced by the box around both as long as one stays in `within`."""
    first = 0
    while first < len(boxes):
        for second in range(first + 1, len(boxes)):
            around = hull([boxes[first].elements, boxes[second].elements])
            if around is None:
                continue
            found = box_around(around, context)
            if found.bounded and found.elements.is_subset(within):
                rest = [box for k, box in enumerate(boxes) if k not in (first, second)]
                boxes = without_contained([found, *rest])
                first = -1
                break
        first += 1
    return boxes

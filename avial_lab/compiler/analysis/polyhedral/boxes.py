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

from avial_lab.compiler.analysis.polyhedral.budget import answered

SET = isl.dim_type.set

MOST_BOXES = 8
"""More boxes than this are given as one."""

MOST_TURNS = 4
"""Into more parts than this a set is not parted at the turns of its remainders."""

MOST_STRIDED = 6
"""Of more pieces than this with strides nobody asks which boxes fit among them."""

MOST_PIECES = 32
"""More pieces than this are not tried in pairs."""

Expression = isl.Aff | isl.PwAff

End = tuple[tuple[Expression, ...], ...]
"""One end of a box in one dimension, inclusive; () where there is none.

A low end is the least over its choices of the greatest in each, rounded up; a high end the greatest
over its choices of the least in each, rounded down.
"""

MOST_CASES = 4
"""An end with more cases than this is given by its constraints, as if there were no strides."""


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
    """The convex parts of a set, one set each.

    A remainder is parted where it starts anew: (i + 1) mod 8 is i + 1, and 0 where i is 7.
    """
    return [
        piece for convex in elements.coalesce().get_basic_sets() for piece in _without_turns(convex)
    ]


def _without_turns(convex: isl.BasicSet) -> list[isl.Set]:
    """The set for each value of its inner variables, as long as those are few."""
    whole = isl.Set.from_basic_set(convex)
    if not convex.dim(isl.dim_type.div):
        return [whole]
    lifted = whole.lift()
    if not lifted.is_wrapping():
        return [whole]
    turns = lifted.unwrap()
    parts = [turns]
    for inner in range(turns.dim(isl.dim_type.out)):
        values = _few_values(turns.range(), inner)
        if values is not None and len(values) * len(parts) <= MOST_TURNS:
            parts = [
                part.fix_val(isl.dim_type.out, inner, value) for part in parts for value in values
            ]
    return [part for each in parts if not (part := each.domain()).is_empty()]


def _few_values(elements: isl.Set, dim: int) -> list[int] | None:
    if not elements.dim_is_bounded(SET, dim):
        return None
    low, high = elements.dim_min_val(dim), elements.dim_max_val(dim)
    if not low.is_int() or not high.is_int() or high.to_python() - low.to_python() >= MOST_TURNS:
        return None
    return list(range(low.to_python(), high.to_python() + 1))


def box_around(piece: isl.Set, context: isl.Set) -> ParametricBox:
    """The smallest box around a convex set."""
    rank = piece.dim(SET)
    lines = [_projection(piece, dim) for dim in range(rank)]
    solid = [_solid(line, dim) for dim, line in enumerate(lines)]
    constraints = isl.Set.universe(piece.get_space())
    for line in solid:
        constraints = constraints.intersect(line)
    elements = constraints
    strides = False
    low: list[End] = []
    high: list[End] = []
    for dim in range(rank):
        strided = _strided_ends(lines[dim], solid[dim], dim, context)
        lower, upper = strided or _ends(constraints, dim)
        low.append((lower,) if lower else ())
        high.append((upper,) if upper else ())
        if strided is not None:
            strides = True
            elements = elements.intersect(_filled(lines[dim], dim))
    elements = elements.intersect_params(piece.params())
    cases = elements.params()
    # The ends that strides make are only right where there is an element.
    when = (
        None
        if not strides and _is_empty_elsewhere(constraints, cases, context)
        else _cases(cases, context)
    )
    return ParametricBox(tuple(low), tuple(high), when, elements)


def boxes_around(
    pieces: Sequence[isl.Set], within: isl.Set, context: isl.Set
) -> list[ParametricBox]:
    """Boxes that hold the pieces, as few as may be without leaving `within`, coalesced.

    Pieces that are no boxes get the box around them, whether that stays in `within` or not.
    """
    if within.n_basic_set() == 1:
        # Eight sets of every eighth element are one solid one; but a cross is an octagon to isl.
        found = box_around(within, context)
        if found.bounded and found.elements.is_subset(within):
            return [found]
    boxes = without_contained([box_around(piece, context) for piece in pieces])
    if len(boxes) > 1 and not hard(within):
        whole = _around([box.elements for box in boxes], within, context)
        if whole is not None:
            return [whole]
        if len(boxes) <= MOST_PIECES:
            return _joined(boxes, within, context)
    return boxes


def hard(elements: isl.Set) -> bool:
    """Whether to ask what is inside the set may take very long: its pieces have strides.

    isl's own count of operations hardly grows there.
    """
    pieces = elements.get_basic_sets()
    return len(pieces) > MOST_STRIDED and any(piece.dim(isl.dim_type.div) for piece in pieces)


def _around(pieces: Sequence[isl.Set], within: isl.Set, context: isl.Set) -> ParametricBox | None:
    """The box around the pieces, where it stays in `within`."""
    around = hull(pieces, context)
    if around is None:
        return None
    found = box_around(around, context)
    return found if found.bounded and found.elements.is_subset(within) else None


def one_box(boxes: Sequence[ParametricBox], context: isl.Set) -> ParametricBox:
    """One box around several."""
    if len(boxes) == 1:
        return boxes[0]
    low: list[End] = []
    high: list[End] = []
    for dim in range(len(boxes[0].low)):
        lows, highs = [box.low[dim] for box in boxes], [box.high[dim] for box in boxes]
        low.append(_choices(lows))
        high.append(_choices(highs))
    elements = union_of([box.elements for box in boxes])
    return ParametricBox(tuple(low), tuple(high), _cases(elements.params(), context), elements)


def _choices(ends: Sequence[End]) -> End:
    """All choices of all ends, each once; none where one end is missing."""
    if not all(ends):
        return ()
    return tuple({str(choice): choice for end in ends for choice in end}.values())


def union_of(sets: Sequence[isl.Set]) -> isl.Set:
    """Of one set at least."""
    found = sets[0]
    for elements in sets[1:]:
        found = found.union(elements)
    return found


def hull(pieces: Sequence[isl.Set], context: isl.Set) -> isl.Set | None:
    """A convex set around all, by the constraints they have; None where those do not bound it."""
    union = union_of(pieces)
    around = isl.Set.from_basic_set(union.simple_hull())
    if not all(
        around.dim_has_lower_bound(SET, dim) and around.dim_has_upper_bound(SET, dim)
        for dim in range(around.dim(SET))
    ):
        return None
    # The hull forgets what the pieces only imply, say that lo < hi.
    cases = isl.Set.from_basic_set(union.params().simple_hull())
    return around.intersect_params(cases).intersect_params(context)


def _projection(piece: isl.Set, dim: int) -> isl.Set:
    """The set with nothing known but of one dimension."""
    rank = piece.dim(SET)
    return piece.eliminate(SET, 0, dim).eliminate(SET, dim + 1, rank - dim - 1)


def _solid(line: isl.Set, dim: int) -> isl.Set:
    """Its constraints as if there were no strides."""
    line = line.remove_divs_involving_dims(SET, dim, 1).remove_unknown_divs()
    return isl.Set.from_basic_set(line.simple_hull())


def _strided_ends(
    line: isl.Set, solid: isl.Set, dim: int, context: isl.Set
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]] | None:
    """The first and the last element, where strides make them others than the constraints say.

    o . . o . . o . .        every third from lo on, below hi: the last is not hi - 1
    """
    if line.plain_is_equal(solid) or not line.dim_is_bounded(SET, dim):
        return None
    if solid.intersect_params(line.params()).is_subset(_filled(line, dim)):
        return None
    cases = line.params().intersect(context)
    # isl says of a stride without an end that it is bounded, and then fails to find the end.
    found = answered(lambda: (line.dim_min(dim), line.dim_max(dim)))
    low, high = (end.gist(cases).coalesce() for end in found) if found else (None, None)
    if low is None or high is None or max(low.n_piece(), high.n_piece()) > MOST_CASES:
        return None
    return (low,), (high,)


def _filled(line: isl.Set, dim: int) -> isl.Set:
    """What lies between its elements too."""
    rank = line.dim(SET)
    xs, ys = ([f"{letter}{k}" for k in range(rank)] for letter in "xy")
    filled = line
    for relation in ("<=", ">="):
        closed = isl.Map(
            f"{{ [{', '.join(xs)}] -> [{', '.join(ys)}] : {ys[dim]} {relation} {xs[dim]} }}"
        )
        for side in (isl.dim_type.in_, isl.dim_type.out):
            if line.has_tuple_name():
                closed = closed.set_tuple_name(side, line.get_tuple_name())
        reached = line.apply(closed)
        filled = reached if filled is line else filled.intersect(reached)
    return filled


def _ends(box: isl.Set, dim: int) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
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


def _is_empty_elsewhere(constraints: isl.Set, cases: isl.Set, context: isl.Set) -> bool:
    """Whether the ends that constraints make cross in all other cases."""
    rank = constraints.dim(SET)
    alone = constraints.drop_constraints_not_involving_dims(SET, 0, rank)
    return rank > 0 and alone.params().intersect(context).is_subset(cases)


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
            found = _around([boxes[k].elements for k in (first, second)], within, context)
            if found is not None:
                rest = [box for k, box in enumerate(boxes) if k not in (first, second)]
                boxes = without_contained([found, *rest])
                first = -1
                break
        first += 1
    return boxes

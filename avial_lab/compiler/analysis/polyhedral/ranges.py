"""From where to where a loop runs, as forms of the loops around it and of parameters.

isl set of iterations -> Range of one dimension: low = the largest of its lows, high = the smallest
of its highs.

    { [i, j] : 0 <= i < n and i < j < m and j < 2n }      j:  lows (i + 1), highs (m, 2n)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.affine import Affine

SET, PARAM, DIV, CST = (
    isl.dim_type.set, isl.dim_type.param, isl.dim_type.div, isl.dim_type.cst,
)  # fmt: skip


@dataclass(frozen=True)
class Range:
    """Half-open; the names in its forms are those of dimensions before and of parameters."""

    lows: tuple[Affine, ...]
    highs: tuple[Affine, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for form in (*self.lows, *self.highs) for name, _ in form.terms)

    def over(self, name: str, first: str, last: str) -> Range:
        """What has room for it at every value of `name`, from that of `first` to that of `last`.

        >>> triangle = Range((Affine(),), (Affine.of("k"), Affine.of("n")))
        >>> triangle.over("k", "from", "to").highs
        (Affine(constant=0, terms=(('to', 1),)), Affine(constant=0, terms=(('n', 1),)))
        """
        return Range(
            tuple(_at(form, name, first, last) for form in self.lows),
            tuple(_at(form, name, last, first) for form in self.highs),
        )


def _at(form: Affine, name: str, rising: str, falling: str) -> Affine:
    """With `rising` for `name` where the form grows with it, else with `falling`."""
    terms = (
        ((rising if by > 0 else falling) if each == name else each, by) for each, by in form.terms
    )
    return Affine(form.constant, tuple(terms))


def range_of(points: isl.Set, dim: int, names: Sequence[str]) -> Range | None:
    """Of dimension `dim`, given those before it; None where the set is not convex, has holes, or
    where an end would be a fraction.

    `names` are those of the dimensions in the forms.
    """
    rest = points.project_out(SET, dim + 1, points.dim(SET) - dim - 1).coalesce()
    pieces: list[isl.BasicSet] = []
    rest.foreach_basic_set(pieces.append)
    if len(pieces) != 1 or pieces[0].dim(DIV):
        return None
    lows: list[Affine] = []
    highs: list[Affine] = []
    convex = pieces[0].remove_redundancies()
    for constraint in convex.get_constraints():
        factor = constraint.get_coefficient_val(SET, dim).to_python()
        if factor == 0:
            continue
        if abs(factor) != 1:
            return None
        other = _rest(constraint, dim, names)
        if factor > 0 or constraint.is_equality():  # factor·x + other >= 0
            lows.append(other.times(-factor))
        if factor < 0 or constraint.is_equality():
            highs.append(other.times(-factor).plus(Affine(1)))
    return Range(tuple(lows), tuple(highs)) if lows and highs else None


def _rest(constraint: isl.Constraint, dim: int, names: Sequence[str]) -> Affine:
    """The constraint's form without the dimension."""
    form = Affine(constraint.get_constant_val().to_python())
    for k in range(dim):
        factor = constraint.get_coefficient_val(SET, k).to_python()
        form = form.plus(Affine.of(names[k]).times(factor))
    for k in range(constraint.dim(PARAM)):
        factor = constraint.get_coefficient_val(PARAM, k).to_python()
        name = constraint.get_dim_name(PARAM, k)
        assert name is not None
        form = form.plus(Affine.of(name).times(factor))
    return form

"""How much each part of a split loop has to do, for loops whose inner bounds hang on it.

A nest and its split loops -> the relative work of equal slices of their values.

    for i = 0 to 8              slices of 2       weights
      for j = 0 to i            i = 0, 1          1
        …                       i = 2, 3          3
                                i = 4, 5          5
                                i = 6, 7          7     three ranks: 0–4, 5–6, 7
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Scop, Statement

SLICES = 32

MOST = 1 << 48
"""Of a weight, so that those of all slices add up within 64 bits: of arrays of open size, three
loops have more iterations than that.
"""


def slice_weights(
    scop: Scop, loops: Sequence[Loop], *, first: int, extent: int, slices: int = SLICES
) -> list[int]:
    """Iterations at the middle of each of `slices` equal slices of `extent` values from `first` on.

    The number of iterations inside is taken as that of the box around them, which is right for a
    triangle and off by a constant factor for a pyramid; what depends on loops around is taken over
    all of their iterations. More than `MOST` are told in proportion to each other.
    """
    slices = max(1, min(slices, extent))
    chosen = {(loop.op, loop.dimension) for loop in loops}
    places = [
        (statement, place)
        for statement in scop.statements
        for place, loop in enumerate(statement.loops)
        if (loop.op, loop.dimension) in chosen
    ]
    domains = [(_without_parameters(statement), place) for statement, place in places]
    middles = [first + (2 * s + 1) * extent // (2 * slices) for s in range(slices)]
    weights = limited(
        lambda: [sum(_inside(domain, place, v) for domain, place in domains) for v in middles],
        lambda: [1] * slices,
    )
    unit = -(-max(weights) // MOST) or 1
    return [-(-weight // unit) for weight in weights]


def _without_parameters(statement: Statement) -> isl.Set:
    domain = statement.domain
    return domain.project_out(isl.dim_type.param, 0, domain.dim(isl.dim_type.param))


def _inside(domain: isl.Set, place: int, value: int) -> int:
    """Iterations in which the loop at `place` has that value."""
    row = domain.fix_val(isl.dim_type.set, place, isl.Val(value))
    if row.is_empty():
        return 0
    count = 1
    for dim in range(row.dim(isl.dim_type.set)):
        low, high = row.dim_min_val(dim), row.dim_max_val(dim)
        if low.is_int() and high.is_int():
            count *= high.to_python() - low.to_python() + 1
    return count

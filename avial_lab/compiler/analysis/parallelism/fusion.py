"""Which iterations of a nest need which of another one."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import Dependence, dependences_between
from avial_lab.compiler.analysis.polyhedral.scop import Statement

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def needs_own_iteration(before: Sequence[Statement], after: Sequence[Statement]) -> bool:
    """Whether each iteration of the second nest's outermost loop needs the first's own alone."""
    between = dependences_between(before, after)
    return limited(lambda: all(d.exact and _in_one_iteration(d) for d in between), lambda: False)


def _in_one_iteration(dependence: Dependence) -> bool:
    pairs = dependence.relation
    return pairs.is_subset(pairs.equate(IN, 0, OUT, 0))

"""Where to cut a loop's range in three, so that what comes before and after can be split.

A nest that cannot be split as it is -> a value of its loop, such that only iterations on different
sides of it, or it itself, depend on each other.

    for i = 0 to n                                   for i = 0 to k          split
      for j                                          for i = k to k + 1      one part has it all
        P[i, j] = min(P[i, j], P[i, k] + P[k, j])    for i = k + 1 to n      split

Row k is only read by the others, and written by i = k alone. Split as well, that iteration runs
where row k is at home.

Source: M. Griebl, P. Feautrier, C. Lengauer, Index set splitting, IJPP 28 (2000).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import islpy as isl

from avial_lab.compiler.analysis.parallelism.conflicts import Conflicts
from avial_lab.compiler.analysis.parallelism.splits import LoopNest, Splitter
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.scop import Access, Scop, Statement

MOST_CUTS = 4
"""Values that are tried for one loop."""


def cut(nest: LoopNest, splitter: Splitter) -> Affine | None:
    """Where to cut, an expression of the loops around and of parameters.

    None where that does not help, or where the parts would be loops without loops.
    """
    loop = nest.loops[0]
    if nest.op.name not in ("affine.for", "scf.for") or len(nest.op.results) or loop.step != 1:
        return None
    if all(len(s.loops) <= nest.around + 1 for s in nest.statements):
        return None
    for value in list(dict.fromkeys(_candidates(nest, splitter)))[:MOST_CUTS]:
        below = _restricted(nest, f"{loop.name} < {value}", splitter.scop)
        above = _restricted(nest, f"{loop.name} > {value}", splitter.scop)
        if _free(below, nest, splitter.scop) and _free(above, nest, splitter.scop):
            return value
    return None


def _candidates(nest: LoopNest, splitter: Splitter) -> Iterator[Affine]:
    """Where one side of a conflict is at the loop's variable, the other at something fixed."""
    for conflict in splitter.conflicts(nest):
        sides = conflict.first_access, conflict.second_access
        for here, there in (sides, sides[::-1]):
            yield from _meeting(here, there, nest, splitter.scop)


def _meeting(here: Access, there: Access, nest: LoopNest, scop: Scop) -> Iterator[Affine]:
    own = nest.loops[0].name
    fixed = {loop.name for loop in nest.statements[0].loops[: nest.around]} | scop.parameters.keys()
    for form, other in zip(here.forms or (), there.forms or (), strict=False):
        if form is None or other is None or dict(form.terms).get(own) != 1:
            continue
        value = other.plus(form.plus(Affine.of(own), -1), -1)
        if fixed.issuperset(name for name, _ in value.terms):
            yield value


def _restricted(nest: LoopNest, where: str, scop: Scop) -> list[Statement]:
    """The nest's statements in those iterations alone."""

    def within(statement: Statement) -> Statement:
        dims = ", ".join(loop.name for loop in statement.loops)
        text = f"{{ {statement.name}[{dims}] : {where} }}"
        only = isl.Set(f"[{', '.join(scop.parameters)}] -> {text}")
        accesses = tuple(
            replace(a, relation=a.relation.intersect_domain(only)) for a in statement.accesses
        )
        return replace(statement, domain=statement.domain.intersect(only), accesses=accesses)

    return [within(statement) for statement in nest.statements]


def _free(statements: list[Statement], nest: LoopNest, scop: Scop) -> bool:
    places = {s.name: nest.around for s in statements}
    return next(Conflicts(scop).among(statements, places, nest.around), None) is None

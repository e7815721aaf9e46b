"""Reductions: dependences of a loop that go away when its terms may be combined in any order.

A loop and the dependences -> the reductions in it, each with what it relaxes.

    for i = 0 to N                    carried by i: flow, anti and output of s[] with itself;
      s[] = s[] + A[i]                all of them relaxed by the reduction sum of s

A loop is parallel with its reductions when the dependences it carries are all among the relaxed;
then each part combines into a copy of its own (starting at the operation's neutral element), and
the copies are combined at the end. Floating-point sums and products change in rounding by that.

Source: W. Pugh, D. Wonnacott, Static analysis of upper and lower bounds on dependences and
parallelism, TOPLAS 16 (1994); J. Doerfert, K. Streit, S. Hack, Z. Benaissa, Polly's polyhedral
scheduling in the presence of reductions, IMPACT 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.dependences import Dependence, carried_by, dependences
from avial_lab.polyhedra.model import Array, ArrayKind, Loop, ReductionKind, Scop, Update


@dataclass(frozen=True)
class Reduction:
    """`array` accumulates over the iterations of `loop`.

    `op` is the name of the operation that combines (`arith.addf`); `relaxed` are the dependences
    that only its order makes. `fixed` says that the elements do not depend on the loop's variable
    (a sum); otherwise they may (a histogram). For iter_args `array.kind` is `ArrayKind.VALUE`.
    """

    loop: Loop
    kind: ReductionKind
    op: str
    array: Array
    updates: tuple[Update, ...]
    relaxed: tuple[Dependence, ...]
    fixed: bool

    @property
    def element_type(self) -> str:
        return self.array.element_type

    @property
    def reorders_rounding(self) -> bool:
        """Whether another order gives another value: a floating-point sum or product."""
        floating = self.element_type.startswith(("f", "bf", "tf"))
        return floating and self.kind in (ReductionKind.SUM, ReductionKind.PRODUCT)

    def __str__(self) -> str:
        return f"{self.kind.value} of {self.array} over {self.loop}"


def reductions(
    loop: Loop, scop: Scop, among: Sequence[Dependence] | None = None
) -> tuple[Reduction, ...]:
    """The reductions over `loop`; `among`: the scop's dependences, where they are known already."""
    carried = carried_by(loop, dependences(scop) if among is None else among)
    groups: dict[tuple[str, object], list[Update]] = {}
    for update in scop.updates:
        groups.setdefault((update.array.name, _family(update)), []).append(update)
    found: list[Reduction] = []
    for updates in groups.values():
        names = {name for update in updates for name in (update.load, update.store)}
        relaxed = tuple(
            d
            for d in carried
            if d.array == updates[0].array and d.source.name in names and d.target.name in names
        )
        if relaxed:
            array = updates[0].array
            fixed = array.kind is ArrayKind.VALUE or all(_is_fixed(d, loop) for d in relaxed)
            first = updates[0]
            found.append(
                Reduction(loop, first.kind, first.op, array, tuple(updates), relaxed, fixed)
            )
    return tuple(found)


def forbidding(
    loop: Loop, scop: Scop, among: Sequence[Dependence] | None = None
) -> tuple[Dependence, ...]:
    """The dependences `loop` carries that no reduction relaxes; none: it is parallel with those."""
    known = dependences(scop) if among is None else among
    relaxed = {id(d) for r in reductions(loop, scop, known) for d in r.relaxed}
    return tuple(d for d in carried_by(loop, known) if id(d) not in relaxed)


def _family(update: Update) -> object:
    """Updates of one family may be mixed: sums with differences; minima only of one order."""
    if update.kind in (ReductionKind.MINIMUM, ReductionKind.MAXIMUM):
        return update.op
    return update.kind


def _is_fixed(dependence: Dependence, loop: Loop) -> bool:
    """Whether the element is the same for all values of the loop's variable."""
    access = dependence.source_access
    if access.subscripts is None or not access.exact:
        return False
    place = dependence.source.loops.index(loop)

    # With the domain's own constraints forgotten: do the subscripts hold that variable?
    def independent() -> bool:
        relation = access.relation.gist_domain(dependence.source.domain)
        return not relation.involves_dims(isl.dim_type.in_, place, 1)

    return limited(independent, lambda: False)

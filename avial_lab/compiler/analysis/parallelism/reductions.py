"""Reductions: dependences of a loop that go away when its terms may be combined in any order.

A loop and the dependences -> the reductions in it, each with what it relaxes.

    for i = 0 to N                    carried by i: flow, anti and output of s[] with itself;
      s[] = s[] + A[i]                all of them relaxed by the reduction sum of s

A loop is parallel with its reductions when the dependences it carries are all among the relaxed;
then each part combines into a copy of its own (starting at the operation's neutral element), and
the copies are combined at the end. Floating-point sums and products change in rounding by that.

    for i = 0 to N                    best is the minimum with at: what belongs to the first that is
      if A[i] < best[]                least. A later copy counts where its best is strictly better
        best[] = A[i]; at[] = i

Source: W. Pugh, D. Wonnacott, Static analysis of upper and lower bounds on dependences and
parallelism, TOPLAS 16 (1994); J. Doerfert, K. Streit, S. Hack, Z. Benaissa, Polly's polyhedral
scheduling in the presence of reductions, IMPACT 2015.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.arg_payloads import belong_together
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import (
    Dependence,
    DependenceKind,
    carried_by,
    dependences,
)
from avial_lab.compiler.analysis.polyhedral.scop import (
    Array,
    ArrayKind,
    Loop,
    ReductionKind,
    Scop,
    Update,
)


@dataclass(frozen=True)
class Reduction:
    """`array` accumulates over the iterations of `loop`.

    `op` is the name of the operation that combines (`arith.addf`); `relaxed` are the dependences
    that only its order makes. `fixed` says that the elements do not depend on the loop's variable
    (a sum); otherwise they may (a histogram). For iter_args `array.kind` is `ArrayKind.VALUE`.
    `payloads` take what belongs to what `array` takes (the place of a minimum).
    """

    loop: Loop
    kind: ReductionKind
    op: str
    array: Array
    updates: tuple[Update, ...]
    relaxed: tuple[Dependence, ...]
    fixed: bool
    payloads: tuple[Array, ...] = ()

    @property
    def arrays(self) -> tuple[Array, ...]:
        return (self.array, *self.payloads)

    @property
    def element_type(self) -> str:
        return self.array.element_type

    @property
    def reorders_rounding(self) -> bool:
        """Whether another order gives another value: a floating-point sum or product."""
        floating = self.element_type.startswith(("f", "bf", "tf"))
        return floating and self.kind in (ReductionKind.SUM, ReductionKind.PRODUCT)

    def __str__(self) -> str:
        led = f" with {' and '.join(map(str, self.payloads))}" if self.payloads else ""
        return f"{self.kind.value} of {self.array}{led} over {self.loop}"


def reductions(
    loop: Loop, scop: Scop, among: Sequence[Dependence] | None = None
) -> tuple[Reduction, ...]:
    """The reductions over `loop`; `among`: the scop's dependences, where they are known already."""
    carried = carried_by(loop, dependences(scop) if among is None else among)
    groups: dict[tuple[str, object], list[Update]] = {}
    for update in scop.updates:
        if not update.payloads and update.key is None:
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
    return (*found, *_led(loop, scop, carried))


def _led(loop: Loop, scop: Scop, carried: Sequence[Dependence]) -> Iterator[Reduction]:
    """The reductions of keys with payloads."""
    keys: dict[tuple[str, str], list[Update]] = {}
    for update in scop.updates:
        if update.payloads:
            keys.setdefault((update.array.name, update.op), []).append(update)
    for leads in keys.values():
        first = leads[0]
        updates = (*leads, *(update for update in scop.updates if update.key in leads))
        names = {name for update in updates for name in (update.load, update.store)}
        arrays = (first.array, *first.payloads)
        relaxed = tuple(
            d
            for d in carried
            if d.array in arrays and d.source.name in names and d.target.name in names
        )
        # Unless the key's value comes from the iterations before, others begin anew.
        going_on = [d for d in relaxed if d.array == first.array and d.kind is DependenceKind.FLOW]
        if going_on and belong_together(loop, scop, updates):
            fixed = all(_is_fixed(d, loop) for d in relaxed if d.array.kind is ArrayKind.MEMORY)
            yield Reduction(
                loop, first.kind, first.op, first.array, updates, relaxed, fixed, first.payloads
            )


def exact_families(scop: Scop) -> dict[str, object]:
    """By the name of a load or a store of an update of integers, a key: updates of one key may run
    in any order, and leave the same bits.
    """
    return {
        name: (update.array.name, _family(update))
        for update in scop.updates
        if not update.payloads
        and update.key is None
        and update.array.kind is ArrayKind.MEMORY
        and update.array.element_type.startswith(("i", "ui", "si"))
        for name in (update.load, update.store)
    }


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

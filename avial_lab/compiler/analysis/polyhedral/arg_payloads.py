"""Which element of a payload belongs to which of its key's, when copies of both are combined.

Updates of keys and payloads in a loop -> whether their elements correspond.

    best[] and at[], row[0], row[1]     all there is of the payloads belongs to one element
    best[b[i]] and at[b[i]]             the elements in the same place, of arrays of one shape
    best[] and at[i]                    nothing does: an element of at for each iteration
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.scop import (
    Access,
    ArrayKind,
    Loop,
    Scop,
    Statement,
    Update,
)


def belong_together(loop: Loop, scop: Scop, updates: Sequence[Update]) -> bool:
    """Whether it can be told for parts of `loop`; and nothing else in it touches those arrays."""
    inside = {statement.name: statement for statement in scop.within(loop)}
    if _touched_elsewhere(inside, updates):
        return False
    leads = [update for update in updates if update.key is None]
    if any(set(update.payloads) != set(leads[0].payloads) for update in leads):
        return False
    stores = {update.store: inside[update.store] for update in updates}
    outer = next(iter(stores.values())).loops[: loop.depth]
    fixed = {*scop.parameters, *(each.name for each in outer)}
    if _elements(leads, stores, fixed) == 1:
        return all(
            _elements([u for u in updates if u.array == array], stores, fixed)
            for array in leads[0].payloads
        )
    return all(
        _one_place(stores[update.store], stores[update.key.store])
        for update in updates
        if update.key is not None
    )


def _touched_elsewhere(inside: Mapping[str, Statement], updates: Sequence[Update]) -> bool:
    names = {name for update in updates for name in (update.load, update.store)}
    arrays = {update.array.name for update in updates}
    return any(
        access.array.name in arrays
        for statement in inside.values()
        if statement.name not in names
        for access in statement.accesses
    )


def _elements(
    updates: Sequence[Update], stores: Mapping[str, Statement], fixed: set[str]
) -> int | None:
    """How many elements are stored to, if always the same that fill a box."""
    places: set[tuple[Affine, ...]] = set()
    for update in updates:
        access = stores[update.store].accesses[0]
        if access.array.kind is ArrayKind.VALUE:
            places.add(())
            continue
        place = _place(access)
        if place is None or any(name not in fixed for form in place for name, _ in form.terms):
            return None
        places.add(place)
    if len(places) == 1:
        return 1
    if not all(form.is_constant for place in places for form in place):
        return None
    lines = [[form.constant for form in line] for line in zip(*places, strict=True)]
    box = prod(max(line) - min(line) + 1 for line in lines)
    return len(places) if len(places) == box else None


def _place(access: Access) -> tuple[Affine, ...] | None:
    if access.forms is None:
        return None
    known = tuple(form for form in access.forms if form is not None)
    return known if len(known) == len(access.forms) else None


def _one_place(first: Statement, second: Statement) -> bool:
    """Whether two stores are to elements in the same place, each in its array."""
    a, b = first.accesses[0], second.accesses[0]
    if ArrayKind.VALUE in (a.array.kind, b.array.kind) or first.loops != second.loops:
        return False
    place = _place(a)
    if place is not None:
        return place == _place(b)
    # Where nothing is known of an index, arrays of another shape are cut elsewhere.
    sizes = zip(a.array.shape, b.array.shape, strict=False)
    differ = any(None not in pair and pair[0] != pair[1] for pair in sizes)
    if differ or a.array.rank != b.array.rank:
        return False
    return first.op.name == second.op.name and _index(first, a) == _index(second, b) is not None


def _index(store: Statement, access: Access) -> tuple[object, ...] | None:
    """What the operation itself says of the place; None of a view."""
    if store.op.operands[1] != access.array.value:
        return None
    form = store.op.attributes.get("map")
    return (form, *list(store.op.operands)[2:])

"""Another order of the loops, where what is met again is still in the nearest cache.

Units, Times -> Times of which those that come first save most.

    for t, i, j: y[i, j] += x[t, i, j]     all of y comes anew for every t
    for i, t, j: y[i, j] += x[t, i, j]     a row of y stays for all t

Source: M. Wolf, M. Lam, A data locality optimizing algorithm, PLDI 1991.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from avial_lab.compiler.analysis.patterns.loop_sinking import Times, loops_at
from avial_lab.compiler.analysis.polyhedral.scop import Access, ArrayKind
from avial_lab.compiler.analysis.polyhedral.strides import factors_of
from avial_lab.compiler.analysis.polyhedral.trip_counts import FAR, most_iterations
from avial_lab.compiler.analysis.polyhedral.units import Unit
from avial_lab.core.element_types import ITEMSIZE

WORTH = 4 / 3
"""Times as many bytes in the order that there is: less may as well be won by what is not known."""

UNKNOWN = 1000
"""Iterations of a loop of which nobody knows how many it has: a row is near then, a plane not."""


def nearer(units: Sequence[Unit], times: Times, near: int) -> Iterator[Times]:
    """Orders in which a loop that writes to the same elements stands right around the innermost
    one, and which bring a good part fewer bytes from beyond a cache of `near` bytes. Of units in
    the same loops. (A loop over other elements may be one for threads, and stays outside.)
    """
    orders = {tuple(loops_at(times[unit.name])) for unit in units}
    if len(orders) != 1:
        return
    (order,) = orders
    if len(order) < 3:
        return
    now = sum(_bytes_brought(unit, order, near) for unit in units)
    found: list[tuple[int, int, Times]] = []
    for place, loop in enumerate(order[:-2]):
        if not any(_writes_again(unit, loop) for unit in units):
            continue
        moved = (*order[:place], *order[place + 1 : -1], loop, order[-1])
        then = sum(_bytes_brought(unit, moved, near) for unit in units)
        if then * WORTH <= now:
            each = {name: _in_order(time, moved) for name, time in times.items()}
            found.append((then, place, each))
    for _, _, each in sorted(found, key=lambda item: item[:2]):
        yield each


def _writes_again(unit: Unit, loop: ir.Operation) -> bool:
    """Whether it writes an element that is the same in all iterations of the loop."""
    dim = next(k for k, own in enumerate(unit.loops) if own.op == loop)
    writes = (a for s in unit.statements for a in s.accesses if a.writes)
    return any((factors := factors_of(a, dim)) is not None and not any(factors) for a in writes)


def _in_order(
    time: Sequence[int | ir.Operation], order: Sequence[ir.Operation]
) -> tuple[int | ir.Operation, ...]:
    """The same places in the text, between the loops in that order."""
    loops = iter(order)
    return tuple(item if isinstance(item, int) else next(loops) for item in time)


def _bytes_brought(unit: Unit, order: Sequence[ir.Operation], near: int) -> int:
    """To the nearest cache, if each access had all of it."""
    place = {loop.op: k for k, loop in enumerate(unit.loops)}
    dims = [place[loop] for loop in reversed(order)]
    counts = [most_iterations(unit.domain, dim) for dim in range(len(dims))]
    counts = [UNKNOWN if count >= FAR else count for count in counts]
    accesses = {
        (access.relation, access.writes): access
        for statement in unit.statements
        for access in statement.accesses
        if access.array.kind is ArrayKind.MEMORY
    }
    return sum(_brought(access, dims, counts, near) for access in accesses.values())


def _brought(access: Access, dims: Sequence[int], counts: Sequence[int], near: int) -> int:
    """Bytes, with the loops `dims` from the inside."""
    met = brought = ITEMSIZE.get(access.array.element_type, 8)
    for dim in dims:
        factors = factors_of(access, dim)
        moves = factors is None or any(factors)
        if moves or met > near:
            brought *= counts[dim]
        if moves:
            met *= counts[dim]
    return brought

"""Which values of a chain to keep for the way back, and which to compute again.

Links of a chain, a cap of memory -> the numbers of those whose values are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEPS = 4096
"""The cap is counted in so many units, into which sizes are rounded up."""


@dataclass(frozen=True)
class Link:
    """An operation that reads what the one before made. `cost` of doing it again, in any unit;
    `read`: whether the way back reads its value.
    """

    nbytes: int
    cost: int
    read: bool


def kept_of_chain(links: Sequence[Link], most_bytes: int) -> tuple[int, ...]:
    """The least is computed again, with at most that many bytes kept: dynamic programming over the
    memory used and what has been left out since the last value at hand.

    >>> kept_of_chain([Link(4, 9, False), Link(4, 1, True), Link(4, 1, True)], 4)
    (1,)
    """
    unit = max(1, most_bytes // STEPS)
    room = most_bytes // unit
    # (units, cost that a later read would have) -> (cost until now, kept)
    states: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {(0, 0): (0, ())}
    for k, link in enumerate(links):
        after: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}

        def reach(key: tuple[int, int], cost: int, kept: tuple[int, ...]) -> None:
            if key not in after or cost < after[key][0]:  # noqa: B023
                after[key] = cost, kept  # noqa: B023

        for (units, waiting), (cost, kept) in states.items():
            again = waiting + link.cost
            if link.read:
                reach((units, 0), cost + again, kept)
            else:
                reach((units, again), cost, kept)
            more = units + -(-link.nbytes // unit)
            if more <= room:
                reach((more, 0), cost, (*kept, k))
        states = _undominated(after)
    best = min(states.items(), key=lambda item: (item[1][0], item[0][0], item[1][1]))
    return best[1][1]


def _undominated(
    states: dict[tuple[int, int], tuple[int, tuple[int, ...]]],
) -> dict[tuple[int, int], tuple[int, tuple[int, ...]]]:
    """Without those that take as much memory as others, cost as much, and wait for as much."""
    kept: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
    least: dict[int, int] = {}
    for (units, waiting), (cost, chosen) in sorted(states.items()):
        if all(cost < known for wait, known in least.items() if wait <= waiting):
            kept[units, waiting] = cost, chosen
            least[waiting] = cost
    return kept

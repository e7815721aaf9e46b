"""What a chain keeps is the best of all choices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab.planning.recomputation import Link, kept_of_chain
from tests.quick import examples

links = st.builds(Link, st.integers(1, 9), st.integers(0, 9), st.booleans())


def cost_of(chain: Sequence[Link], kept: Sequence[int]) -> int:
    """What is done again when the way back reads, last value first, from what is at hand."""
    again: set[int] = set()
    for k in (k for k, link in enumerate(chain) if link.read):
        while k >= 0 and k not in kept:
            again.add(k)
            k -= 1
    return sum(chain[k].cost for k in again)


@given(st.lists(links, max_size=7), st.integers(0, 30))
@settings(deadline=None, max_examples=examples(60))
def test_it_is_the_best(chain: list[Link], room: int) -> None:
    kept = kept_of_chain(chain, room)
    assert sum(chain[k].nbytes for k in kept) <= room
    choices = (c for n in range(len(chain) + 1) for c in combinations(range(len(chain)), n))
    fits = [c for c in choices if sum(chain[k].nbytes for k in c) <= room]
    assert cost_of(chain, kept) == min(cost_of(chain, c) for c in fits)

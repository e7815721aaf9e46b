"""Costs in a row, cut into stages.

Costs, how many stages -> the stage of each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate


def balanced(costs: Sequence[int], parts: int) -> list[int]:
    """For each of some costs in a row the part that it is in: every part has one at least, and the
    most expensive part is as cheap as can be. O(parts x costs x log costs).

    >>> balanced([1, 1, 1, 3], 2)
    [0, 0, 0, 1]
    """
    given = tuple(costs)
    begins = [_cut(given, part)[1] for part in range(parts + 1)]
    cuts: list[tuple[int, int]] = []
    end = len(given)
    for part in range(parts, 0, -1):
        begin = begins[part][end - part]
        cuts.append((begin, end))
        end = begin
    return [k for k, (begin, end) in enumerate(reversed(cuts)) for _ in range(begin, end)]


@lru_cache(maxsize=1 << 12)  # one search asks for many numbers of parts
def _cut(costs: tuple[int, ...], parts: int) -> tuple[list[int], list[int]]:
    """Of the first `parts` costs, and one more each: their most expensive part, and where the last
    one begins: as late as can be.
    """
    if not parts:
        return [0], [0]
    before = [0, *accumulate(costs)]
    most, _ = _cut(costs, parts - 1)
    if parts == 1:
        return before[1:], [0] * len(costs)
    # With a later beginning the others cost no less and the last part no more: they meet once.
    first = parts - 1
    met = [each + before[first + k] for k, each in enumerate(most)]
    found: list[int] = []
    begins: list[int] = []
    for end in range(parts, len(costs) + 1):
        count = end - first
        k = bisect_left(met, before[end], 0, count)
        options = [most[k]] if k < count else []
        options += [before[end] - before[first + k - 1]] if k else []
        found.append(min(options))
        begins.append(first + bisect_right(most, found[-1], 0, count) - 1)
    return found, begins

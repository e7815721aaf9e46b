"""Costs in a row, cut into stages.

Costs, how many stages -> the stage of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def balanced(costs: Sequence[int], parts: int) -> list[int]:
    """For each of some costs in a row the part that it is in: every part has one at least, and the
    most expensive part is as cheap as can be.

    >>> balanced([1, 1, 1, 3], 2)
    [0, 0, 0, 1]
    """
    before = [0, *accumulate(costs)]
    best: dict[tuple[int, int], tuple[int, int]] = {(0, 0): (0, 0)}
    for part in range(1, parts + 1):
        for end in range(part, len(costs) + 1):
            options = [
                (max(best[part - 1, begin][0], before[end] - before[begin]), begin)
                for begin in range(part - 1, end)
                if (part - 1, begin) in best
            ]
            if options:
                best[part, end] = min(options, key=lambda each: (each[0], -each[1]))
    cuts: list[tuple[int, int]] = []
    end = len(costs)
    for part in range(parts, 0, -1):
        begin = best[part, end][1]
        cuts.append((begin, end))
        end = begin
    return [k for k, (begin, end) in enumerate(reversed(cuts)) for _ in range(begin, end)]

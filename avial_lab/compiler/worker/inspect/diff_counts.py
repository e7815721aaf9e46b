"""How many lines a diff of two texts takes away and adds.

Lines that occur once on both sides hold the two together (patience diff); between them the longest
common subsequence counts. Linear but for the gaps, which `difflib` takes minutes for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

LARGEST_TABLE = 500_000
"""Pairs of lines compared in a gap; a larger one counts as rewritten."""


def changed_lines(before: str, after: str) -> tuple[int, int]:
    r"""Lines added and lines removed.

    >>> changed_lines("a\nb\nc\n", "a\nx\nc\nd\n")
    (2, 1)
    """
    if before == after:
        return 0, 0
    old, new = before.splitlines(), after.splitlines()
    kept = _common(old, new)
    return len(new) - kept, len(old) - kept


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """The number of lines that stay."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    anchors = _anchors(old, new)
    if not anchors:
        return start + end + _longest(old, new)
    kept = start + end + len(anchors)
    places = [(-1, -1), *anchors, (len(old), len(new))]
    for (i, j), (k, m) in pairwise(places):
        if k - i > 1 and m - j > 1:
            kept += _common(old[i + 1 : k], new[j + 1 : m])
    return kept


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Places of lines that occur once in both, in ascending order of both: as many as there are."""
    once = {line for line, count in Counter(old).items() if count == 1}
    once &= {line for line, count in Counter(new).items() if count == 1}
    at = {line: j for j, line in enumerate(new) if line in once}
    pairs = [(i, at[line]) for i, line in enumerate(old) if line in once]
    ends: list[int] = []  # of the ascending sequence of each length, the smallest last place
    last: list[int] = []
    back: list[int] = []
    for k, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        if length == len(ends):
            ends.append(j)
            last.append(k)
        else:
            ends[length] = j
            last[length] = k
        back.append(last[length - 1] if length else -1)
    chain: list[tuple[int, int]] = []
    k = last[-1] if last else -1
    while k >= 0:
        chain.append(pairs[k])
        k = back[k]
    return chain[::-1]


def _longest(old: Sequence[str], new: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    if len(old) * len(new) > LARGEST_TABLE:
        return 0
    row = [0] * (len(new) + 1)
    for line in old:
        diagonal = 0
        for j, other in enumerate(new, 1):
            above = row[j]
            row[j] = diagonal + 1 if line == other else max(above, row[j - 1])
            diagonal = above
    return row[-1]

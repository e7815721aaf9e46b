"""Arrays that are views in NumPy and have memory of their own here: reshaped ones, parts of complex
numbers.

A write to one is recorded for the others, too (`Recording.write`): who looks at none of them pays
for nothing, since a value that nobody takes is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from weakref import ref

from avial_lab.runtime.rank.interpreter import Part

if TYPE_CHECKING:
    from avial_lab.ptensor.recording import Memory, Recording, Value

Derive = Callable[["Recording", "Value"], "Value"]
"""A part of a memory -> what is looked at."""

Restore = Callable[["Recording", "Value", "Value"], "Value"]
"""The part as it is, and what is looked at, after a write -> the part after it."""


@dataclass(eq=False)
class Alias:
    """A memory that looks at a part, of that shape, of another one. why_fixed: of one through which
    nothing is written, what is said to who writes to either.
    """

    source: ref[Memory]
    part: Part
    shape: tuple[int, ...]
    made: ref[Memory]
    derive: Derive
    restore: Restore
    why_fixed: str = ""


def link(source: Memory, made: Memory, alias: Alias) -> None:
    """From now on the two follow each other. What nobody else can look at is not kept for it: the
    source only where another alias of it, or what it looks at itself, would be cut off.
    """
    source.aliases = [each for each in source.aliases if each.source() and each.made()]
    if source.aliases:
        for each in (*source.aliases, alias):
            if each.source() is source and (its := each.made()) is not None:
                its.looks_at = source
    source.aliases.append(alias)
    made.aliases.append(alias)


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...] | None:
    """Of the view that NumPy's reshape gives, in elements; None where it copies. There is at least
    one element. (NumPy's `_attempt_nocopy_reshape`.)

    >>> reshaped_strides((4, 6), (6, 1), (2, 12))
    (12, 1)
    >>> reshaped_strides((6, 4), (1, 6), (24,))
    >>> reshaped_strides((4,), (2,), (2, 2))
    (4, 2)
    """
    old = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n != 1]
    made: list[int] = []
    first, at = 0, 0
    while at < len(wanted) and first < len(old):
        last, end = first + 1, at + 1
        before, after = old[first][0], wanted[at]
        while before != after:
            if after < before:
                after *= wanted[end]
                end += 1
            else:
                before *= old[last][0]
                last += 1
        lines = old[first:last]
        if any(a[1] != b[0] * b[1] for a, b in pairwise(lines)):
            return None
        stride = lines[-1][1]
        own: list[int] = []
        for extent in reversed(wanted[at:end]):
            own.insert(0, stride)
            stride *= extent
        made += own
        first, at = last, end
    return (*made, *(1,) * (len(wanted) - at))


def through_ones(part: Part, shape: Sequence[int], wanted: Sequence[int]) -> Part | None:
    """The part, where the shapes differ in dimensions of one element only.

    >>> through_ones(((0, 0, 1), (0, 1, 1)), (3, 4), (3, 1, 4))
    ((0, 0, 1), (0, 2, 1))
    """
    kept, found = ([d for d, n in enumerate(each) if n != 1] for each in (shape, wanted))
    if [shape[d] for d in kept] != [wanted[d] for d in found]:
        return None
    place = dict(zip(kept, found, strict=True))
    return tuple((offset, place.get(dim, -1), step) for offset, dim, step in part)

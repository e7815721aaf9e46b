"""Regions: which elements of an array, as unions of boxes.

Boxes and unions of boxes -> intersection, difference, hull, size. Integers only, exact, no isl.

A `Box` is half-open in every dimension; a 0-d array has one box, `Box((), ())`, of one element. A
`Region` is a tuple of disjoint boxes. Touching boxes do not overlap: `stop` is exclusive.

        0   2   4          a.difference(b) of a = [0,4) x [0,4), b = [1,3) x [2,4)
      0 +---+---+
        |  top  |          at most 2 x rank boxes, split along dimension 0 first
      1 +---+---+
        |   | b |
      3 +---+---+
        | bottom|
      4 +-------+
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """The elements `start[d] <= i[d] < stop[d]` of an array, one pair for each dimension."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    @staticmethod
    def whole(shape: Sequence[int]) -> Box:
        """All elements of an array of that shape."""
        return Box((0,) * len(shape), tuple(shape))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in zip(self.start, self.stop, strict=True))

    @property
    def size(self) -> int:
        """Number of elements; 1 for the box of a 0-d array."""
        size = 1
        for a, b in zip(self.start, self.stop, strict=True):
            size *= b - a
        return size

    @property
    def empty(self) -> bool:
        # Not any(): its generator is three times slower, and this is the task graph's innermost
        # loop.
        for a, b in zip(self.start, self.stop, strict=True):  # noqa: SIM110
            if a >= b:
                return True
        return False

    @property
    def slices(self) -> tuple[slice, ...]:
        """For NumPy: `array[box.slices]`."""
        return tuple(slice(a, b) for a, b in zip(self.start, self.stop, strict=True))

    def overlaps(self, other: Box) -> bool:
        for a, b, c, d in zip(self.start, self.stop, other.start, other.stop, strict=True):
            if (a if a > c else c) >= (b if b < d else d):
                return False
        return True

    def contains(self, other: Box) -> bool:
        for a, b, c, d in zip(self.start, self.stop, other.start, other.stop, strict=True):
            if c < a or b < d:
                return other.empty
        return True

    def intersection(self, other: Box) -> Box | None:
        """The common elements, or None where there are none."""
        if not self.overlaps(other):
            return None
        return Box(tuple(map(max, self.start, other.start)), tuple(map(min, self.stop, other.stop)))

    def difference(self, other: Box) -> tuple[Box, ...]:
        """The elements of self that are not in other, as disjoint boxes (at most 2 × rank)."""
        common = self.intersection(other)
        if common is None:
            return () if self.empty else (self,)
        pieces: list[Box] = []
        start, stop = list(self.start), list(self.stop)
        for d, (low, high) in enumerate(zip(common.start, common.stop, strict=True)):
            if start[d] < low:
                pieces.append(Box(tuple(start), (*stop[:d], low, *stop[d + 1 :])))
            if high < stop[d]:
                pieces.append(Box((*start[:d], high, *start[d + 1 :]), tuple(stop)))
            start[d], stop[d] = low, high
        return tuple(pieces)

    def hull(self, other: Box) -> Box:
        """The smallest box that holds both."""
        return Box(tuple(map(min, self.start, other.start)), tuple(map(max, self.stop, other.stop)))

    def __str__(self) -> str:
        return "[" + ", ".join(f"{a}:{b}" for a, b in zip(self.start, self.stop, strict=True)) + "]"

    def __repr__(self) -> str:
        return f"Box{self}"


Region = tuple[Box, ...]
"""Disjoint boxes; the empty tuple is the empty region."""


def box_between(starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> Box:
    """The least box with every element that a subview has: so many of each dimension, from its
    start on, `steps` apart; forwards or backwards.

    >>> box_between((12,), (8,), (-1,)), box_between((0, 4), (2, 3), (1, 2))
    (Box[5:13], Box[0:2, 4:9])
    """
    ends = [
        (min(a, a + (n - 1) * s), max(a, a + (n - 1) * s) + 1) if n > 0 else (a, a)
        for a, n, s in zip(starts, sizes, steps, strict=True)
    ]
    return Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))


def union(boxes: Iterable[Box]) -> Region:
    """The elements in any of `boxes`, as disjoint boxes; boxes that share a whole face are joined.

    >>> [str(box) for box in union([Box((0,), (4,)), Box((4,), (6,)), Box((2,), (5,))])]
    ['[0:6]']
    """
    result: list[Box] = []
    for box in boxes:
        fresh = [box] if not box.empty else []
        for old in result:
            fresh = [piece for part in fresh for piece in part.difference(old)]
        for piece in fresh:
            _join(result, piece)
    return tuple(result)


def _join(result: list[Box], piece: Box) -> None:
    """Add `piece` to the disjoint boxes in `result`, joined with neighbours as long as one fits."""
    while True:
        for k, old in enumerate(result):
            joined = _joined(old, piece)
            if joined is not None:
                del result[k]
                piece = joined
                break
        else:
            result.append(piece)
            return


def _joined(a: Box, b: Box) -> Box | None:
    """One box where `a` and `b` share a whole face, else None."""
    differing = [
        d for d in range(len(a.start)) if (a.start[d], a.stop[d]) != (b.start[d], b.stop[d])
    ]
    if len(differing) != 1:
        return a if not differing else None
    d = differing[0]
    return a.hull(b) if a.stop[d] == b.start[d] or b.stop[d] == a.start[d] else None


def intersection(a: Region, b: Region) -> Region:
    """The elements in both."""
    common = (x.intersection(y) for x in a for y in b)
    return union(box for box in common if box is not None)


def difference(a: Region, b: Iterable[Box]) -> Region:
    """The elements of `a` that are not in `b`."""
    left = list(a)
    for hole in b:
        left = [piece for box in left for piece in box.difference(hole)]
    return tuple(left)


def overlaps(a: Region, b: Region) -> bool:
    return any(x.overlaps(y) for x in a for y in b)


def size(region: Region) -> int:
    """Number of elements."""
    return sum(box.size for box in region)


def format_region(region: Region) -> str:
    return " ∪ ".join(map(str, region)) if region else "∅"


def iterations(low: int, high: int, step: int) -> int:
    """How many numbers there are from `low` in steps to below `high`: `len(range(…))`, which takes
    no more than 63 bits of them.

    >>> iterations(0, 10, 3), iterations(5, 5, 1), iterations(-(2**63), 2**63 - 1, 1) == 2**64 - 1
    (4, 0, True)
    """
    return max(0, -((low - high) // step))

"""Something known of each element of an array: boxes with a value, found by overlap.

Boxes with values -> those that overlap a box, in the order of their first dimension.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import count
from typing import Generic, TypeVar

from avial_lab.regions import Box

Value = TypeVar("Value")


class PieceMap(Generic[Value]):
    """Boxes of one array with a value each. Boxes may overlap when the caller adds them so.

    Kept sorted by where they start in dimension 0, so that a search looks at the neighbourhood
    only: O(log n + k) for arrays that are cut along that dimension.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        # (start in dimension 0, when it was added, box, value): the second keeps ties apart and
        # stable.
        self._pieces: list[tuple[int, int, Box, Value]] = []
        self._longest = 0
        self._added = count()

    def __iter__(self) -> Iterator[tuple[Box, Value]]:
        return ((box, value) for _, _, box, value in self._pieces)

    def add(self, box: Box, value: Value) -> None:
        if box.empty:
            return
        start = box.start[0] if self._rank else 0
        self._longest = max(self._longest, box.stop[0] - start if self._rank else 1)
        piece = (start, next(self._added), box, value)
        # Programs mostly walk arrays upwards: the end is the common place.
        if not self._pieces or self._pieces[-1][0] <= start:
            self._pieces.append(piece)
        else:
            insort(self._pieces, piece, key=_start_and_age)

    def overlapping(self, box: Box) -> list[tuple[Box, Value]]:
        """(the part inside `box`, value) of every piece that overlaps it."""
        first, last = self._window(box)
        pieces = self._pieces
        if first >= last or box.empty:
            return []
        return [
            (common, value)
            for _, _, piece, value in pieces[first:last]
            if (common := piece.intersection(box)) is not None
        ]

    def remove(self, box: Box) -> None:
        """Forget what is known inside `box`; pieces that stick out keep their rest."""
        first, last = self._window(box)
        if first >= last or box.empty:
            return
        kept: list[tuple[int, int, Box, Value]] = []
        rests: list[tuple[Box, Value]] = []
        for entry in self._pieces[first:last]:
            if not entry[2].overlaps(box):
                kept.append(entry)
            elif not box.contains(entry[2]):
                rests.extend((rest, entry[3]) for rest in entry[2].difference(box))
        if len(kept) != last - first:
            self._pieces[first:last] = kept
            for rest, value in rests:
                self.add(rest, value)

    def _window(self, box: Box) -> tuple[int, int]:
        """The positions of the pieces that may overlap `box`."""
        if not self._rank:
            return 0, len(self._pieces)
        first = bisect_left(self._pieces, box.start[0] - self._longest + 1, key=_start)
        return first, bisect_left(self._pieces, box.stop[0], key=_start)


def _start(piece: tuple[int, int, Box, object]) -> int:
    return piece[0]


def _start_and_age(piece: tuple[int, int, Box, object]) -> tuple[int, int]:
    return piece[0], piece[1]

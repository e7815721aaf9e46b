"""Something known of each element of an array: boxes with a value, found by overlap.

Boxes with values -> those that overlap a box, in the order of their first dimension.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from avial_lab.core.regions import Box

Value = TypeVar("Value")

_Entry = tuple[int, int, Box, Value]
"""Start in dimension 0, when it was added, the box, its value."""


class PieceMap(Generic[Value]):
    """Boxes of one array with a value each. Boxes may overlap when the caller adds them so.

    Sorted by where they start in dimension 0, in one list for each order of magnitude of their
    length there: a search looks at a neighbourhood as wide as the longest piece of a list, and a
    few long pieces do not widen that of many short ones. O(log n + k) for k pieces found in
    arrays that are cut along dimension 0.
    """

    __slots__ = ("_added", "_lists", "_only", "_rank")

    def __init__(self, rank: int) -> None:
        self._rank = rank
        # By bit length of the extent: (start, when it was added, box, value), sorted. The second
        # keeps ties apart and stable.
        self._lists: dict[int, list[_Entry[Value]]] = {}
        # In place of the lists where there is one piece, as in most maps of a schedule.
        self._only: _Entry[Value] | None = None
        self._added = 0

    def __iter__(self) -> Iterator[tuple[Box, Value]]:
        if self._only is not None:
            return iter(((self._only[2], self._only[3]),))
        entries = sorted((e for pieces in self._lists.values() for e in pieces), key=_start_and_age)
        return ((box, value) for _, _, box, value in entries)

    def add(self, box: Box, value: Value) -> None:
        if box.empty:
            return
        entry = (box.start[0] if self._rank else 0, self._added, box, value)
        self._added += 1
        if self._only is not None:
            only, self._only = self._only, None
            self._insert(only)
        elif not self._lists:
            self._only = entry
            return
        self._insert(entry)

    def _insert(self, entry: _Entry[Value]) -> None:
        start, box = entry[0], entry[2]
        extent = box.stop[0] - start if self._rank else 1
        pieces = self._lists.setdefault(extent.bit_length(), [])
        # Programs mostly walk arrays upwards: the end is the common place.
        if not pieces or pieces[-1][0] <= start:
            pieces.append(entry)
        else:
            insort(pieces, entry, key=_start_and_age)

    def replace(self, box: Box, value: Value) -> None:
        """In place of all that is known inside `box`. Quick where that is one piece, `box` itself,
        as it mostly is, in a map whose pieces do not overlap.
        """
        only = self._only
        if only is not None:
            if only[2] == box:
                self._only = (only[0], self._added, box, value)
                self._added += 1
                return
        elif self._rank and self._lists:
            start = box.start[0]
            pieces = self._lists.get((box.stop[0] - start).bit_length(), [])
            for at in range(bisect_left(pieces, (start,)), len(pieces)):
                if pieces[at][0] != start:
                    break
                if pieces[at][2] == box:
                    del pieces[at]
                    self._insert((start, self._added, box, value))
                    self._added += 1
                    return
        self.remove(box)
        self.add(box, value)

    def overlapping(self, box: Box) -> list[tuple[Box, Value]]:
        """(the part inside `box`, value) of every piece that overlaps it."""
        only = self._only
        if only is not None:
            common = box if only[2] == box else only[2].intersection(box)
            return [] if common is None else [(common, only[3])]
        if not self._lists:
            return []
        found = [
            (entry, common)
            for pieces, first, last in self._windows(box)
            for entry in pieces[first:last]
            if (common := entry[2].intersection(box)) is not None
        ]
        found.sort(key=lambda pair: (pair[0][0], pair[0][1]))
        return [(common, entry[3]) for entry, common in found]

    def remove(self, box: Box) -> None:
        """Forget what is known inside `box`; pieces that stick out keep their rest."""
        only = self._only
        if only is not None:
            if only[2] == box:
                self._only = None
            elif only[2].overlaps(box):
                self._only = None
                for rest in only[2].difference(box):
                    self.add(rest, only[3])
            return
        if not self._lists:
            return
        rests: list[tuple[Box, Value]] = []
        for pieces, first, last in self._windows(box):
            kept: list[_Entry[Value]] = []
            for entry in pieces[first:last]:
                if not entry[2].overlaps(box):
                    kept.append(entry)
                elif not box.contains(entry[2]):
                    rests.extend((rest, entry[3]) for rest in entry[2].difference(box))
            if len(kept) != last - first:
                pieces[first:last] = kept
        for rest, value in rests:
            self.add(rest, value)

    def _windows(self, box: Box) -> Iterator[tuple[list[_Entry[Value]], int, int]]:
        """In every list, the positions between which pieces may overlap `box`."""
        for magnitude, pieces in self._lists.items():
            if not pieces:
                continue
            if not self._rank:
                yield pieces, 0, len(pieces)
                continue
            # Every piece here is shorter than 2 ** magnitude.
            first = bisect_left(pieces, (box.start[0] - (1 << magnitude) + 2,))
            last = bisect_left(pieces, (box.stop[0],), first)
            if first < last:
                yield pieces, first, last


def _start_and_age(piece: tuple[int, int, Box, object]) -> tuple[int, int]:
    return piece[0], piece[1]

"""Arrays that stay in a rank's memory between runs.

An array's number -> flat bytes of its whole index space, of which only the pages that the rank
touches take memory. Freed memory is used again: fresh pages can cost more than what is computed.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from avial_lab.runtime.rank.parcels import mapped_bytes

MOST_FREE_BYTES = 1 << 30
"""Of address space that is held for arrays to come."""


def touched_bytes(memory: np.ndarray) -> int:
    """Of whole pages, and what of its first and last page is its own; all of it where the system
    does not tell which are there.
    """
    if not memory.nbytes:
        return 0
    begin, page = memory.ctypes.data, mmap.PAGESIZE
    end, first = begin + memory.nbytes, begin - begin % page
    there = np.zeros(-(-(end - first) // page), np.uint8)
    try:
        ask = ctypes.CDLL(None).mincore
    except AttributeError:
        return memory.nbytes
    place, size = ctypes.c_void_p(first), ctypes.c_size_t(end - first)
    if ask(place, size, ctypes.c_void_p(there.ctypes.data)):
        return memory.nbytes
    own = np.full(there.size, page)
    own[0] -= begin - first
    own[-1] -= first + page * there.size - end
    return int(own[(there & 1) != 0].sum())


@dataclass
class Residents:
    """The resident arrays of this process by their numbers, which the client deals out. rank,
    ranks: whose rows, as loops are divided, are dense in memory.
    """

    rank: int = 0
    ranks: int = 1
    arrays: dict[int, np.ndarray] = field(default_factory=dict)
    free: dict[int, list[np.ndarray]] = field(default_factory=dict)

    def memory(self, number: int, nbytes: int) -> np.ndarray:
        """The memory of the array, made where it is new: its contents are then undefined."""
        if number not in self.arrays:
            again = self.free.get(nbytes)
            self.arrays[number] = again.pop() if again else self._made(nbytes)
        return self.arrays[number]

    def _made(self, nbytes: int) -> np.ndarray:
        first, end = (nbytes * r // self.ranks for r in (self.rank, self.rank + 1))
        return mapped_bytes(nbytes, dense=(first, end))

    def taken_bytes(self) -> int:
        """Of physical memory: pages that were touched, of arrays and of what is held for new
        ones.
        """
        free = (memory for those in self.free.values() for memory in those)
        return sum(map(touched_bytes, (*self.arrays.values(), *free)))

    def drop(self, numbers: Iterable[int]) -> None:
        """The memory of these arrays is free; one that was never touched here has none."""
        for number in numbers:
            memory = self.arrays.pop(number, None)
            if memory is None:
                continue
            held = sum(size * len(those) for size, those in self.free.items())
            if held + memory.nbytes <= MOST_FREE_BYTES:
                self.free.setdefault(memory.nbytes, []).append(memory)

"""How much memory arrays take on each rank.

Who holds what of them, as runs leave it -> bytes by rank, now and at most.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from avial_lab.core.table import Table
from avial_lab.core.words import brief, format_bytes
from avial_lab.runtime.rank.holders import Resident


@dataclass
class HeldBytes:
    """Of arrays that somebody has, by rank: parts and what was borrowed. peak: the most that there
    has been after a run.
    """

    live: dict[int, int] = field(default_factory=dict[int, int])
    peak: dict[int, int] = field(default_factory=dict[int, int])
    _of: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])

    def note(self, residents: Iterable[Resident]) -> None:
        """These are new, or lie in another way now."""
        for resident in residents:
            if resident.number not in self._of:
                weakref.finalize(resident, self._forget, resident.number)
            self._forget(resident.number)
            held = self._of[resident.number] = resident.held_bytes
            for rank, nbytes in held.items():
                self.live[rank] = self.live.get(rank, 0) + nbytes
        for rank, nbytes in self.live.items():
            if nbytes > self.peak.get(rank, 0):
                self.peak[rank] = nbytes

    def _forget(self, number: int) -> None:
        for rank, nbytes in self._of.pop(number, {}).items():
            self.live[rank] -= nbytes


@dataclass(frozen=True)
class MemoryUse:
    """Bytes by rank. live: of arrays that somebody has; peak: the most that these were after a run;
    taken: physical memory of whole pages, with that of forgotten arrays, which new ones get.
    """

    live: tuple[int, ...]
    peak: tuple[int, ...]
    taken: tuple[int, ...]

    @staticmethod
    def of(held: Sequence[HeldBytes], taken: Sequence[int]) -> MemoryUse:
        """held: of each device's arrays."""
        ranks = range(len(taken))
        return MemoryUse(
            tuple(sum(each.live.get(rank, 0) for each in held) for rank in ranks),
            tuple(sum(each.peak.get(rank, 0) for each in held) for rank in ranks),
            tuple(taken),
        )

    def __repr__(self) -> str:
        return brief(self, f"{format_bytes(sum(self.live))} of arrays")

    def __str__(self) -> str:
        rows = tuple(
            (str(rank), *map(format_bytes, of_rank))
            for rank, of_rank in enumerate(zip(self.live, self.peak, self.taken, strict=True))
        )
        head = ("rank", "arrays", "at most", "physical")
        return str(Table("Memory of arrays", head, rows, frozenset(head)))

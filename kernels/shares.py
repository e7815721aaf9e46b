"""How a kernel's arrays are dealt to several ranks, for the peers that run on them.

Arguments, rank, ranks -> what that rank holds before the clock starts; what every rank holds
afterwards -> the results. A kernel's `peers_mpi.py` says it of each of its arrays:

    SHARES = {"C": ROWS, "A": ROWS, "B": ALL}     blocks of rows of C and A, B whole on every rank

Rows are the first dimension, dealt in blocks, rank 0 first. `peer_mpi.c` deals alike, by
`FIRST_ROW` and `FIRST_OF_TRIANGLE`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Comm = Any
"""mpi4py's communicator, which is imported on ranks only."""


@dataclass(frozen=True)
class Share:
    """rows: dealt in blocks; else every rank has the whole array, and rank 0's is the result.

    halo: so many rows more at either end, where the array has any: else the memory is there, and
    nothing in it. triangle: row i has i + 1 elements, and blocks are equal in these.
    """

    rows: bool = True
    halo: int = 0
    triangle: bool = False

    def first(self, extent: int, rank: int, ranks: int) -> int:
        """The first row of that rank's block.

        >>> [ROWS.first(10, rank, 3) for rank in range(4)]
        [0, 3, 6, 10]
        >>> [TRIANGLE.first(10, rank, 2) for rank in range(3)]
        [0, 7, 10]
        """
        if self.triangle:
            return int(extent * math.sqrt(rank / ranks))
        return extent * rank // ranks

    def of(self, array: np.ndarray, rank: int, ranks: int) -> np.ndarray:
        """What the rank holds of it, a copy."""
        if not self.rows:
            return array.copy()
        extent = len(array)
        low, high = (self.first(extent, r, ranks) for r in (rank, rank + 1))
        held = np.zeros((high - low + 2 * self.halo, *array.shape[1:]), array.dtype)
        start, stop = max(low - self.halo, 0), min(high + self.halo, extent)
        held[start - low + self.halo : stop - low + self.halo] = array[start:stop]
        return held

    def whole(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """The array from what the ranks hold of it."""
        if not self.rows:
            return parts[0]
        return np.concatenate([part[self.halo : len(part) - self.halo] for part in parts])


ALL = Share(rows=False)
ROWS = Share()
TRIANGLE = Share(triangle=True)
WITH_HALO = Share(halo=1)


def dealt(
    shares: Mapping[str, Share], arguments: Mapping[str, Any], rank: int, ranks: int
) -> dict[str, Any]:
    """A rank's own arguments."""
    return {
        name: shares[name].of(value, rank, ranks) if isinstance(value, np.ndarray) else value
        for name, value in arguments.items()
    }


def collected(
    shares: Mapping[str, Share], parts: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """The arrays from those of all ranks."""
    return {name: shares[name].whole([part[name] for part in parts]) for name in parts[0]}


def exchange(comm: Comm, held: np.ndarray) -> None:
    """Neighbours give each other their first and last own rows, of an array WITH_HALO; `comm` is
    mpi4py's.
    """
    rank, ranks = comm.rank, comm.size
    requests = []
    if rank > 0:
        requests += [comm.Irecv(held[0], rank - 1, 0), comm.Isend(held[1], rank - 1, 1)]
    if rank < ranks - 1:
        requests += [comm.Irecv(held[-1], rank + 1, 1), comm.Isend(held[-2], rank + 1, 0)]
    for request in requests:
        request.Wait()

"""heat-3d on several ranks: planes each, with one more at either end that its neighbour sends."""

from __future__ import annotations

import numpy as np

from kernels.shares import WITH_HALO, Comm, exchange

SHARES = {"A": WITH_HALO, "B": WITH_HALO}


def arrays(comm: Comm, tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    n = A.shape[1]
    low, high = (WITH_HALO.first(n, r, comm.size) for r in (comm.rank, comm.rank + 1))
    first = 2 if low == 0 else 1
    last = high - low - 1 if high == n else high - low
    here, there, back = slice(first, last + 1), slice(first + 1, last + 2), slice(first - 1, last)
    inner = slice(1, -1)
    for a, b in ((A, B), (B, A)) * int(tsteps):
        exchange(comm, a)
        twice = 2.0 * a[here, inner, inner]
        total = 0.125 * (a[there, inner, inner] - twice + a[back, inner, inner])
        total += 0.125 * (a[here, 2:, inner] - twice + a[here, :-2, inner])
        total += 0.125 * (a[here, inner, 2:] - twice + a[here, inner, :-2])
        np.add(total, a[here, inner, inner], out=b[here, inner, inner])

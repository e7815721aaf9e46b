"""syr2k on several ranks: rows of C with equal shares of its triangle, all of A and B."""

from __future__ import annotations

import numpy as np

from kernels.shares import ALL, TRIANGLE, Comm

SHARES = {"C": TRIANGLE, "A": ALL, "B": ALL}


def arrays(
    comm: Comm, alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray
) -> None:
    n = len(A)
    low, high = (TRIANGLE.first(n, rank, comm.size) for rank in (comm.rank, comm.rank + 1))
    product = B[low:high] @ A[:high].T
    product += A[low:high] @ B[:high].T
    product *= alpha
    product += beta * C[:, :high]
    below = np.tri(high - low, high, low, dtype=bool)
    np.copyto(C[:, :high], product, where=below)

"""`loops` for Numba, one thread: nothing is independent; NumPy has no such sweep."""

from __future__ import annotations

import numpy as np


def loops(tsteps: int, A: np.ndarray) -> None:
    n = A.shape[0]
    nine = A.dtype.type(9)
    for _ in range(tsteps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                total = A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
                total = total + A[i, j - 1] + A[i, j] + A[i, j + 1]
                total = total + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
                A[i, j] = total / nine

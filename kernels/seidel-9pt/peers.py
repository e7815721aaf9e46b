"""`loops` for Numba, one thread: nothing is independent; NumPy has no such sweep."""

from __future__ import annotations

import numpy as np


def loops(tsteps: int, W: np.ndarray, A: np.ndarray) -> None:
    nx, ny = A.shape
    zero = A.dtype.type(0)
    for _ in range(tsteps):
        for i in range(1, nx - 1):
            for j in range(1, ny - 1):
                total = zero
                for p in range(3):
                    for q in range(3):
                        total += W[p, q] * A[i + p - 1, j + q - 1]
                A[i, j] = total

"""`loops` for Numba; `arrays` for NumPy, one weight after the other."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(W: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    nx, ny, nz = A.shape
    zero = A.dtype.type(0)
    for i in prange(1, nx - 1):
        for j in range(1, ny - 1):
            for k in range(1, nz - 1):
                total = zero
                for p in range(3):
                    for q in range(3):
                        for r in range(3):
                            total += W[p, q, r] * A[i + p - 1, j + q - 1, k + r - 1]
                B[i, j, k] = total


def arrays(W: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    nx, ny, nz = A.shape
    inner = B[1:-1, 1:-1, 1:-1]
    inner[...] = 0
    for (p, q, r), weight in np.ndenumerate(W):
        inner += weight * A[p : nx - 2 + p, q : ny - 2 + q, r : nz - 2 + r]

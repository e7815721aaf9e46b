"""`loops` for Numba, column by column; `arrays` for NumPy, its LAPACK."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(A: np.ndarray) -> None:
    n = A.shape[0]
    for j in range(n):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        A[j, j] = np.sqrt(pivot)
        for i in prange(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / A[j, j]


def arrays(A: np.ndarray) -> None:
    np.copyto(A, np.linalg.cholesky(A), where=np.tri(A.shape[0], dtype=bool))

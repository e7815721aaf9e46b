"""`loops` for Numba, dot products of rows; `arrays` for NumPy, the whole C and its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray) -> None:
    for i in prange(C.shape[0]):
        for j in range(i + 1):
            total = beta * C[i, j]
            for k in range(A.shape[1]):
                total += alpha * A[i, k] * A[j, k]
            C[i, j] = total


def arrays(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray) -> None:
    product = A @ A.T
    product *= alpha
    product += beta * C
    np.copyto(C, product, where=np.tri(C.shape[0], dtype=bool))

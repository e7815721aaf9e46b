"""`loops` for Numba, blocks of rows with a sum each; `arrays` for NumPy and its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(x1: np.ndarray, x2: np.ndarray, y_1: np.ndarray, y_2: np.ndarray, A: np.ndarray) -> None:
    n = A.shape[0]
    sums = np.zeros((BLOCKS, n), A.dtype)
    for block in prange(BLOCKS):
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            total = x1[i]
            for j in range(n):
                total += A[i, j] * y_1[j]
                sums[block, j] += A[i, j] * y_2[i]
            x1[i] = total
    for block in range(BLOCKS):
        for j in range(n):
            x2[j] += sums[block, j]


def arrays(x1: np.ndarray, x2: np.ndarray, y_1: np.ndarray, y_2: np.ndarray, A: np.ndarray) -> None:
    x1 += A @ y_1
    x2 += y_2 @ A

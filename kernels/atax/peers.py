"""`loops` for Numba, blocks of rows with a sum each; `arrays` for NumPy and its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(A: np.ndarray, x: np.ndarray, y: np.ndarray, tmp: np.ndarray) -> None:
    m, n = A.shape
    zero = y.dtype.type(0)
    sums = np.zeros((BLOCKS, n), y.dtype)
    for block in prange(BLOCKS):
        for i in range(block * m // BLOCKS, (block + 1) * m // BLOCKS):
            total = zero
            for j in range(n):
                total += A[i, j] * x[j]
            tmp[i] = total
            for j in range(n):
                sums[block, j] += A[i, j] * total
    for j in range(n):
        y[j] = zero
    for block in range(BLOCKS):
        for j in range(n):
            y[j] += sums[block, j]


def arrays(A: np.ndarray, x: np.ndarray, y: np.ndarray, tmp: np.ndarray) -> None:
    np.matmul(A, x, out=tmp)
    np.matmul(tmp, A, out=y)

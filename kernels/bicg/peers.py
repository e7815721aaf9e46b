"""`loops` for Numba, blocks of rows with a sum each; `arrays` for NumPy and its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(A: np.ndarray, s: np.ndarray, q: np.ndarray, p: np.ndarray, r: np.ndarray) -> None:
    n, m = A.shape
    zero = s.dtype.type(0)
    sums = np.zeros((BLOCKS, m), s.dtype)
    for block in prange(BLOCKS):
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            total = zero
            for j in range(m):
                total += A[i, j] * p[j]
                sums[block, j] += r[i] * A[i, j]
            q[i] = total
    for j in range(m):
        s[j] = zero
    for block in range(BLOCKS):
        for j in range(m):
            s[j] += sums[block, j]


def arrays(A: np.ndarray, s: np.ndarray, q: np.ndarray, p: np.ndarray, r: np.ndarray) -> None:
    np.matmul(r, A, out=s)
    np.matmul(A, p, out=q)

"""`loops` for Numba; `arrays` for NumPy, slices."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    n = A.shape[0]
    fifth = A.dtype.type(0.2)
    for _ in range(tsteps):
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                total = A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j]
                B[i, j] = fifth * total
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                total = B[i, j] + B[i, j - 1] + B[i, j + 1] + B[i + 1, j] + B[i - 1, j]
                A[i, j] = fifth * total


def arrays(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    inner = slice(1, -1)
    for a, b in ((A, B), (B, A)) * tsteps:
        total = a[inner, inner] + a[inner, :-2] + a[inner, 2:] + a[2:, inner] + a[:-2, inner]
        np.multiply(total, 0.2, out=b[inner, inner])

"""`loops` for Numba; `arrays` for NumPy, slices."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    n = A.shape[0]
    third = A.dtype.type(0.33333)
    for _ in range(tsteps):
        for i in prange(1, n - 1):
            B[i] = third * (A[i - 1] + A[i] + A[i + 1])
        for i in prange(1, n - 1):
            A[i] = third * (B[i - 1] + B[i] + B[i + 1])


def arrays(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    for _ in range(tsteps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])

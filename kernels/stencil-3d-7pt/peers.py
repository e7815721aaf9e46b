"""`loops` for Numba; `arrays` for NumPy, slices."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(tsteps: int, alpha: np.generic, beta: np.generic, A: np.ndarray, B: np.ndarray) -> None:
    nx, ny, nz = A.shape
    for _ in range(tsteps):
        for i in prange(1, nx - 1):
            for j in range(1, ny - 1):
                for k in range(1, nz - 1):
                    around = A[i - 1, j, k] + A[i + 1, j, k] + A[i, j - 1, k]
                    around = around + A[i, j + 1, k] + A[i, j, k - 1] + A[i, j, k + 1]
                    B[i, j, k] = alpha * A[i, j, k] + beta * around
        for i in prange(1, nx - 1):
            for j in range(1, ny - 1):
                for k in range(1, nz - 1):
                    around = B[i - 1, j, k] + B[i + 1, j, k] + B[i, j - 1, k]
                    around = around + B[i, j + 1, k] + B[i, j, k - 1] + B[i, j, k + 1]
                    A[i, j, k] = alpha * B[i, j, k] + beta * around


def arrays(tsteps: int, alpha: np.generic, beta: np.generic, A: np.ndarray, B: np.ndarray) -> None:
    inner = slice(1, -1)
    for a, b in ((A, B), (B, A)) * tsteps:
        around = a[:-2, inner, inner] + a[2:, inner, inner]
        around += a[inner, :-2, inner]
        around += a[inner, 2:, inner]
        around += a[inner, inner, :-2]
        around += a[inner, inner, 2:]
        around *= beta
        np.add(around, alpha * a[inner, inner, inner], out=b[inner, inner, inner])

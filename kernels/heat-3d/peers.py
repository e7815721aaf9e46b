"""`loops` for Numba; `arrays` for NumPy, slices."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    n = A.shape[0]
    two, eighth = A.dtype.type(2), A.dtype.type(0.125)
    for _ in range(tsteps):
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    twice = two * A[i, j, k]
                    B[i, j, k] = (
                        eighth * (A[i + 1, j, k] - twice + A[i - 1, j, k])
                        + eighth * (A[i, j + 1, k] - twice + A[i, j - 1, k])
                        + eighth * (A[i, j, k + 1] - twice + A[i, j, k - 1])
                        + A[i, j, k]
                    )
        for i in prange(1, n - 1):
            for j in range(1, n - 1):
                for k in range(1, n - 1):
                    twice = two * B[i, j, k]
                    A[i, j, k] = (
                        eighth * (B[i + 1, j, k] - twice + B[i - 1, j, k])
                        + eighth * (B[i, j + 1, k] - twice + B[i, j - 1, k])
                        + eighth * (B[i, j, k + 1] - twice + B[i, j, k - 1])
                        + B[i, j, k]
                    )


def arrays(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    inner = slice(1, -1)
    for a, b in ((A, B), (B, A)) * tsteps:
        twice = 2.0 * a[inner, inner, inner]
        total = 0.125 * (a[2:, inner, inner] - twice + a[:-2, inner, inner])
        total += 0.125 * (a[inner, 2:, inner] - twice + a[inner, :-2, inner])
        total += 0.125 * (a[inner, inner, 2:] - twice + a[inner, inner, :-2])
        np.add(total, a[inner, inner, inner], out=b[inner, inner, inner])

"""`loops` for Numba, row by row; `arrays` for NumPy, two products of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(
    alpha: np.generic,
    beta: np.generic,
    A: np.ndarray,
    B: np.ndarray,
    tmp: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    zero = y.dtype.type(0)
    for i in prange(y.shape[0]):
        first, second = zero, zero
        for j in range(x.shape[0]):
            first += A[i, j] * x[j]
            second += B[i, j] * x[j]
        tmp[i] = first
        y[i] = alpha * first + beta * second


def arrays(
    alpha: np.generic,
    beta: np.generic,
    A: np.ndarray,
    B: np.ndarray,
    tmp: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    np.matmul(A, x, out=tmp)
    np.matmul(B, x, out=y)
    y *= beta
    y += alpha * tmp

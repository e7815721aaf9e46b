"""`loops` for Numba, blocks of rows with a sum each; `arrays` for NumPy and its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(
    alpha: np.generic,
    beta: np.generic,
    A: np.ndarray,
    u1: np.ndarray,
    v1: np.ndarray,
    u2: np.ndarray,
    v2: np.ndarray,
    w: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
) -> None:
    n = A.shape[0]
    sums = np.zeros((BLOCKS, n), A.dtype)
    for block in prange(BLOCKS):
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            part = beta * y[i]
            for j in range(n):
                A[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
                sums[block, j] += part * A[i, j]
    for block in range(BLOCKS):
        for j in range(n):
            x[j] += sums[block, j]
    for j in range(n):
        x[j] += z[j]
    for i in prange(n):
        total = w[i]
        for j in range(n):
            total += alpha * A[i, j] * x[j]
        w[i] = total


def arrays(
    alpha: np.generic,
    beta: np.generic,
    A: np.ndarray,
    u1: np.ndarray,
    v1: np.ndarray,
    u2: np.ndarray,
    v2: np.ndarray,
    w: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
) -> None:
    A += np.outer(u1, v1)
    A += np.outer(u2, v2)
    x += beta * (y @ A)
    x += z
    w += alpha * (A @ x)


def scipy_arrays(
    alpha: np.generic,
    beta: np.generic,
    A: np.ndarray,
    u1: np.ndarray,
    v1: np.ndarray,
    u2: np.ndarray,
    v2: np.ndarray,
    w: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
) -> None:
    """Four calls of BLAS, in place: row by row A is Fortran's transposed A."""
    from scipy.linalg.blas import get_blas_funcs

    ger, gemv = get_blas_funcs(("ger", "gemv"), (A,))
    ger(1, v1, u1, a=A.T, overwrite_a=1)
    ger(1, v2, u2, a=A.T, overwrite_a=1)
    gemv(beta, A.T, y, beta=1, y=x, overwrite_y=1)
    x += z
    gemv(alpha, A.T, x, beta=1, y=w, trans=1, overwrite_y=1)

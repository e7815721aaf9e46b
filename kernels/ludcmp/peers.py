"""`loops` for Numba, rows below a step side by side; `arrays` for NumPy, dots of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(A: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    n = A.shape[0]
    for k in range(n):
        for i in prange(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k] = factor
            for j in range(k + 1, n):
                A[i, j] -= factor * A[k, j]
    for i in range(n):
        total = b[i]
        for j in range(i):
            total -= A[i, j] * y[j]
        y[i] = total
    for i in range(n - 1, -1, -1):
        total = y[i]
        for j in range(i + 1, n):
            total -= A[i, j] * x[j]
        x[i] = total / A[i, i]


def arrays(A: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    n = A.shape[0]
    for k in range(n):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k, k + 1 :]
    for i in range(n):
        y[i] = b[i] - A[i, :i] @ y[:i]
    for i in reversed(range(n)):
        x[i] = (y[i] - A[i, i + 1 :] @ x[i + 1 :]) / A[i, i]


def scipy_arrays(A: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """LAPACK's getrf and getrs; the diagonal is so heavy that no rows are exchanged."""
    from scipy.linalg.lapack import get_lapack_funcs

    getrf, getrs = get_lapack_funcs(("getrf", "getrs"), (A,))
    factors, pivots, _ = getrf(A)
    assert (pivots == np.arange(len(A))).all()
    A[...] = factors
    x[...] = getrs(factors, pivots, b)[0]

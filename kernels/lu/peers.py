"""`loops` for Numba, the rows below a step side by side; `arrays` for NumPy, step by step."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(A: np.ndarray) -> None:
    n = A.shape[0]
    for k in range(n):
        for i in prange(k + 1, n):
            factor = A[i, k] / A[k, k]
            A[i, k] = factor
            for j in range(k + 1, n):
                A[i, j] -= factor * A[k, j]


def arrays(A: np.ndarray) -> None:
    for k in range(A.shape[0]):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k, k + 1 :]


def scipy_arrays(A: np.ndarray) -> None:
    """LAPACK's getrf; the diagonal is so heavy that it never exchanges rows."""
    from scipy.linalg.lapack import get_lapack_funcs

    factors, pivots, _ = get_lapack_funcs("getrf", (A,))(A)
    assert (pivots == np.arange(len(A))).all()
    A[...] = factors

"""`loops` for Numba, column by column; `arrays` for NumPy, its LAPACK."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(A: np.ndarray) -> None:
    n = A.shape[0]
    for j in range(n):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        A[j, j] = np.sqrt(pivot)
        for i in prange(j + 1, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total / A[j, j]


def arrays(A: np.ndarray) -> None:
    np.copyto(A, np.linalg.cholesky(A), where=np.tri(A.shape[0], dtype=bool))


def scipy_arrays(A: np.ndarray) -> None:
    """LAPACK's potrf, in place: row by row the lower half is Fortran's upper one."""
    from scipy.linalg.lapack import get_lapack_funcs

    get_lapack_funcs("potrf", (A,))(A.T, lower=0, clean=0, overwrite_a=1)

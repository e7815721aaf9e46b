"""`loops` for Numba, dot products of rows; `arrays` for NumPy, the whole C and its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray) -> None:
    for i in prange(C.shape[0]):
        for j in range(i + 1):
            total = beta * C[i, j]
            for k in range(A.shape[1]):
                total += alpha * A[i, k] * A[j, k]
            C[i, j] = total


def arrays(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray) -> None:
    product = A @ A.T
    product *= alpha
    product += beta * C
    np.copyto(C, product, where=np.tri(C.shape[0], dtype=bool))


def scipy_arrays(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray) -> None:
    """One call of BLAS, in place: row by row C's lower half is Fortran's upper one."""
    from scipy.linalg.blas import get_blas_funcs

    syrk = get_blas_funcs("syrk", (A,))
    syrk(alpha, A.T, beta, C.T, trans=1, lower=0, overwrite_c=True)

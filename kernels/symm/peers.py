"""`loops` for Numba, row by row; `arrays` for NumPy, the whole A and one product of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    m = A.shape[0]
    for i in prange(m):
        for j in range(C.shape[1]):
            C[i, j] *= beta
        for k in range(m):
            left = alpha * (A[i, k] if k <= i else A[k, i])
            for j in range(C.shape[1]):
                C[i, j] += left * B[k, j]


def arrays(
    alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray
) -> None:
    whole = np.tril(A) + np.tril(A, -1).T
    C *= beta
    C += alpha * (whole @ B)


def scipy_arrays(
    alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray
) -> None:
    """One call of BLAS, in place: row by row C is Fortran's transposed C, and A its upper half."""
    from scipy.linalg.blas import get_blas_funcs

    symm = get_blas_funcs("symm", (A,))
    symm(alpha, A.T, B.T, beta, C.T, side=1, lower=0, overwrite_c=True)

"""`loops` for Numba, row by row; `arrays` for NumPy, one product of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    for i in prange(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            left = alpha * A[i, k]
            for j in range(C.shape[1]):
                C[i, j] += left * B[k, j]


def arrays(
    alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray
) -> None:
    C *= beta
    C += alpha * (A @ B)


def scipy_arrays(
    alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray
) -> None:
    """One call of BLAS, in place: row by row C is Fortran's transposed C."""
    from scipy.linalg.blas import get_blas_funcs

    gemm = get_blas_funcs("gemm", (A,))
    gemm(alpha, B.T, A.T, beta, C.T, overwrite_c=True)

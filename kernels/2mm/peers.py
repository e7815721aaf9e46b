"""`loops` for Numba, row by row; `arrays` for NumPy, two products of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(
    alpha: np.generic,
    beta: np.generic,
    tmp: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
) -> None:
    zero = tmp.dtype.type(0)
    for i in prange(A.shape[0]):
        for j in range(B.shape[1]):
            tmp[i, j] = zero
        for k in range(A.shape[1]):
            left = alpha * A[i, k]
            for j in range(B.shape[1]):
                tmp[i, j] += left * B[k, j]
        for m in range(D.shape[1]):
            D[i, m] *= beta
        for j in range(B.shape[1]):
            for m in range(D.shape[1]):
                D[i, m] += tmp[i, j] * C[j, m]


def arrays(
    alpha: np.generic,
    beta: np.generic,
    tmp: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
) -> None:
    np.matmul(A, B, out=tmp)
    tmp *= alpha
    D *= beta
    D += tmp @ C


def scipy_arrays(
    alpha: np.generic,
    beta: np.generic,
    tmp: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
) -> None:
    """Two calls of BLAS, in place: row by row a matrix is Fortran's transposed one."""
    from scipy.linalg.blas import get_blas_funcs

    gemm = get_blas_funcs("gemm", (A,))
    np.matmul(A, B, out=tmp)
    gemm(alpha, C.T, tmp.T, beta, D.T, overwrite_c=True)

"""`loops` for Numba, the columns in blocks; `arrays` for NumPy, one product of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(alpha: np.generic, A: np.ndarray, B: np.ndarray) -> None:
    m, n = B.shape
    for block in prange(BLOCKS):
        first, last = block * n // BLOCKS, (block + 1) * n // BLOCKS
        for i in range(m):
            for k in range(i + 1, m):
                for j in range(first, last):
                    B[i, j] += A[k, i] * B[k, j]
            for j in range(first, last):
                B[i, j] *= alpha


def arrays(alpha: np.generic, A: np.ndarray, B: np.ndarray) -> None:
    B += np.tril(A, -1).T @ B
    B *= alpha


def scipy_arrays(alpha: np.generic, A: np.ndarray, B: np.ndarray) -> None:
    """One call of BLAS, in place: row by row B is Fortran's transposed B, and A its upper half."""
    from scipy.linalg.blas import get_blas_funcs

    trmm = get_blas_funcs("trmm", (A,))
    trmm(alpha, A.T, B.T, side=1, lower=0, trans_a=1, diag=1, overwrite_b=True)

"""`loops` for Numba, the columns in blocks; `arrays` for NumPy, a column at a time by its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(A: np.ndarray, R: np.ndarray, Q: np.ndarray) -> None:
    m, n = A.shape
    zero = A.dtype.type(0)
    for k in range(n):
        total = zero
        for i in range(m):
            total += A[i, k] * A[i, k]
        R[k, k] = np.sqrt(total)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for block in prange(BLOCKS):
            first = k + 1 + block * (n - k - 1) // BLOCKS
            last = k + 1 + (block + 1) * (n - k - 1) // BLOCKS
            for j in range(first, last):
                R[k, j] = zero
            for i in range(m):
                for j in range(first, last):
                    R[k, j] += Q[i, k] * A[i, j]
            for i in range(m):
                for j in range(first, last):
                    A[i, j] -= Q[i, k] * R[k, j]


def arrays(A: np.ndarray, R: np.ndarray, Q: np.ndarray) -> None:
    for k in range(A.shape[1]):
        R[k, k] = np.sqrt(A[:, k] @ A[:, k])
        Q[:, k] = A[:, k] / R[k, k]
        R[k, k + 1 :] = Q[:, k] @ A[:, k + 1 :]
        A[:, k + 1 :] -= Q[:, k, None] * R[k, k + 1 :]


def scipy_arrays(A: np.ndarray, R: np.ndarray, Q: np.ndarray) -> None:
    """LAPACK's QR by reflections, with R's diagonal made positive; columns behind the first M are
    noise whoever makes them, and 0 here.
    """
    from scipy.linalg import qr

    m, n = A.shape
    full = min(m, n)
    q, r = qr(A, mode="economic", check_finite=False)
    signs = np.where(np.diagonal(r) < 0, -1, 1).astype(A.dtype)
    Q[:, :full], Q[:, full:] = q * signs, 0
    upper = np.zeros_like(R)
    upper[:full] = r * signs[:, None]
    np.copyto(R, upper, where=~np.tri(n, k=-1, dtype=bool))
    A[:, :full], A[:, full:] = Q[:, :full] * np.diagonal(upper)[:full], 0

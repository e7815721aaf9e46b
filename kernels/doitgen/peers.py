"""`loops` for Numba, a row of its own for each r; `arrays` for NumPy, one product of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(A: np.ndarray, C4: np.ndarray, sum: np.ndarray) -> None:
    nr, nq, np_ = A.shape
    for r in prange(nr):
        row = np.empty(np_, A.dtype)
        for q in range(nq):
            for p in range(np_):
                row[p] = 0
            for s in range(np_):
                for p in range(np_):
                    row[p] += A[r, q, s] * C4[s, p]
            for p in range(np_):
                A[r, q, p] = row[p]
    for p in range(np_):
        sum[p] = A[nr - 1, nq - 1, p]


def arrays(A: np.ndarray, C4: np.ndarray, sum: np.ndarray) -> None:
    flat = A.reshape(-1, A.shape[2])
    flat[...] = flat @ C4
    sum[...] = flat[-1]

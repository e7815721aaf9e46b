"""`loops` for Numba; `arrays` for NumPy, the whole matrix by its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(float_n: np.generic, data: np.ndarray, cov: np.ndarray, mean: np.ndarray) -> None:
    n, m = data.shape
    zero, one = data.dtype.type(0), data.dtype.type(1)
    for j in prange(m):
        total = zero
        for i in range(n):
            total += data[i, j]
        mean[j] = total / float_n
    for i in prange(n):
        for j in range(m):
            data[i, j] -= mean[j]
    for i in prange(m):
        for j in range(i, m):
            cov[i, j] = zero
        for k in range(n):
            for j in range(i, m):
                cov[i, j] += data[k, i] * data[k, j]
        for j in range(i, m):
            cov[i, j] /= float_n - one
            cov[j, i] = cov[i, j]


def arrays(float_n: np.generic, data: np.ndarray, cov: np.ndarray, mean: np.ndarray) -> None:
    np.divide(data.sum(axis=0), float_n, out=mean)
    data -= mean
    np.matmul(data.T, data, out=cov)
    cov /= float_n - 1

"""`loops` for Numba; `arrays` for NumPy, the whole matrix by its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(
    float_n: np.generic, data: np.ndarray, corr: np.ndarray, mean: np.ndarray, stddev: np.ndarray
) -> None:
    n, m = data.shape
    zero, one, least = data.dtype.type(0), data.dtype.type(1), data.dtype.type(0.1)
    root = np.sqrt(float_n)
    for j in prange(m):
        total = zero
        for i in range(n):
            total += data[i, j]
        mean[j] = total / float_n
        total = zero
        for i in range(n):
            total += (data[i, j] - mean[j]) * (data[i, j] - mean[j])
        stddev[j] = np.sqrt(total / float_n)
        if stddev[j] <= least:
            stddev[j] = one
    for i in prange(n):
        for j in range(m):
            data[i, j] = (data[i, j] - mean[j]) / (root * stddev[j])
    for i in prange(m):
        corr[i, i] = one
        for j in range(i + 1, m):
            corr[i, j] = zero
        for k in range(n):
            for j in range(i + 1, m):
                corr[i, j] += data[k, i] * data[k, j]
        for j in range(i + 1, m):
            corr[j, i] = corr[i, j]


def arrays(
    float_n: np.generic, data: np.ndarray, corr: np.ndarray, mean: np.ndarray, stddev: np.ndarray
) -> None:
    np.divide(data.sum(axis=0), float_n, out=mean)
    np.sqrt(((data - mean) ** 2).sum(axis=0) / float_n, out=stddev)
    stddev[stddev <= data.dtype.type(0.1)] = 1
    data -= mean
    data /= np.sqrt(float_n) * stddev
    np.matmul(data.T, data, out=corr)
    np.fill_diagonal(corr, 1)

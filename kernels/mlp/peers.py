"""`loops` for Numba, one row of the batch by one; `arrays` for NumPy, products of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(
    x: np.ndarray,
    w1: np.ndarray,
    b1: np.ndarray,
    w2: np.ndarray,
    b2: np.ndarray,
    h: np.ndarray,
    y: np.ndarray,
) -> None:
    zero = h.dtype.type(0)
    for i in prange(x.shape[0]):
        for j in range(h.shape[1]):
            h[i, j] = b1[j]
        for k in range(x.shape[1]):
            for j in range(h.shape[1]):
                h[i, j] += x[i, k] * w1[k, j]
        for j in range(h.shape[1]):
            h[i, j] = max(h[i, j], zero)
        for o in range(y.shape[1]):
            y[i, o] = b2[o]
        for k in range(h.shape[1]):
            for o in range(y.shape[1]):
                y[i, o] += h[i, k] * w2[k, o]


def arrays(
    x: np.ndarray,
    w1: np.ndarray,
    b1: np.ndarray,
    w2: np.ndarray,
    b2: np.ndarray,
    h: np.ndarray,
    y: np.ndarray,
) -> None:
    np.matmul(x, w1, out=h)
    h += b1
    np.maximum(h, 0, out=h)
    np.matmul(h, w2, out=y)
    y += b2

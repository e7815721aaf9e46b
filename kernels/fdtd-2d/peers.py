"""`loops` for Numba, ey and ex in one sweep; `arrays` for NumPy, slices."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(ex: np.ndarray, ey: np.ndarray, hz: np.ndarray, fict: np.ndarray) -> None:
    nx, ny = hz.shape
    half, most = hz.dtype.type(0.5), hz.dtype.type(0.7)
    for t in range(fict.shape[0]):
        for i in prange(nx):
            if i == 0:
                for j in range(ny):
                    ey[0, j] = fict[t]
            else:
                for j in range(ny):
                    ey[i, j] -= half * (hz[i, j] - hz[i - 1, j])
            for j in range(1, ny):
                ex[i, j] -= half * (hz[i, j] - hz[i, j - 1])
        for i in prange(nx - 1):
            for j in range(ny - 1):
                hz[i, j] -= most * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


def arrays(ex: np.ndarray, ey: np.ndarray, hz: np.ndarray, fict: np.ndarray) -> None:
    for now in fict:
        ey[0] = now
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])

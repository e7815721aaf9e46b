"""`loops` for Numba, no threads: the loops inside the recursion are short; `arrays` for NumPy."""

from __future__ import annotations

import numpy as np


def loops(r: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    one = r.dtype.type(1)
    y[0] = -r[0]
    alpha, beta = -r[0], one
    for k in range(1, r.shape[0]):
        beta *= one - alpha * alpha
        total = r[k]
        for i in range(k):
            total += r[k - i - 1] * y[i]
        alpha = -total / beta
        for i in range(k):
            z[i] = y[i] + alpha * y[k - i - 1]
        for i in range(k):
            y[i] = z[i]
        y[k] = alpha


def arrays(r: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    y[0] = -r[0]
    alpha, beta = -r[0], r.dtype.type(1)
    for k in range(1, len(r)):
        beta *= 1 - alpha * alpha
        alpha = -(r[k] + r[:k][::-1] @ y[:k]) / beta
        z[:k] = y[:k] + alpha * y[:k][::-1]
        y[:k] = z[:k]
        y[k] = alpha


def scipy_arrays(r: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    """SciPy's Levinson recursion, in double precision; z is scratch."""
    from scipy.linalg import solve_toeplitz

    column = np.concatenate(([1], r[:-1]))
    y[...] = solve_toeplitz(column, -r, check_finite=False)

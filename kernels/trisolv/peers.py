"""`loops` for Numba, one thread: rows depend on each other; `arrays` for NumPy, row by row."""

from __future__ import annotations

import numpy as np


def loops(L: np.ndarray, x: np.ndarray, b: np.ndarray) -> None:
    for i in range(x.shape[0]):
        total = b[i]
        for j in range(i):
            total -= L[i, j] * x[j]
        x[i] = total / L[i, i]


def arrays(L: np.ndarray, x: np.ndarray, b: np.ndarray) -> None:
    for i in range(len(x)):
        x[i] = (b[i] - L[i, :i] @ x[:i]) / L[i, i]


def scipy_arrays(L: np.ndarray, x: np.ndarray, b: np.ndarray) -> None:
    """BLAS' trsv: row by row L is the transposed of Fortran's upper half."""
    from scipy.linalg.blas import get_blas_funcs

    x[...] = get_blas_funcs("trsv", (L,))(L.T, b, lower=0, trans=1)

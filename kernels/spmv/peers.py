"""`loops` for Numba, row by row; `arrays` for NumPy, sums between the starts of the rows."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray
) -> None:
    zero = y.dtype.type(0)
    for i in prange(y.shape[0]):
        total = zero
        for e in range(rows[i], rows[i + 1]):
            total += values[e] * x[columns[e]]
        y[i] = total


def arrays(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray
) -> None:
    filled = rows[:-1] < rows[1:]
    y[...] = 0
    # reduceat takes no empty row for 0, so they are left out
    y[filled] = np.add.reduceat(values * x[columns], rows[:-1][filled])


def scipy_arrays(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray
) -> None:
    """SciPy's sparse product."""
    from scipy.sparse import csr_array

    y[...] = csr_array((values, columns, rows), shape=(len(y), len(x))) @ x

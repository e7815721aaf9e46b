"""`loops` for Numba, one chain of additions; `arrays` for NumPy, its cumsum."""

from __future__ import annotations

import numpy as np


def loops(x: np.ndarray, sums: np.ndarray) -> None:
    total = x.dtype.type(0)
    for i in range(x.shape[0]):
        total += x[i]
        sums[i] = total


def arrays(x: np.ndarray, sums: np.ndarray) -> None:
    np.cumsum(x, dtype=x.dtype, out=sums)

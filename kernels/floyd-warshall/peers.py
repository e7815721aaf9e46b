"""`loops` for Numba, the rows of a step side by side; `arrays` for NumPy, step by step."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(path: np.ndarray) -> None:
    n = path.shape[0]
    for k in range(n):
        for i in prange(n):
            # no way is negative: row k is left as it is by its own step
            if i != k:
                there = path[i, k]
                for j in range(n):
                    path[i, j] = min(path[i, j], there + path[k, j])


def arrays(path: np.ndarray) -> None:
    for k in range(path.shape[0]):
        np.minimum(path, path[:, k, None] + path[k], out=path)

"""`loops` for Numba, blocks of values with counts each; `arrays` for NumPy, its bincount."""

from __future__ import annotations

import numpy as np

from kernels.parallel import BLOCKS, prange


def loops(data: np.ndarray, counts: np.ndarray) -> None:
    n, bins = data.shape[0], counts.shape[0]
    parts = np.zeros((BLOCKS, bins), counts.dtype)
    for block in prange(BLOCKS):
        for i in range(block * n // BLOCKS, (block + 1) * n // BLOCKS):
            parts[block, data[i]] += 1
    for b in range(bins):
        counts[b] = 0
    for block in range(BLOCKS):
        for b in range(bins):
            counts[b] += parts[block, b]


def arrays(data: np.ndarray, counts: np.ndarray) -> None:
    counts[...] = np.bincount(data, minlength=len(counts))

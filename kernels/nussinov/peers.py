"""`loops` for Numba, one thread, each head against all longer stretches; `arrays` for NumPy."""

from __future__ import annotations

import numpy as np


def loops(seq: np.ndarray, table: np.ndarray) -> None:
    n = table.shape[0]
    for i in range(n - 2, -1, -1):
        for k in range(i + 1, n):
            pair = 1 if k > i + 1 and seq[i] + seq[k] == 3 else 0
            best = max(table[i, k], table[i, k - 1])
            best = max(best, table[i + 1, k])
            best = max(best, table[i + 1, k - 1] + pair)
            table[i, k] = best
            for j in range(k + 1, n):
                table[i, j] = max(table[i, j], best + table[k + 1, j])


def arrays(seq: np.ndarray, table: np.ndarray) -> None:
    n = table.shape[0]
    for i in range(n - 2, -1, -1):
        # all but the left neighbour and the splits depends on the rows below only
        np.maximum(table[i, i + 1 :], table[i + 1, i + 1 :], out=table[i, i + 1 :])
        together = table[i + 1, i:-1] + (seq[i] + seq[i + 1 :] == 3)
        together[0] = table[i + 1, i]
        np.maximum(table[i, i + 1 :], together, out=table[i, i + 1 :])
        for k in range(i + 1, n):
            table[i, k] = best = max(table[i, k], table[i, k - 1])
            rest = table[i, k + 1 :]
            if len(rest):
                np.maximum(rest, best + table[k + 1, k + 1 :], out=rest)

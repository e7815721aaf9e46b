"""gemm on several ranks: rows of C and A each, all of B; no messages."""

from __future__ import annotations

import numpy as np

from kernels.shares import ALL, ROWS, Comm

SHARES = {"C": ROWS, "A": ROWS, "B": ALL}


def arrays(
    comm: Comm, alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray
) -> None:
    C *= beta
    C += alpha * (A @ B)

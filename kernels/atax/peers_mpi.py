"""atax on several ranks: rows of A each and all of x; y is summed at rank 0."""

from __future__ import annotations

import numpy as np

from kernels.shares import ALL, ROWS, Comm

SHARES = {"A": ROWS, "x": ALL, "y": ALL, "tmp": ROWS}


def arrays(comm: Comm, A: np.ndarray, x: np.ndarray, y: np.ndarray, tmp: np.ndarray) -> None:
    np.matmul(A, x, out=tmp)
    comm.Reduce(tmp @ A, y if comm.rank == 0 else None, root=0)

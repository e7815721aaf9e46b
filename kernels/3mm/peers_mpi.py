"""3mm on several ranks: rows of E, F and G each; F is gathered by all in between."""

from __future__ import annotations

import numpy as np

from kernels.shares import ALL, ROWS, Comm

SHARES = {"E": ROWS, "A": ROWS, "B": ALL, "F": ALL, "C": ROWS, "D": ALL, "G": ROWS}


def arrays(
    comm: Comm,
    E: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    F: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    G: np.ndarray,
) -> None:
    firsts = [ROWS.first(len(F), rank, comm.size) for rank in range(comm.size + 1)]
    counts = [(firsts[r + 1] - firsts[r]) * F.shape[1] for r in range(comm.size)]
    own = C @ D
    request = comm.Iallgatherv(own, [F, counts])
    np.matmul(A, B, out=E)
    request.Wait()
    np.matmul(E, F, out=G)

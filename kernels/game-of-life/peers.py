"""`loops` for Numba; `arrays` for NumPy, whole boards moved round the edges."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    rows, columns = A.shape
    for _ in range(tsteps):
        for i in prange(rows):
            up, down = (i + rows - 1) % rows, (i + 1) % rows
            for j in range(columns):
                left = j - 1 if j > 0 else columns - 1
                right = j + 1 if j < columns - 1 else 0
                around = A[up, left] + A[up, j] + A[up, right] + A[i, left]
                around += A[i, right] + A[down, left] + A[down, j] + A[down, right]
                B[i, j] = (around == 3) | ((around == 2) & (A[i, j] == 1))
        for i in prange(rows):
            up, down = (i + rows - 1) % rows, (i + 1) % rows
            for j in range(columns):
                left = j - 1 if j > 0 else columns - 1
                right = j + 1 if j < columns - 1 else 0
                around = B[up, left] + B[up, j] + B[up, right] + B[i, left]
                around += B[i, right] + B[down, left] + B[down, j] + B[down, right]
                A[i, j] = (around == 3) | ((around == 2) & (B[i, j] == 1))


def arrays(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    rows, columns = A.shape
    framed = np.empty((rows + 2, columns + 2), A.dtype)
    for source, dest in ((A, B), (B, A)) * tsteps:
        framed[1:-1, 1:-1] = source
        framed[0, 1:-1], framed[-1, 1:-1] = source[-1], source[0]
        framed[:, 0], framed[:, -1] = framed[:, -2], framed[:, 1]
        three = framed[:, :-2] + framed[:, 1:-1] + framed[:, 2:]
        around = three[:-2] + three[1:-1] + three[2:] - source
        np.copyto(dest, (around == 3) | ((around == 2) & (source == 1)))

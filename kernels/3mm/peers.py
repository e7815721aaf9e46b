"""`loops` for Numba, row by row; `arrays` for NumPy, three products of its BLAS."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(
    E: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    F: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    G: np.ndarray,
) -> None:
    zero = E.dtype.type(0)
    for i in prange(E.shape[0]):
        for j in range(E.shape[1]):
            E[i, j] = zero
        for k in range(A.shape[1]):
            for j in range(E.shape[1]):
                E[i, j] += A[i, k] * B[k, j]
    for i in prange(F.shape[0]):
        for j in range(F.shape[1]):
            F[i, j] = zero
        for k in range(C.shape[1]):
            for j in range(F.shape[1]):
                F[i, j] += C[i, k] * D[k, j]
    for i in prange(G.shape[0]):
        for j in range(G.shape[1]):
            G[i, j] = zero
        for k in range(E.shape[1]):
            for j in range(G.shape[1]):
                G[i, j] += E[i, k] * F[k, j]


def arrays(
    E: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    F: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    G: np.ndarray,
) -> None:
    np.matmul(A, B, out=E)
    np.matmul(C, D, out=F)
    np.matmul(E, F, out=G)

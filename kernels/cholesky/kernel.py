"""A = L · Lᵀ, L in place of A's lower triangle, the upper one neither read nor written."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, heavy_diagonal


def cholesky(A: np.ndarray) -> None:
    n = A.shape[0]
    upper = np.triu_indices(n, 1)
    untouched = A[upper].copy()
    for k in range(n):
        A[k, k] = np.sqrt(A[k, k])
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k + 1 :, k]
    A[upper] = untouched


KERNEL = Kernel(
    name="cholesky",
    arguments={"A": Array("N N", Role.INOUT, values=heavy_diagonal)},
    datasets=datasets("N", (40,), (120,), (400,), (2000,), (4000,)),
    compute=cholesky,
    flops=lambda s: s["N"] * (s["N"] - 1) * (s["N"] + 1) // 3 + s["N"] * (s["N"] - 1) // 2 + s["N"],
    dependences="nothing is parallel as written: row i needs the rows above it, A[i, j] the "
    "elements left of it; by columns (k outermost) the updates of all rows below are independent.",
)

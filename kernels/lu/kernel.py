"""A = L · U without pivoting, both in place of A (L's diagonal is 1 and not stored)."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, heavy_diagonal


def lu(A: np.ndarray) -> None:
    for k in range(A.shape[0]):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k, k + 1 :]


KERNEL = Kernel(
    name="lu",
    arguments={"A": Array("N N", Role.INOUT, values=heavy_diagonal)},
    datasets=datasets("N", (40,), (120,), (400,), (2000,), (4000,)),
    compute=lu,
    flops=lambda s: s["N"] * (s["N"] - 1) * (2 * s["N"] - 1) // 3 + s["N"] * (s["N"] - 1) // 2,
    dependences="the second j loop is parallel, the elements of row i of U are independent; i "
    "needs the rows above, the first j loop the elements left of A[i, j], k sums.",
)

"""A · x = b by LU without pivoting: factor, then y = L⁻¹ · b, then x = U⁻¹ · y."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, heavy_diagonal


def ludcmp(A: np.ndarray, b: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    n = A.shape[0]
    for k in range(n):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= A[k + 1 :, k, None] * A[k, k + 1 :]
    y[...] = b
    for j in range(n):
        y[j + 1 :] -= A[j + 1 :, j] * y[j]
    for i in reversed(range(n)):
        w = y[i]
        for j in range(i + 1, n):
            w = w - A[i, j] * x[j]
        x[i] = w / A[i, i]


KERNEL = Kernel(
    name="ludcmp",
    arguments={
        "A": Array("N N", Role.INOUT, values=heavy_diagonal),
        "b": Array("N"),
        "x": Array("N", Role.OUT),
        "y": Array("N", Role.SCRATCH),
    },
    datasets=datasets("N", (40,), (120,), (400,), (2000,), (4000,)),
    compute=ludcmp,
    flops=lambda s: (
        s["N"] * (s["N"] - 1) * (2 * s["N"] - 1) // 3
        + s["N"] * (s["N"] - 1) // 2
        + 2 * s["N"] * (s["N"] - 1)
        + s["N"]
    ),
    dependences="the loop that makes row i of U is parallel in j; i, the rest of the factorisation "
    "and both substitutions (each element needs those before it) are sequential, inner loops sum.",
)

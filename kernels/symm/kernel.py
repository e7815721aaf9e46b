"""C = alpha · A · B + beta · C, A symmetric and stored in its lower triangle."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def symm(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    for i in range(A.shape[0]):
        below = C[i].copy()
        below[...] = 0
        for k in range(i):
            C[k] += (alpha * B[i]) * A[i, k]
            below += B[k] * A[i, k]
        C[i] = beta * C[i] + (alpha * B[i]) * A[i, i] + alpha * below


KERNEL = Kernel(
    name="symm",
    arguments={
        "alpha": Scalar(),
        "beta": Scalar(),
        "C": Array("M N", Role.INOUT),
        "A": Array("M M"),
        "B": Array("M N"),
    },
    datasets=datasets("M N", (20, 30), (60, 80), (200, 240), (1000, 1200), (2000, 2600)),
    compute=symm,
    flops=lambda s: s["N"] * (5 * s["M"] * (s["M"] - 1) // 2 + 6 * s["M"]),
    dependences="j is parallel, the columns of C are independent; i is not: it adds to every "
    "C[k, j] with k < i, after row k's own i scaled it.",
    elements=("f32", "f64", "i32"),
)

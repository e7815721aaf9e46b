"""C = alpha · A · B + beta · C."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def gemm(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    C *= beta
    for k in range(A.shape[1]):
        C += (alpha * A[:, k, None]) * B[k]


KERNEL = Kernel(
    name="gemm",
    arguments={
        "alpha": Scalar(),
        "beta": Scalar(),
        "C": Array("NI NJ", Role.INOUT),
        "A": Array("NI NK"),
        "B": Array("NK NJ"),
    },
    datasets=datasets(
        "NI NJ NK",
        (20, 25, 30),
        (60, 70, 80),
        (200, 220, 240),
        (1000, 1100, 1200),
        (2000, 2300, 2600),
    ),
    compute=gemm,
    flops=lambda s: s["NI"] * s["NJ"] * (1 + 3 * s["NK"]),
    dependences="i and j are parallel, every element of C is its own sum; k adds to C[i, j] that "
    "the step before left, a sum reduction.",
    elements=("f32", "f64", "i32"),
)

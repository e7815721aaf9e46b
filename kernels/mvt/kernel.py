"""x1 += A · y_1 and x2 += Aᵀ · y_2."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets


def mvt(x1: np.ndarray, x2: np.ndarray, y_1: np.ndarray, y_2: np.ndarray, A: np.ndarray) -> None:
    for j in range(A.shape[0]):
        x1 += A[:, j] * y_1[j]
        x2 += A[j] * y_2[j]


KERNEL = Kernel(
    name="mvt",
    arguments={
        "x1": Array("N", Role.INOUT),
        "x2": Array("N", Role.INOUT),
        "y_1": Array("N"),
        "y_2": Array("N"),
        "A": Array("N N"),
    },
    datasets=datasets("N", (40,), (120,), (400,), (2000,), (4000,)),
    compute=mvt,
    flops=lambda s: 4 * s["N"] ** 2,
    dependences="i is parallel in both nests, j sums; the nests are independent, the first reads A "
    "by rows and the second by columns.",
    elements=("f32", "f64", "i32"),
)

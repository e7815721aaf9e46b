"""y = Aᵀ · (A · x)."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets


def atax(A: np.ndarray, x: np.ndarray, y: np.ndarray, tmp: np.ndarray) -> None:
    tmp[...] = 0
    for j in range(A.shape[1]):
        tmp += A[:, j] * x[j]
    y[...] = 0
    for i in range(A.shape[0]):
        y += A[i] * tmp[i]


KERNEL = Kernel(
    name="atax",
    arguments={
        "A": Array("M N"),
        "x": Array("N"),
        "y": Array("N", Role.OUT),
        "tmp": Array("M", Role.SCRATCH),
    },
    datasets=datasets("M N", (38, 42), (116, 124), (390, 410), (1900, 2100), (1800, 2200)),
    compute=atax,
    flops=lambda s: 4 * s["M"] * s["N"],
    dependences="tmp is parallel in i; every i adds to all of y, so i is parallel only as an array "
    "reduction (or, after distribution, y is parallel in j and reads A by columns).",
    elements=("f32", "f64", "i32"),
)

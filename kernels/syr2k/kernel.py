"""C = alpha · A · Bᵀ + alpha · B · Aᵀ + beta · C, lower triangle."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def syr2k(alpha: np.generic, beta: np.generic, C: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    full = beta * C
    for k in range(A.shape[1]):
        full += (A[:, k] * alpha) * B[:, k, None] + (B[:, k] * alpha) * A[:, k, None]
    lower = np.tril_indices(C.shape[0])
    C[lower] = full[lower]


KERNEL = Kernel(
    name="syr2k",
    arguments={
        "alpha": Scalar(),
        "beta": Scalar(),
        "C": Array("N N", Role.INOUT),
        "A": Array("N M"),
        "B": Array("N M"),
    },
    datasets=datasets("M N", (20, 30), (60, 80), (200, 240), (1000, 1200), (2000, 2600)),
    compute=syr2k,
    flops=lambda s: s["N"] * (s["N"] + 1) // 2 * (1 + 6 * s["M"]),
    dependences="i and j <= i are parallel, every element of the triangle is its own sum over k; "
    "row i has i + 1 elements, so equal rows are unequal work.",
    elements=("f32", "f64", "i32"),
)

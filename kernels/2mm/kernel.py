"""D = alpha · A · B · C + beta · D."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def two_products(
    alpha: np.generic,
    beta: np.generic,
    tmp: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
) -> None:
    tmp[...] = 0
    for k in range(A.shape[1]):
        tmp += (alpha * A[:, k, None]) * B[k]
    D *= beta
    for k in range(tmp.shape[1]):
        D += tmp[:, k, None] * C[k]


KERNEL = Kernel(
    name="2mm",
    arguments={
        "alpha": Scalar(),
        "beta": Scalar(),
        "tmp": Array("NI NJ", Role.SCRATCH),
        "A": Array("NI NK"),
        "B": Array("NK NJ"),
        "C": Array("NJ NL"),
        "D": Array("NI NL", Role.INOUT),
    },
    datasets=datasets(
        "NI NJ NK NL",
        (16, 18, 22, 24),
        (40, 50, 70, 80),
        (180, 190, 210, 220),
        (800, 900, 1100, 1200),
        (1600, 1800, 2200, 2400),
    ),
    compute=two_products,
    flops=lambda s: s["NI"] * s["NJ"] * 3 * s["NK"] + s["NI"] * s["NL"] * (1 + 2 * s["NJ"]),
    dependences="i and j of both nests are parallel, k sums; row i of the second product needs "
    "row i of tmp and nothing else of it, so a split by rows sends no tmp.",
    elements=("f32", "f64", "i32"),
)

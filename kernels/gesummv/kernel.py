"""y = alpha · A · x + beta · B · x."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def gesummv(
    alpha: np.generic,
    beta: np.generic,
    A: np.ndarray,
    B: np.ndarray,
    tmp: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    tmp[...] = 0
    y[...] = 0
    for j in range(A.shape[1]):
        tmp += A[:, j] * x[j]
        y += B[:, j] * x[j]
    y[...] = alpha * tmp + beta * y


KERNEL = Kernel(
    name="gesummv",
    arguments={
        "alpha": Scalar(),
        "beta": Scalar(),
        "A": Array("N N"),
        "B": Array("N N"),
        "tmp": Array("N", Role.SCRATCH),
        "x": Array("N"),
        "y": Array("N", Role.OUT),
    },
    datasets=datasets("N", (30,), (90,), (250,), (1300,), (2800,)),
    compute=gesummv,
    flops=lambda s: s["N"] * (4 * s["N"] + 3),
    dependences="i is parallel, row by row; j carries the two sums of row i.",
    elements=("f32", "f64", "i32"),
)

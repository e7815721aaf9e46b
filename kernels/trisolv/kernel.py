"""L · x = b, L lower triangular."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, heavy_diagonal


def trisolv(L: np.ndarray, x: np.ndarray, b: np.ndarray) -> None:
    x[...] = b
    for j in range(L.shape[0]):
        x[j] = x[j] / L[j, j]
        x[j + 1 :] -= L[j + 1 :, j] * x[j]


KERNEL = Kernel(
    name="trisolv",
    arguments={
        "L": Array("N N", values=heavy_diagonal),
        "x": Array("N", Role.OUT),
        "b": Array("N"),
    },
    datasets=datasets("N", (40,), (120,), (400,), (2000,), (4000,)),
    compute=trisolv,
    flops=lambda s: s["N"] * s["N"],
    dependences="i is sequential, x[i] needs every x[j] before it; j sums; interchanged, the "
    "updates of all x[i] by one x[j] are parallel.",
)

"""A[r, q, :] = A[r, q, :] · C4, for every r and q."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets


def doitgen(A: np.ndarray, C4: np.ndarray, sum: np.ndarray) -> None:
    result = A.copy()
    result[...] = 0
    for s in range(C4.shape[0]):
        result += A[:, :, s, None] * C4[s]
    A[...] = result
    sum[...] = result[-1, -1]


KERNEL = Kernel(
    name="doitgen",
    arguments={
        "A": Array("NR NQ NP", Role.INOUT),
        "C4": Array("NP NP"),
        "sum": Array("NP", Role.SCRATCH),
    },
    datasets=datasets(
        "NQ NR NP", (8, 10, 12), (20, 25, 30), (40, 50, 60), (140, 150, 160), (220, 250, 270)
    ),
    compute=doitgen,
    flops=lambda s: 2 * s["NQ"] * s["NR"] * s["NP"] ** 2,
    dependences="r and q are parallel once sum, which they all reuse, is private to each; p is "
    "parallel inside each of the two loops, s sums.",
    elements=("f32", "f64", "i32"),
)

"""B = alpha · Aᵀ · B in place, A unit lower triangular."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def trmm(alpha: np.generic, A: np.ndarray, B: np.ndarray) -> None:
    for i in range(A.shape[0]):
        for k in range(i + 1, A.shape[0]):
            B[i] += A[k, i] * B[k]
        B[i] *= alpha


KERNEL = Kernel(
    name="trmm",
    arguments={"alpha": Scalar(), "A": Array("M M"), "B": Array("M N", Role.INOUT)},
    datasets=datasets("M N", (20, 30), (60, 80), (200, 240), (1000, 1200), (2000, 2600)),
    compute=trmm,
    flops=lambda s: s["N"] * (s["M"] * (s["M"] - 1) + s["M"]),
    dependences="j is parallel, the columns of B are independent; row i reads the rows below it "
    "before they are overwritten (i is sequential, an anti dependence), k sums.",
    elements=("f32", "f64", "i32"),
)

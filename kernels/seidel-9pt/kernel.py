"""A 3 × 3 filter W applied in place, row by row; the edges stay.

Unlike seidel-2d the plane is a rectangle, the weights are data and the nine points two inner loops.
The truth goes along the wavefronts 2 i + j = constant, drawn in seidel-2d.
"""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, between, datasets, size


def seidel_9pt(tsteps: int, W: np.ndarray, A: np.ndarray) -> None:
    rows, columns = A.shape
    for _ in range(tsteps):
        for line in range(3, 2 * (rows - 2) + columns - 1):
            first = max(1, (line - columns + 3) // 2)
            i = np.arange(first, min(rows - 2, (line - 1) // 2) + 1)
            j = line - 2 * i
            total = 0 * A[i, j]
            for p in range(3):
                for q in range(3):
                    total = total + W[p, q] * A[i + p - 1, j + q - 1]
            A[i, j] = total


KERNEL = Kernel(
    name="seidel-9pt",
    arguments={
        "tsteps": size("TSTEPS"),
        # together less than 1: the steps do not blow up
        "W": Array("3 3", values=between(0.01, 0.11)),
        "A": Array("NX NY", Role.INOUT),
    },
    datasets=datasets(
        "TSTEPS NX NY",
        (20, 40, 30),
        (40, 120, 100),
        (100, 400, 360),
        (500, 2000, 1800),
        (1000, 4000, 3600),
    ),
    compute=seidel_9pt,
    flops=lambda s: 18 * s["TSTEPS"] * max(s["NX"] - 2, 0) * max(s["NY"] - 2, 0),
    dependences="none of t, i, j is parallel: A[i, j] needs A[i, j-1] and A[i-1, j+1] of its own "
    "step; skewed, the points with equal 2 i + j are independent (a wavefront); p and q sum.",
    sweep=lambda s: s["TSTEPS"] * 2 * s["NX"] * s["NY"],
)

"""Nine-point averages in place, row by row: half the neighbours are new already, half still old.

The truth goes another way than the kernel, along the lines 2 i + j = constant, whose points are
independent:

    j ->  1 2 3 4 5 6
          3 4 5 6 7 8      the number is the step in which a point is made
    i     5 6 7 8 9 10
"""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, size


def seidel_2d(tsteps: int, A: np.ndarray) -> None:
    n = A.shape[0]
    for _ in range(tsteps):
        for line in range(3, 3 * (n - 2) + 1):
            i = np.arange(max(1, (line - n + 3) // 2), min(n - 2, (line - 1) // 2) + 1)
            j = line - 2 * i
            total = A[i - 1, j - 1] + A[i - 1, j] + A[i - 1, j + 1]
            total = total + A[i, j - 1] + A[i, j] + A[i, j + 1]
            total = total + A[i + 1, j - 1] + A[i + 1, j] + A[i + 1, j + 1]
            A[i, j] = total / 9


KERNEL = Kernel(
    name="seidel-2d",
    arguments={"tsteps": size("TSTEPS"), "A": Array("N N", Role.INOUT)},
    datasets=datasets("TSTEPS N", (20, 40), (40, 120), (100, 400), (500, 2000), (1000, 4000)),
    compute=seidel_2d,
    flops=lambda s: 9 * s["TSTEPS"] * max(s["N"] - 2, 0) ** 2,
    dependences="none of t, i, j is parallel: A[i, j] needs A[i, j-1] and A[i-1, j+1] of its own "
    "step; skewed, the points with equal 2 i + j are independent (a wavefront).",
    sweep=lambda s: s["TSTEPS"] * 2 * s["N"] ** 2,
)

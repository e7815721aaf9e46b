"""Three-point averages along a line, there and back between two arrays; the ends stay."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, size


def jacobi_1d(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    for _ in range(tsteps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])


KERNEL = Kernel(
    name="jacobi-1d",
    arguments={
        "tsteps": size("TSTEPS"),
        "A": Array("N", Role.INOUT),
        "B": Array("N", Role.INOUT),
    },
    datasets=datasets("TSTEPS N", (20, 30), (40, 120), (100, 400), (500, 2000), (1000, 4000)),
    compute=jacobi_1d,
    flops=lambda s: 6 * s["TSTEPS"] * max(s["N"] - 2, 0),
    dependences="i is parallel in both loops; t is sequential, a step reads what its neighbours "
    "wrote the step before: one element of halo on each side.",
    sweep=lambda s: s["TSTEPS"] * 4 * s["N"],
)

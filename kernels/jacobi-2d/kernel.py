"""Five-point averages in the plane, there and back between two arrays; the edges stay."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, size


def jacobi_2d(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    for _ in range(tsteps):
        B[1:-1, 1:-1] = _average(A)
        A[1:-1, 1:-1] = _average(B)


def _average(a: np.ndarray) -> np.ndarray:
    inner = slice(1, -1)
    return 0.2 * (a[inner, inner] + a[inner, :-2] + a[inner, 2:] + a[2:, inner] + a[:-2, inner])


KERNEL = Kernel(
    name="jacobi-2d",
    arguments={
        "tsteps": size("TSTEPS"),
        "A": Array("N N", Role.INOUT),
        "B": Array("N N", Role.INOUT),
    },
    datasets=datasets("TSTEPS N", (20, 30), (40, 90), (100, 250), (500, 1300), (1000, 2800)),
    compute=jacobi_2d,
    flops=lambda s: 10 * s["TSTEPS"] * max(s["N"] - 2, 0) ** 2,
    dependences="i and j are parallel in both nests; t is sequential, a step reads what its "
    "neighbours wrote the step before: one row or column of halo on each side, no corners.",
    sweep=lambda s: s["TSTEPS"] * 4 * s["N"] ** 2,
)

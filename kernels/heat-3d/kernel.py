"""The heat equation in a cube, explicit steps there and back between two arrays; the faces stay."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, size, stable


def heat_3d(tsteps: int, A: np.ndarray, B: np.ndarray) -> None:
    for _ in range(tsteps):
        B[1:-1, 1:-1, 1:-1] = _step(A)
        A[1:-1, 1:-1, 1:-1] = _step(B)


def _step(a: np.ndarray) -> np.ndarray:
    inner = slice(1, -1)
    centre = a[inner, inner, inner]
    return (
        0.125 * (a[2:, inner, inner] - 2.0 * centre + a[:-2, inner, inner])
        + 0.125 * (a[inner, 2:, inner] - 2.0 * centre + a[inner, :-2, inner])
        + 0.125 * (a[inner, inner, 2:] - 2.0 * centre + a[inner, inner, :-2])
        + centre
    )


KERNEL = Kernel(
    name="heat-3d",
    arguments={
        "tsteps": size("TSTEPS"),
        "A": Array("N N N", Role.INOUT),
        "B": Array("N N N", Role.INOUT),
    },
    datasets=datasets("TSTEPS N", (20, 10), (40, 20), (100, 40), (500, 120), (1000, 200)),
    compute=heat_3d,
    # 2 · centre is counted once, as the kernel has it
    flops=lambda s: 26 * s["TSTEPS"] * max(s["N"] - 2, 0) ** 3,
    dependences="i, j and k are parallel in both nests; t is sequential, a step reads what its six "
    "neighbours wrote the step before: one face of halo on each side, no edges or corners.",
    # both half steps are averages with weights that add up to 1
    tolerance=stable(lambda given: 32 * given["tsteps"]),
    sweep=lambda s: s["TSTEPS"] * 4 * s["N"] ** 3,
)

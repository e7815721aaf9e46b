"""Seven-point stencil in a box, alpha · centre + beta · Σ of six neighbours; the faces stay."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, between, datasets, size


def seven_points(
    tsteps: int, alpha: np.floating, beta: np.floating, A: np.ndarray, B: np.ndarray
) -> None:
    for _ in range(tsteps):
        B[1:-1, 1:-1, 1:-1] = _step(alpha, beta, A)
        A[1:-1, 1:-1, 1:-1] = _step(alpha, beta, B)


def _step(alpha: np.floating, beta: np.floating, a: np.ndarray) -> np.ndarray:
    inner = slice(1, -1)
    around = a[:-2, inner, inner] + a[2:, inner, inner]
    around = around + a[inner, :-2, inner] + a[inner, 2:, inner]
    around = around + a[inner, inner, :-2] + a[inner, inner, 2:]
    return alpha * a[inner, inner, inner] + beta * around


KERNEL = Kernel(
    name="stencil-3d-7pt",
    arguments={
        "tsteps": size("TSTEPS"),
        # |alpha| + 6 |beta| < 1: the steps do not blow up
        "alpha": Scalar(values=between(0.2, 0.3)),
        "beta": Scalar(values=between(0.09, 0.11)),
        "A": Array("NX NY NZ", Role.INOUT),
        "B": Array("NX NY NZ", Role.INOUT),
    },
    datasets=datasets(
        "TSTEPS NX NY NZ",
        (20, 8, 10, 12),
        (40, 18, 20, 22),
        (100, 36, 40, 44),
        (500, 110, 120, 130),
        (1000, 190, 200, 210),
    ),
    compute=seven_points,
    flops=lambda s: (
        16 * s["TSTEPS"] * max(s["NX"] - 2, 0) * max(s["NY"] - 2, 0) * max(s["NZ"] - 2, 0)
    ),
    dependences="i, j and k are parallel in both nests; t is sequential, a step reads what its six "
    "neighbours wrote the step before: one face of halo on each side, no edges or corners.",
    sweep=lambda s: s["TSTEPS"] * 4 * s["NX"] * s["NY"] * s["NZ"],
)

"""A += u1 · v1ᵀ + u2 · v2ᵀ;  x += beta · Aᵀ · y + z;  w += alpha · A · x."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def gemver(
    alpha: np.generic,
    beta: np.generic,
    A: np.ndarray,
    u1: np.ndarray,
    v1: np.ndarray,
    u2: np.ndarray,
    v2: np.ndarray,
    w: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    z: np.ndarray,
) -> None:
    A += u1[:, None] * v1
    A += u2[:, None] * v2
    for j in range(A.shape[0]):
        x += (beta * A[j]) * y[j]
    x += z
    for j in range(A.shape[0]):
        w += (alpha * A[:, j]) * x[j]


KERNEL = Kernel(
    name="gemver",
    arguments={
        "alpha": Scalar(),
        "beta": Scalar(),
        "A": Array("N N", Role.INOUT),
        "u1": Array("N"),
        "v1": Array("N"),
        "u2": Array("N"),
        "v2": Array("N"),
        "w": Array("N", Role.INOUT),
        "x": Array("N", Role.INOUT),
        "y": Array("N"),
        "z": Array("N"),
    },
    datasets=datasets("N", (40,), (120,), (400,), (2000,), (4000,)),
    compute=gemver,
    flops=lambda s: 10 * s["N"] ** 2 + s["N"],
    dependences="i is parallel in each of the four nests and j sums in the second and the fourth; "
    "the second reads A by columns, so a split by rows adds up x as an array reduction; w needs "
    "all of x.",
    elements=("f32", "f64", "i32"),
)

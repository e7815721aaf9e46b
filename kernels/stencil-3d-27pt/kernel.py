"""A 3 × 3 × 3 filter W over the inside of a box, once; B's faces are not written."""

from __future__ import annotations

from itertools import product

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets


def filter_27(W: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    nx, ny, nz = A.shape
    inner = B[1:-1, 1:-1, 1:-1]
    inner[...] = 0
    for p, q, r in product(range(3), repeat=3):
        inner += W[p, q, r] * A[p : nx - 2 + p, q : ny - 2 + q, r : nz - 2 + r]


KERNEL = Kernel(
    name="stencil-3d-27pt",
    arguments={
        "W": Array("3 3 3"),
        "A": Array("NX NY NZ"),
        "B": Array("NX NY NZ", Role.OUT),
    },
    datasets=datasets(
        "NX NY NZ", (8, 10, 12), (18, 20, 22), (36, 40, 44), (110, 120, 130), (190, 200, 210)
    ),
    compute=filter_27,
    flops=lambda s: 54 * max(s["NX"] - 2, 0) * max(s["NY"] - 2, 0) * max(s["NZ"] - 2, 0),
    dependences="i, j and k are parallel; p, q and r sum into B[i, j, k]; each point reads all its "
    "26 neighbours, so a split in several dimensions needs faces, edges and corners of A.",
    elements=("f32", "f64", "i32"),
)

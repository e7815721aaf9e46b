"""s = Aᵀ · r and q = A · p: the two products of a BiCG step."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets


def bicg(A: np.ndarray, s: np.ndarray, q: np.ndarray, p: np.ndarray, r: np.ndarray) -> None:
    s[...] = 0
    for i in range(A.shape[0]):
        s += r[i] * A[i]
    q[...] = 0
    for j in range(A.shape[1]):
        q += A[:, j] * p[j]


KERNEL = Kernel(
    name="bicg",
    arguments={
        "A": Array("N M"),
        "s": Array("M", Role.OUT),
        "q": Array("N", Role.OUT),
        "p": Array("M"),
        "r": Array("N"),
    },
    datasets=datasets("M N", (38, 42), (116, 124), (390, 410), (1900, 2100), (1800, 2200)),
    compute=bicg,
    flops=lambda s: 4 * s["M"] * s["N"],
    dependences="q is parallel in i and sums over j, s is parallel in j and sums over i; fused, i "
    "is parallel only with s as an array reduction.",
    elements=("f32", "f64", "i32"),
)

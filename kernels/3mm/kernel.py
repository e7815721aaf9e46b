"""G = (A · B) · (C · D)."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets


def three_products(
    E: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    F: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    G: np.ndarray,
) -> None:
    for result, left, right in ((E, A, B), (F, C, D), (G, E, F)):
        result[...] = 0
        for k in range(left.shape[1]):
            result += left[:, k, None] * right[k]


KERNEL = Kernel(
    name="3mm",
    arguments={
        "E": Array("NI NJ", Role.SCRATCH),
        "A": Array("NI NK"),
        "B": Array("NK NJ"),
        "F": Array("NJ NL", Role.SCRATCH),
        "C": Array("NJ NM"),
        "D": Array("NM NL"),
        "G": Array("NI NL", Role.OUT),
    },
    datasets=datasets(
        "NI NJ NK NL NM",
        (16, 18, 20, 22, 24),
        (40, 50, 60, 70, 80),
        (180, 190, 200, 210, 220),
        (800, 900, 1000, 1100, 1200),
        (1600, 1800, 2000, 2200, 2400),
    ),
    compute=three_products,
    flops=lambda s: (
        2
        * (s["NI"] * s["NJ"] * s["NK"] + s["NJ"] * s["NL"] * s["NM"] + s["NI"] * s["NL"] * s["NJ"])
    ),
    dependences="E and F are independent tasks, each parallel in i and j with k a sum; G needs row "
    "i of E and all of F, so a split by rows sends F to everyone once.",
    elements=("f32", "f64", "i32"),
)

"""Heat in a square by alternating directions (Peaceman-Rachford): a tridiagonal system down every
column, then one along every row, each by forward elimination and back substitution.
"""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets, size, stable


def adi(tsteps: int, u: np.ndarray, v: np.ndarray, p: np.ndarray, q: np.ndarray) -> None:
    n = u.shape[0]
    number = u.dtype.type
    dx, dt = 1 / number(n), 1 / number(tsteps)
    mul1, mul2 = 2 * dt / (dx * dx), dt / (dx * dx)
    a, b, d, e = -mul1 / 2, 1 + mul1, -mul2 / 2, 1 + mul2
    inner = slice(1, n - 1)
    for _ in range(tsteps):
        v[0, inner] = 1
        p[inner, 0] = 0
        q[inner, 0] = 1
        for j in range(1, n - 1):
            pivot = a * p[inner, j - 1] + b
            p[inner, j] = -a / pivot
            right = -d * u[j, : n - 2] + (1 + 2 * d) * u[j, inner] - d * u[j, 2:]
            q[inner, j] = (right - a * q[inner, j - 1]) / pivot
        v[n - 1, inner] = 1
        for j in range(n - 2, 0, -1):
            v[j, inner] = p[inner, j] * v[j + 1, inner] + q[inner, j]
        u[inner, 0] = 1
        p[inner, 0] = 0
        q[inner, 0] = 1
        for j in range(1, n - 1):
            pivot = d * p[inner, j - 1] + e
            p[inner, j] = -d / pivot
            right = -a * v[: n - 2, j] + (1 + 2 * a) * v[inner, j] - a * v[2:, j]
            q[inner, j] = (right - d * q[inner, j - 1]) / pivot
        u[inner, n - 1] = 1
        for j in range(n - 2, 0, -1):
            u[inner, j] = p[inner, j] * u[inner, j + 1] + q[inner, j]


KERNEL = Kernel(
    name="adi",
    arguments={
        "tsteps": size("TSTEPS"),
        "u": Array("N N", Role.INOUT),
        # the first and last columns of v, and rows and columns of p and q, are not touched
        "v": Array("N N", Role.SCRATCH),
        "p": Array("N N", Role.SCRATCH),
        "q": Array("N N", Role.SCRATCH),
    },
    datasets=datasets("TSTEPS N", (20, 20), (40, 60), (100, 200), (500, 1000), (1000, 2000)),
    compute=adi,
    flops=lambda s: 26 * s["TSTEPS"] * max(s["N"] - 2, 0) ** 2,
    dependences="i is parallel in both sweeps, columns then rows; j is a recurrence, forwards and "
    "back; t is sequential and the sweeps transpose: v is made by columns and read by rows.",
    # what the last right-hand sides round, with their weights up to 2 n² / steps, and the steps
    tolerance=stable(
        lambda given: 8 * (given["tsteps"] + 1 + 2 * len(given["u"]) ** 2 / given["tsteps"])
    ),
    sweep=lambda s: s["TSTEPS"] * 12 * s["N"] ** 2,
)

"""A = Q · R by modified Gram-Schmidt; R's strict lower triangle is not written.

The suite's own sizes have more columns than rows: after M columns what is left of A is rounding
noise, and so are the columns of Q made from it: the same bit for bit in the same order of sums, in
another one nothing alike.
"""

from __future__ import annotations

import numpy as np

from kernels.kernel import Arguments, Array, Kernel, Role, datasets


def gramschmidt(A: np.ndarray, R: np.ndarray, Q: np.ndarray) -> None:
    m, n = A.shape
    for k in range(n):
        norm2 = 0 * A[0, k]
        for i in range(m):
            norm2 = norm2 + A[i, k] * A[i, k]
        R[k, k] = np.sqrt(norm2)
        Q[:, k] = A[:, k] / R[k, k]
        R[k, k + 1 :] = 0
        for i in range(m):
            R[k, k + 1 :] += Q[i, k] * A[i, k + 1 :]
        A[:, k + 1 :] -= Q[:, k, None] * R[k, k + 1 :]


def _tolerance(arguments: Arguments, after: Arguments) -> dict[str, np.ndarray]:
    """Modified Gram-Schmidt is as good as the columns are independent (Björck 1967): the error is
    that of M-term sums times their condition. Q's elements are at most 1 whatever happens.
    """
    a = arguments["A"].astype(np.float64)
    m, n = a.shape
    full = min(m, n)
    eps = float(np.finfo(after["A"].dtype).eps)
    error = 2 * eps * m * float(np.linalg.cond(a[:, :full])) * float(np.linalg.norm(a, 2))
    q = np.full((m, n), min(error, 2.0))
    q[:, full:] = 2.0
    return {"A": np.full((m, n), error), "R": np.full((n, n), error), "Q": q}


KERNEL = Kernel(
    name="gramschmidt",
    arguments={
        "A": Array("M N", Role.INOUT),
        "R": Array("N N", Role.OUT),
        "Q": Array("M N", Role.OUT),
    },
    datasets=datasets("M N", (20, 30), (60, 80), (200, 240), (1000, 1200), (2000, 2600)),
    compute=gramschmidt,
    flops=lambda s: s["N"] * (3 * s["M"] + 1) + 4 * s["M"] * s["N"] * (s["N"] - 1) // 2,
    dependences="k is sequential; inside it the columns j > k are parallel, the norm and R[k, j] "
    "are sums over i, the other i loops are parallel.",
    tolerance=_tolerance,
)

"""Durbin: the Yule-Walker equations T · y = -r, T the symmetric Toeplitz matrix of 1, r[0], …"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernels.kernel import Array, Draw, Kernel, Role, datasets


def durbin(r: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    y[0] = -r[0]
    alpha, beta = -r[0], r.dtype.type(1)
    for k in range(1, len(r)):
        beta = (1 - alpha * alpha) * beta
        total = 0 * alpha
        for i in range(k):
            total = total + r[k - i - 1] * y[i]
        alpha = -(r[k] + total) / beta
        z[:k] = y[:k] + alpha * y[:k][::-1]
        y[:k] = z[:k]
        y[k] = alpha


def _small(draw: Draw) -> ArrayLike:
    """Together less than the 1 on T's diagonal, so that T is positive definite."""
    return draw.rng.uniform(-1, 1, draw.shape) * 0.75 / draw.shape[0]


KERNEL = Kernel(
    name="durbin",
    arguments={
        "r": Array("N", values=_small),
        "y": Array("N", Role.OUT),
        "z": Array("N", Role.SCRATCH),
    },
    datasets=datasets("N", (40,), (120,), (400,), (2000,), (4000,)),
    compute=durbin,
    flops=lambda s: 2 * s["N"] * (s["N"] - 1) + 6 * (s["N"] - 1),
    dependences="k is sequential through alpha, beta and y; inside it the sum over i is a "
    "reduction and the two loops that make z and copy it are parallel.",
)

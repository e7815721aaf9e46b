"""The covariance matrix of M variables, each observed N times; data is centred in place."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def covariance(float_n: np.floating, data: np.ndarray, cov: np.ndarray, mean: np.ndarray) -> None:
    mean[...] = 0
    for row in range(data.shape[0]):
        mean += data[row]
    mean /= float_n
    data -= mean
    cov[...] = 0
    for row in range(data.shape[0]):
        cov += data[row][:, None] * data[row]
    cov /= float_n - 1


KERNEL = Kernel(
    name="covariance",
    arguments={
        "float_n": Scalar(values=lambda draw: draw.sizes["N"]),
        "data": Array("N M", Role.INOUT),
        "cov": Array("M M", Role.OUT),
        "mean": Array("M", Role.SCRATCH),
    },
    datasets=datasets("M N", (28, 32), (80, 100), (240, 260), (1200, 1400), (2600, 3000)),
    compute=covariance,
    flops=lambda s: (
        s["M"] * (s["N"] + 1) + s["M"] * s["N"] + s["M"] * (s["M"] + 1) // 2 * (2 * s["N"] + 2)
    ),
    dependences="j is parallel in the sum for mean, i and j where data is centred; cov is parallel "
    "in i and j >= i, a triangle of sums over k whose mirror image is written too.",
)

"""The correlation matrix of M variables, each observed N times; data is normalised in place."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, datasets


def correlation(
    float_n: np.floating,
    data: np.ndarray,
    corr: np.ndarray,
    mean: np.ndarray,
    stddev: np.ndarray,
) -> None:
    mean[...] = 0
    for row in range(data.shape[0]):
        mean += data[row]
    mean /= float_n
    stddev[...] = 0
    for row in range(data.shape[0]):
        stddev += (data[row] - mean) * (data[row] - mean)
    stddev[...] = np.sqrt(stddev / float_n)
    stddev[stddev <= data.dtype.type(0.1)] = 1
    data -= mean
    data /= np.sqrt(float_n) * stddev
    corr[...] = 0
    for row in range(data.shape[0]):
        corr += data[row][:, None] * data[row]
    diagonal = np.arange(data.shape[1])
    corr[diagonal, diagonal] = 1


KERNEL = Kernel(
    name="correlation",
    arguments={
        "float_n": Scalar(values=lambda draw: draw.sizes["N"]),
        "data": Array("N M", Role.INOUT),
        "corr": Array("M M", Role.OUT),
        "mean": Array("M", Role.SCRATCH),
        "stddev": Array("M", Role.SCRATCH),
    },
    datasets=datasets("M N", (28, 32), (80, 100), (240, 260), (1200, 1400), (2600, 3000)),
    compute=correlation,
    flops=lambda s: (
        s["M"] * (s["N"] + 1)
        + s["M"] * (3 * s["N"] + 3)
        + 4 * s["M"] * s["N"]
        + s["M"] * (s["M"] - 1) // 2 * 2 * s["N"]
    ),
    dependences="j is parallel in the sums for mean and stddev, i and j where data is normalised; "
    "corr is parallel in i and j > i, a triangle of sums over k whose mirror image is written too.",
)

"""A perceptron of two layers: h = max(x · w1 + b1, 0), y = h · w2 + b2."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, datasets


def mlp(
    x: np.ndarray,
    w1: np.ndarray,
    b1: np.ndarray,
    w2: np.ndarray,
    b2: np.ndarray,
    h: np.ndarray,
    y: np.ndarray,
) -> None:
    h[...] = b1
    for k in range(x.shape[1]):
        h += x[:, k, None] * w1[k]
    h[...] = np.maximum(h, 0)
    y[...] = b2
    for k in range(h.shape[1]):
        y += h[:, k, None] * w2[k]


KERNEL = Kernel(
    name="mlp",
    arguments={
        "x": Array("BATCH IN"),
        "w1": Array("IN HIDDEN"),
        "b1": Array("HIDDEN"),
        "w2": Array("HIDDEN OUT"),
        "b2": Array("OUT"),
        "h": Array("BATCH HIDDEN", Role.SCRATCH),
        "y": Array("BATCH OUT", Role.OUT),
    },
    datasets=datasets(
        "BATCH IN HIDDEN OUT",
        (8, 20, 16, 10),
        (32, 80, 64, 10),
        (64, 784, 128, 10),
        (512, 1024, 2048, 1000),
        (2048, 2048, 4096, 1000),
    ),
    compute=mlp,
    flops=lambda s: (
        s["BATCH"] * (2 * s["IN"] * s["HIDDEN"] + s["HIDDEN"] + 2 * s["HIDDEN"] * s["OUT"])
    ),
    dependences="the rows of a batch are independent through all five operations; inside a layer "
    "the columns are parallel too, and the contracted dimension sums.",
    elements=("f32", "f64", "i32"),
)

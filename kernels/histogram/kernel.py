"""How often each of the values 0 … BINS - 1 occurs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernels.kernel import Array, Draw, Kernel, Role, datasets


def histogram(data: np.ndarray, counts: np.ndarray) -> None:
    counts[...] = np.bincount(data, minlength=len(counts))


def _values(draw: Draw) -> ArrayLike:
    """Towards the middle, so that the counts differ."""
    return draw.rng.beta(2, 2, draw.shape) * draw.sizes["BINS"]


KERNEL = Kernel(
    name="histogram",
    arguments={
        "data": Array("N", element="i32", values=_values),
        "counts": Array("BINS", Role.OUT),
    },
    datasets=datasets(
        "N BINS", (2000, 16), (20000, 64), (200000, 256), (4000000, 256), (20000000, 1024)
    ),
    compute=histogram,
    flops=lambda s: s["N"],
    dependences="b is parallel; two i may meet in one bin, known only at run time, so i is "
    "parallel only with counts as an array reduction.",
    elements=("i32", "i64"),
)

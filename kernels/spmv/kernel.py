"""y = A · x, A an N × M matrix in compressed rows (CSR) with NNZ entries.

Row i holds the entries rows[i] … rows[i+1] - 1; rows of none, and of very many, occur.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kernels.kernel import Array, Draw, Kernel, Role, datasets


def spmv(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray, y: np.ndarray
) -> None:
    """Entry by entry of every row at once: first all first entries, then all second ones."""
    y[...] = 0
    lengths = np.diff(rows)
    for nth in range(int(lengths.max(initial=0))):
        long = np.flatnonzero(lengths > nth)
        entry = rows[long] + nth
        y[long] += values[entry] * x[columns[entry]]


def _rows(draw: Draw) -> ArrayLike:
    entries = draw.sizes["NNZ"]
    cuts = np.sort(draw.rng.integers(0, entries + 1, draw.sizes["N"] - 1))
    return np.concatenate([[0], cuts, [entries]])


def _columns(draw: Draw) -> ArrayLike:
    return draw.rng.integers(0, draw.sizes["M"], draw.shape)


KERNEL = Kernel(
    name="spmv",
    arguments={
        "rows": Array("N+1", element="i32", values=_rows),
        "columns": Array("NNZ", element="i32", values=_columns),
        "values": Array("NNZ"),
        "x": Array("M"),
        "y": Array("N", Role.OUT),
    },
    datasets=datasets(
        "N M NNZ",
        (50, 60, 500),
        (500, 600, 5000),
        (5000, 6000, 100000),
        (100000, 120000, 2000000),
        (500000, 600000, 10000000),
    ),
    compute=spmv,
    flops=lambda s: 2 * s["NNZ"],
    dependences="i is parallel, every y[i] is written once; e sums; which x a row reads, and how "
    "much work it is, only its indices say.",
    elements=("f32", "f64", "i32"),
)

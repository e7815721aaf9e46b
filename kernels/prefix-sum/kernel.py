"""sums[i] = x[0] + … + x[i]."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Arguments, Array, Kernel, Role, datasets


def prefix_sum(x: np.ndarray, sums: np.ndarray) -> None:
    np.add.accumulate(x, dtype=x.dtype, out=sums)


def _tolerance(arguments: Arguments, after: Arguments) -> dict[str, np.ndarray]:
    """i · eps · Σ|x[0…i]|, once for either run."""
    if after["sums"].dtype.kind != "f":
        return {"sums": np.zeros(after["sums"].shape)}
    magnitudes = np.add.accumulate(np.abs(arguments["x"]), dtype=np.float64)
    eps = float(np.finfo(after["sums"].dtype).eps)
    return {"sums": 2 * eps * np.arange(len(magnitudes)) * magnitudes}


KERNEL = Kernel(
    name="prefix-sum",
    arguments={"x": Array("N"), "sums": Array("N", Role.OUT)},
    datasets=datasets("N", (2000,), (20000,), (200000,), (4000000,), (20000000,)),
    compute=prefix_sum,
    flops=lambda s: s["N"] - 1,
    dependences="i is sequential, sums[i] needs sums[i-1]; as a scan it is parallel in blocks, "
    "each summed by itself and then shifted by the total of those before it.",
    elements=("f32", "f64", "i32"),
    tolerance=_tolerance,
)

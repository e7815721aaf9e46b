"""The shortest way between every two of N points, in place."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Arguments, Array, Kernel, Role, between, datasets


def floyd_warshall(path: np.ndarray) -> None:
    for k in range(path.shape[0]):
        path[...] = np.minimum(path, path[:, k, None] + path[k])


def _tolerance(arguments: Arguments, after: Arguments) -> dict[str, np.ndarray]:
    """A shortest way is a sum of fewer than N positive terms, in some order."""
    path = after["path"]
    eps = float(np.finfo(path.dtype).eps) if path.dtype.kind == "f" else 0.0
    return {"path": 2 * len(path) * eps * path}


KERNEL = Kernel(
    name="floyd-warshall",
    # no negative way, so row and column k stay as they are in step k
    arguments={"path": Array("N N", Role.INOUT, values=between(1, 1000))},
    datasets=datasets("N", (60,), (180,), (500,), (2800,), (5600,)),
    compute=floyd_warshall,
    flops=lambda s: 2 * s["N"] ** 3,
    dependences="k is sequential; in step k every path[i, j] needs row k and column k, which the "
    "same loops write: i and j are parallel only because non-negative ways leave those unchanged, "
    "which a compiler cannot know.",
    elements=("f32", "f64", "i32"),
    tolerance=_tolerance,
    sweep=lambda s: 2 * s["N"] ** 3,
)

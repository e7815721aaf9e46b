"""Maxwell's equations in the plane, finite differences in time: ex, ey and hz leapfrog."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Sizes, datasets, stable


def fdtd_2d(ex: np.ndarray, ey: np.ndarray, hz: np.ndarray, fict: np.ndarray) -> None:
    for t in range(len(fict)):
        ey[0] = fict[t]
        ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def _flops(s: Sizes) -> int:
    inner = (s["NX"] - 1) * (s["NY"] - 1)
    return s["TMAX"] * (3 * (s["NX"] - 1) * s["NY"] + 3 * s["NX"] * (s["NY"] - 1) + 5 * inner)


KERNEL = Kernel(
    name="fdtd-2d",
    arguments={
        "ex": Array("NX NY", Role.INOUT),
        "ey": Array("NX NY", Role.INOUT),
        "hz": Array("NX NY", Role.INOUT),
        "fict": Array("TMAX"),
    },
    datasets=datasets(
        "TMAX NX NY",
        (20, 20, 30),
        (40, 60, 80),
        (100, 200, 240),
        (500, 1000, 1200),
        (1000, 2000, 2600),
    ),
    compute=fdtd_2d,
    flops=_flops,
    dependences="i and j are parallel in each of the four nests; t is sequential: ey needs the row "
    "of hz above, hz the row of ey below, one row of halo each way and step.",
    # 0.5 · 0.7 is below the limit for two dimensions, 0.5
    tolerance=stable(lambda given: 16 * len(given["fict"])),
    sweep=lambda s: s["TMAX"] * 10 * s["NX"] * s["NY"],
)

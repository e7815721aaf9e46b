"""Bodies that attract each other, all pairs, softened: kick the velocities, then drift."""

from __future__ import annotations

import numpy as np

from kernels.kernel import Array, Kernel, Role, Scalar, between, datasets, size


def n_body(
    tsteps: int,
    dt: np.floating,
    softening: np.floating,
    mass: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
) -> None:
    for _ in range(tsteps):
        pull = 0 * position
        for j in range(len(mass)):
            way = position[j] - position
            square = way * way
            r2 = square[:, 0] + square[:, 1] + square[:, 2] + softening
            strength = mass[j] / (r2 * np.sqrt(r2))
            pull = pull + strength[:, None] * way
        velocity += dt * pull
        position += dt * velocity


KERNEL = Kernel(
    name="n-body",
    arguments={
        "tsteps": size("TSTEPS"),
        "dt": Scalar(values=between(0.001, 0.01)),
        "softening": Scalar(values=between(0.1, 0.2)),
        "mass": Array("N", values=between(0.1, 1.0)),
        "position": Array("N 3", Role.INOUT),
        "velocity": Array("N 3", Role.INOUT),
    },
    datasets=datasets("TSTEPS N", (2, 100), (4, 400), (10, 1000), (10, 8000), (20, 20000)),
    compute=n_body,
    flops=lambda s: s["TSTEPS"] * s["N"] * (18 * s["N"] + 12),
    dependences="i is parallel in both nests, j sums the pull of all bodies on body i; t is "
    "sequential, and every body needs all positions of the step before.",
    sweep=lambda s: s["TSTEPS"] * 19 * s["N"],
)

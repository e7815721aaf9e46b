"""`loops` for Numba; `arrays` for NumPy, one body's pull on all of them at a time."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(
    tsteps: int,
    dt: np.generic,
    softening: np.generic,
    mass: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
) -> None:
    n = mass.shape[0]
    zero = mass.dtype.type(0)
    for _ in range(tsteps):
        for i in prange(n):
            x, y, z = zero, zero, zero
            for j in range(n):
                dx = position[j, 0] - position[i, 0]
                dy = position[j, 1] - position[i, 1]
                dz = position[j, 2] - position[i, 2]
                r2 = dx * dx + dy * dy + dz * dz + softening
                strength = mass[j] / (r2 * np.sqrt(r2))
                x += strength * dx
                y += strength * dy
                z += strength * dz
            velocity[i, 0] += dt * x
            velocity[i, 1] += dt * y
            velocity[i, 2] += dt * z
        for i in prange(n):
            for d in range(3):
                position[i, d] += dt * velocity[i, d]


def arrays(
    tsteps: int,
    dt: np.generic,
    softening: np.generic,
    mass: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
) -> None:
    for _ in range(tsteps):
        pull = np.zeros_like(position)
        for j in range(len(mass)):
            way = position[j] - position
            r2 = np.einsum("id,id->i", way, way) + softening
            pull += (mass[j] / (r2 * np.sqrt(r2)))[:, None] * way
        velocity += dt * pull
        position += dt * velocity

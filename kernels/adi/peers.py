"""`loops` for Numba, a system after the other; `arrays` for NumPy, all systems at once."""

from __future__ import annotations

import numpy as np

from kernels.parallel import prange


def loops(tsteps: int, u: np.ndarray, v: np.ndarray, p: np.ndarray, q: np.ndarray) -> None:
    number = u.dtype.type
    n = u.shape[0]
    zero, one, two = number(0), number(1), number(2)
    dx, dt = one / number(n), one / number(tsteps)
    mul1, mul2 = two * dt / (dx * dx), dt / (dx * dx)
    a, b, d, e = -mul1 / two, one + mul1, -mul2 / two, one + mul2
    middle_a, middle_d = one + two * a, one + two * d
    for _ in range(tsteps):
        for i in prange(1, n - 1):
            v[0, i] = one
            p[i, 0] = zero
            q[i, 0] = one
            for j in range(1, n - 1):
                pivot = a * p[i, j - 1] + b
                p[i, j] = -a / pivot
                right = -d * u[j, i - 1] + middle_d * u[j, i] - d * u[j, i + 1]
                q[i, j] = (right - a * q[i, j - 1]) / pivot
            v[n - 1, i] = one
            for j in range(n - 2, 0, -1):
                v[j, i] = p[i, j] * v[j + 1, i] + q[i, j]
        for i in prange(1, n - 1):
            u[i, 0] = one
            p[i, 0] = zero
            q[i, 0] = one
            for j in range(1, n - 1):
                pivot = d * p[i, j - 1] + e
                p[i, j] = -d / pivot
                right = -a * v[i - 1, j] + middle_a * v[i, j] - a * v[i + 1, j]
                q[i, j] = (right - d * q[i, j - 1]) / pivot
            u[i, n - 1] = one
            for j in range(n - 2, 0, -1):
                u[i, j] = p[i, j] * u[i, j + 1] + q[i, j]


def arrays(tsteps: int, u: np.ndarray, v: np.ndarray, p: np.ndarray, q: np.ndarray) -> None:
    n = u.shape[0]
    number = u.dtype.type
    dx, dt = 1 / number(n), 1 / number(tsteps)
    mul1, mul2 = 2 * dt / (dx * dx), dt / (dx * dx)
    a, b, d, e = -mul1 / 2, 1 + mul1, -mul2 / 2, 1 + mul2
    inner = slice(1, n - 1)
    # p and q lie transposed: element j of all systems is one row.
    across, along = p.T, q.T
    for _ in range(tsteps):
        v[0, inner], across[0, inner], along[0, inner] = 1, 0, 1
        for j in range(1, n - 1):
            pivot = a * across[j - 1, inner] + b
            across[j, inner] = -a / pivot
            right = -d * u[j, :-2] + (1 + 2 * d) * u[j, inner] - d * u[j, 2:]
            along[j, inner] = (right - a * along[j - 1, inner]) / pivot
        v[n - 1, inner] = 1
        for j in range(n - 2, 0, -1):
            v[j, inner] = across[j, inner] * v[j + 1, inner] + along[j, inner]
        u[inner, 0], across[0, inner], along[0, inner] = 1, 0, 1
        for j in range(1, n - 1):
            pivot = d * across[j - 1, inner] + e
            across[j, inner] = -d / pivot
            right = -a * v[:-2, j] + (1 + 2 * a) * v[inner, j] - a * v[2:, j]
            along[j, inner] = (right - d * along[j - 1, inner]) / pivot
        u[inner, n - 1] = 1
        for j in range(n - 2, 0, -1):
            u[inner, j] = across[j, inner] * u[inner, j + 1] + along[j, inner]

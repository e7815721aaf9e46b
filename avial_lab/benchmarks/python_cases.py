"""Programs as people write them in Python: loops over elements, and whole arrays.

A size -> arguments; a function -> what it returns, and arrays written in place. Those with loops
have a second form, of whole arrays, for whoever runs Python as it is; `prange` stands where Numba
has to be told that iterations are independent (for us it is a `range`).
"""

# ruff: noqa: B007 - as people write functions
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from avial_lab.compiler.frontends.python.calls import prange

FORMAT = "avial-lab python"
"""Of the file with a race of these programs."""

Random = np.random.Generator
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """numpy: the same with NumPy's functions in place of loops over elements; None where it has
    none. inputs: of the size's number.
    """

    function: Callable[..., Any]
    inputs: Callable[[Random, int], tuple[Any, ...]]
    numpy: Callable[..., Any] | None = None


# -- loops -----------------------------------------------------------------------------------------


def heat(u: Array, v: Array, steps: int) -> None:
    for t in range(steps):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = v[i, j]


def _heat(u: Array, v: Array, steps: int) -> None:
    for _ in range(steps):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u[1:-1, 1:-1] = v[1:-1, 1:-1]


def product(a: Array, b: Array, c: Array) -> None:
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def _product(a: Array, b: Array, c: Array) -> None:
    c += a @ b


def shortest_paths(d: Array) -> None:
    n = d.shape[0]
    for k in range(n):
        for i in prange(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


def _shortest_paths(d: Array) -> None:
    for k in range(d.shape[0]):
        np.minimum(d, d[:, k, None] + d[k], out=d)


def mandelbrot(image: Array, most: int) -> None:
    for i in prange(image.shape[0]):
        for j in range(image.shape[1]):
            x0 = 3.0 * j / image.shape[1] - 2.0
            y0 = 2.0 * i / image.shape[0] - 1.0
            x = 0.0
            y = 0.0
            n = 0
            while n < most and x * x + y * y < 4.0:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                n += 1
            image[i, j] = n


def _mandelbrot(image: Array, most: int) -> None:
    x0 = 3.0 * np.arange(image.shape[1])[None, :] / image.shape[1] - 2.0
    y0 = 2.0 * np.arange(image.shape[0])[:, None] / image.shape[0] - 1.0
    x, y = np.zeros(image.shape), np.zeros(image.shape)
    image[...] = 0
    inside = np.ones(image.shape, bool)
    for _ in range(most):
        inside &= x * x + y * y < 4.0
        image += inside
        x, y = np.where(inside, x * x - y * y + x0, x), np.where(inside, 2.0 * x * y + y0, y)


def forces(position: Array, mass: Array, force: Array) -> None:
    for i in prange(position.shape[0]):
        fx = 0.0
        fy = 0.0
        fz = 0.0
        for j in range(position.shape[0]):
            dx = position[j, 0] - position[i, 0]
            dy = position[j, 1] - position[i, 1]
            dz = position[j, 2] - position[i, 2]
            square = dx * dx + dy * dy + dz * dz + 0.01
            scale = mass[j] / (square * math.sqrt(square))
            fx += dx * scale
            fy += dy * scale
            fz += dz * scale
        force[i, 0] = fx
        force[i, 1] = fy
        force[i, 2] = fz


def _forces(position: Array, mass: Array, force: Array) -> None:
    apart = position[None, :, :] - position[:, None, :]
    square = (apart * apart).sum(axis=2) + 0.01
    force[...] = (apart * (mass / (square * np.sqrt(square)))[:, :, None]).sum(axis=1)


def sparse_product(first: Array, column: Array, value: Array, x: Array, y: Array) -> None:
    for i in prange(y.shape[0]):
        total = 0.0
        for k in range(first[i], first[i + 1]):
            total += value[k] * x[column[k]]
        y[i] = total


def _sparse_product(first: Array, column: Array, value: Array, x: Array, y: Array) -> None:
    y[...] = np.add.reduceat(value * x[column], first[:-1])


def lower_factor(a: Array) -> None:
    n = a.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]
        for k in range(i):
            a[i, i] -= a[i, k] * a[i, k]
        a[i, i] = math.sqrt(a[i, i])


def _lower_factor(a: Array) -> None:
    a[...] = np.tril(np.linalg.cholesky(a)) + np.triu(a, 1)


def convolution(image: Array, weights: Array, out: Array) -> None:
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            total = 0.0
            for r in range(weights.shape[0]):
                for s in range(weights.shape[1]):
                    total += image[i + r, j + s] * weights[r, s]
            out[i, j] = total


def _convolution(image: Array, weights: Array, out: Array) -> None:
    out[...] = 0.0
    for r in range(weights.shape[0]):
        for s in range(weights.shape[1]):
            out += image[r : r + out.shape[0], s : s + out.shape[1]] * weights[r, s]


# -- whole arrays ----------------------------------------------------------------------------------


def arc_distance(t1: Array, p1: Array, t2: Array, p2: Array) -> Array:
    square = np.sin((t2 - t1) / 2) ** 2 + np.cos(t1) * np.cos(t2) * np.sin((p2 - p1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(square), np.sqrt(1 - square))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1)[:, None])
    return e / e.sum(axis=1)[:, None]


def jacobi(u: Array, v: Array, steps: int) -> None:
    for t in range(steps):
        v[1:-1, 1:-1] = 0.2 * (
            u[1:-1, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + u[2:, 1:-1] + u[:-2, 1:-1]
        )
        u[1:-1, 1:-1] = 0.2 * (
            v[1:-1, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] + v[2:, 1:-1] + v[:-2, 1:-1]
        )


def standardised(x: Array) -> Array:
    mean = x.sum(axis=0) / x.shape[0]
    apart = x - mean
    return apart / np.sqrt((apart * apart).sum(axis=0) / x.shape[0])


def _square(rng: Random, n: int) -> Array:
    return rng.random((n, n))


def _rows(rng: Random, n: int) -> tuple[Any, ...]:
    """Eight elements in each of n rows."""
    first = np.arange(0, 8 * n + 1, 8)
    return first, rng.integers(0, n, 8 * n), rng.random(8 * n), rng.random(n), np.zeros(n)


def _definite(rng: Random, n: int) -> tuple[Any, ...]:
    a = rng.random((n, n))
    return ((a + a.T) / 2 + n * np.eye(n),)


def _several(count: int) -> Callable[[Random, int], tuple[Any, ...]]:
    return lambda rng, n: tuple(rng.random(n) for _ in range(count))


CASES: Mapping[str, Case] = {
    "heat": Case(heat, lambda r, n: (_square(r, n), np.zeros((n, n)), 20), _heat),
    "product": Case(
        product, lambda r, n: (_square(r, n), _square(r, n), np.zeros((n, n))), _product
    ),
    "shortest_paths": Case(shortest_paths, lambda r, n: (_square(r, n),), _shortest_paths),
    "mandelbrot": Case(mandelbrot, lambda r, n: (np.zeros((n, n), np.int64), 100), _mandelbrot),
    "forces": Case(forces, lambda r, n: (r.random((n, 3)), r.random(n), np.zeros((n, 3))), _forces),
    "sparse_product": Case(sparse_product, _rows, _sparse_product),
    "lower_factor": Case(lower_factor, _definite, _lower_factor),
    "convolution": Case(
        convolution,
        lambda r, n: (_square(r, n), r.random((5, 5)), np.zeros((n - 4, n - 4))),
        _convolution,
    ),
    "arc_distance": Case(arc_distance, _several(4)),
    "softmax": Case(softmax, lambda r, n: (_square(r, n),)),
    "jacobi": Case(jacobi, lambda r, n: (_square(r, n), np.zeros((n, n)), 20)),
    "standardised": Case(standardised, lambda r, n: (_square(r, n),)),
}

SIZES: Mapping[str, Mapping[str, int]] = {
    "LARGE": {
        "heat": 2_000, "product": 800, "shortest_paths": 500, "mandelbrot": 800, "forces": 2_500,
        "sparse_product": 400_000, "lower_factor": 800, "convolution": 1_500,
        "arc_distance": 2_000_000, "softmax": 2_000, "jacobi": 2_000, "standardised": 2_000,
    },
    "SMALL": {
        "heat": 400, "product": 200, "shortest_paths": 120, "mandelbrot": 150, "forces": 500,
        "sparse_product": 40_000, "lower_factor": 200, "convolution": 300,
        "arc_distance": 100_000, "softmax": 400, "jacobi": 400, "standardised": 400,
    },
    "MINI": {
        "heat": 12, "product": 12, "shortest_paths": 12, "mandelbrot": 12, "forces": 12,
        "sparse_product": 20, "lower_factor": 12, "convolution": 12, "arc_distance": 50,
        "softmax": 12, "jacobi": 12, "standardised": 12,
    },
}  # fmt: skip

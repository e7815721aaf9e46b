"""Twelve programs on arrays, as one writes them for NumPy: the same text for everybody who has
NumPy's functions.

A size -> arrays; a namespace and arrays -> results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

FORMAT = "avial-lab arrays"
"""Of the file with a race of these cases."""

Function = Callable[..., Any]
"""(namespace, *arrays) -> an array, or several."""


@dataclass(frozen=True)
class Case:
    """inputs: arrays, of the lengths that the size gives. assigns: whether it writes to parts of
    arrays, which not everybody can.
    """

    inputs: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]
    function: Function
    assigns: bool = False


def assigned(array: Any, key: Any, value: Any) -> Any:
    """`array[key] = value`, or where arrays cannot be changed, another one (JAX)."""
    if hasattr(array, "at"):
        return array.at[key].set(value)
    array[key] = value
    return array


INNER = (slice(1, -1), slice(1, -1))
DEEP = (slice(2, -2), slice(2, -2))


def _jacobi(xp: Any, u: Any) -> Any:
    u, v = xp.asarray(u, copy=True), xp.asarray(u, copy=True)
    for _ in range(100):
        mean = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u, v = assigned(v, INNER, mean), u
    return u


def _star(xp: Any, given: Any) -> Any:
    """The star stencil of the Parallel Research Kernels, of radius 2."""
    x, out = xp.asarray(given, copy=True), xp.zeros_like(given)
    for _ in range(20):
        near = x[3:-1, 2:-2] - x[1:-3, 2:-2] + x[2:-2, 3:-1] - x[2:-2, 1:-3]
        far = x[4:, 2:-2] - x[:-4, 2:-2] + x[2:-2, 4:] - x[2:-2, :-4]
        out = assigned(out, DEEP, out[DEEP] + (0.25 * near + 0.125 * far))
        x = x + 1
    return out


def _reduce(xp: Any, a: Any) -> Any:
    return [f(a, axis=k) for f in (xp.sum, xp.mean, xp.var) for k in (0, 1)]


def _chain(xp: Any, a: Any) -> Any:
    del xp
    x = a
    for _ in range(10):
        x = x * 1.01 + a
    return x


def _normal(xp: Any, x: Any) -> Any:
    """The cumulative normal distribution (Abramowitz and Stegun 1964, 26.2.17)."""
    k = 1.0 / (1.0 + 0.2316419 * xp.abs(x))
    tail = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978
                + k * 1.330274429))))  # fmt: skip
    below = 0.3989422804014327 * xp.exp(-0.5 * x * x) * tail
    return xp.where(x > 0, 1.0 - below, below)


def _blackscholes(xp: Any, s: Any, k: Any, t: Any) -> Any:
    spread = 0.2 * xp.sqrt(t)
    d1 = (xp.log(s / k) + 0.12 * t) / spread
    d2 = d1 - spread
    later = k * xp.exp(-0.1 * t)
    call = s * _normal(xp, d1) - later * _normal(xp, d2)
    return call, call - s + later


def _kmeans(xp: Any, x: Any, c: Any) -> Any:
    """One step: new centres."""
    apart = xp.sum(x * x, axis=1)[:, None] - 2 * (x @ c.T) + xp.sum(c * c, axis=1)[None, :]
    nearest = xp.argmin(apart, axis=1)
    mine = (nearest[:, None] == xp.arange(16)[None, :]) * 1.0
    return (mine.T @ x) / xp.sum(mine, axis=0)[:, None]


def _logistic(xp: Any, x: Any, y: Any, w: Any) -> Any:
    """One step along the gradient."""
    return w - 0.1 * (x.T @ (1 / (1 + xp.exp(-(x @ w))) - y)) / x.shape[0]


def _random(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator, int], Any]:
    """Numbers below 1; the first extent of each is that of the size, where it is 0 here."""

    def inputs(rng: np.random.Generator, size: int) -> tuple[np.ndarray, ...]:
        return tuple(rng.random(tuple(n or size for n in shape)) for shape in shapes)

    return inputs


def _prices(rng: np.random.Generator, size: int) -> tuple[np.ndarray, ...]:
    return rng.uniform(10, 50, size), rng.uniform(10, 50, size), rng.uniform(1, 2, size)


def _labelled(rng: np.random.Generator, size: int) -> tuple[np.ndarray, ...]:
    return rng.random((size, 20)), (rng.random(size) > 0.5) * 1.0, rng.random(20)


CASES: Mapping[str, Case] = {
    "fused": Case(_random((0,), (0,), (0,)), lambda xp, b, c, d: b * c + xp.sin(d)),
    "triad": Case(_random((0,), (0,)), lambda xp, b, c: b + 2 * c),
    "jacobi": Case(_random((0, 0)), _jacobi, assigns=True),
    "reduce": Case(_random((0, 0)), _reduce),
    "sumall": Case(_random((0,)), lambda xp, a: xp.sum(a)),
    "matmul": Case(_random((0, 0), (0, 0)), lambda xp, a, b: a @ b),
    "xwmax": Case(_random((0, 200), (200, 64)), lambda xp, x, w: xp.max(x @ w, axis=1)),
    "chain20": Case(_random((0,)), _chain),
    "star": Case(_random((0, 0)), _star, assigns=True),
    "blackscholes": Case(_prices, _blackscholes),
    "kmeans": Case(_random((0, 8), (16, 8)), _kmeans),
    "logistic": Case(_labelled, _logistic),
}

SIZES: Mapping[str, Mapping[str, int]] = {
    "LARGE": {
        "fused": 10_000_000, "triad": 10_000_000, "jacobi": 2_000, "reduce": 3_000,
        "sumall": 10_000_000, "matmul": 2_000, "xwmax": 100_000, "chain20": 10_000, "star": 2_000,
        "blackscholes": 4_000_000, "kmeans": 1_000_000, "logistic": 1_000_000,
    },
    "SMALL": {
        "fused": 1_000_000, "triad": 1_000_000, "jacobi": 600, "reduce": 1_000,
        "sumall": 1_000_000, "matmul": 500, "xwmax": 10_000, "chain20": 10_000, "star": 600,
        "blackscholes": 400_000, "kmeans": 100_000, "logistic": 100_000,
    },
    "MINI": {
        "fused": 1_000, "triad": 1_000, "jacobi": 20, "reduce": 30, "sumall": 1_000, "matmul": 20,
        "xwmax": 50, "chain20": 100, "star": 20, "blackscholes": 400, "kmeans": 200,
        "logistic": 100,
    },
}  # fmt: skip
"""The first extent of what is not small anyway."""

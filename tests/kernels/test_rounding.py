"""Bounds on rounding errors: sound for each operation, and for every order of a sum."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from kernels.rounding import Rounded

SINGLE = np.dtype(np.float32)
EPS = float(np.finfo(SINGLE).eps)


def test_a_sum_that_cancels_is_bounded_in_every_order() -> None:
    terms = np.array([1e8, -1e8, 1.0, 3e-3], np.float32)
    total = Rounded.of(terms[0], dtype=SINGLE)
    for term in terms[1:]:
        total = total + Rounded.of(term, dtype=SINGLE)
    off = [abs(float(((a + b) + c) + d) - float(total.value)) for a, b, c, d in permutations(terms)]
    assert max(off) > 0.9
    assert max(off) <= total.error() <= 3 * EPS * 2.1e8


QUOTIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "inexact divisor": lambda x, y: x / (y + y / 3),
    "inexact dividend": lambda x, y: (x + x / 3) / y,
    "inexact factor": lambda x, y: (x / 3) * (y / 7),
    "square root": lambda x, y: np.sqrt(abs_(x / 3 - y / 7)),
    "larger": lambda x, y: np.maximum(x / 3, y / 2),
    "smaller": lambda x, y: np.minimum(x / 3, y / 2),
    "difference": lambda x, y: x / 3 - y / 7 - x,
}


def abs_(x: Any) -> Any:
    return np.maximum(x, -x)


@pytest.mark.parametrize("name", QUOTIENTS)
def test_what_comes_in_goes_on(name: str) -> None:
    """An error of 1e-3 in what comes in: the result moves by no more than the bound, and the bound
    is within a small factor of the worst of it.
    """
    compute = QUOTIENTS[name]
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 2, 1000), rng.uniform(1, 2, 1000)
    exact = compute(x, y)
    error = compute(
        Rounded.of(x, dtype=SINGLE, error=1e-3), Rounded.of(y, dtype=SINGLE, error=1e-3)
    ).error()
    worst = np.zeros(1000)
    for dx in (-1e-3, 1e-3):
        for dy in (-1e-3, 1e-3):
            worst = np.maximum(worst, np.abs(compute(x + dx, y + dy) - exact))
    assert (worst <= error).all()
    assert np.median(error / worst) < 3


def test_a_divisor_that_may_be_zero_has_no_bound() -> None:
    small = Rounded.of([1e-4, 1.0], dtype=SINGLE, error=1e-3)
    assert np.isinf((1 / small).error()).tolist() == [True, False]


def test_assignment_in_place_keeps_views() -> None:
    whole = Rounded.of(np.ones((3, 3)), dtype=SINGLE)
    whole[1] += 1
    part = whole[:, 2]
    part *= 0.1
    assert whole.value.tolist() == [[1, 1, 0.1], [2, 2, 0.2], [1, 1, 0.1]]
    assert (whole.error() > 0).tolist() == [[False, False, True], [True] * 3, [False, False, True]]

"""Loops that ask how far apart their accesses are compute what they did, near or far."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.golden import OPTIMISED, assert_same, cases_of, each_case


@each_case("version_by_distance", without=("knapsack", "rows"))
def test_the_same_bits(case: str) -> None:
    assert_same(case, "version-by-distance", opt_level=OPTIMISED)


@pytest.mark.parametrize("far", [0, 1, 3, 4, 5, 99])
def test_any_distance(far: int) -> None:
    """Of less than a vector, of as much, of more."""
    at = np.full(9, far)
    given = {1: at, 2: np.int64(4), 3: np.int64(300)}
    case = cases_of("version_by_distance")["knapsack"]
    assert_same(case, "version-by-distance", given=given, opt_level=OPTIMISED)

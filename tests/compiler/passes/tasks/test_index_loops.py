"""Loops that count in index do what those of i32 and i64 did."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.golden import assert_same, cases_of, each_case


@each_case("index_loops", without=("leaves_what_no_index_can_count",))
def test_the_same_bits(case: str) -> None:
    assert_same(case, "index-loops")


@pytest.mark.parametrize("count", [-3, 0, 1, 7])
def test_any_number_of_iterations(count: int) -> None:
    """Below zero there is none, where the numbers have signs."""
    assert_same(cases_of("index_loops")["signed"], "index-loops", given={0: np.int32(count)})

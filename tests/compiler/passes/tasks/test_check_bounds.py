"""Guarded accesses that stay inside compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.golden import assert_same, cases_of

CASES = cases_of("check_bounds")


@pytest.mark.parametrize("index", [0, 3, 8])
@pytest.mark.parametrize("case", ["load", "constant_index", "unknown_extent"])
def test_the_same_bits(case: str, index: int) -> None:
    assert_same(CASES[case], "check-bounds", given={1: np.int64(index)})

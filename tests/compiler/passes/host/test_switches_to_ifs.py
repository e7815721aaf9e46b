"""All 64 bits of what is switched on count."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.golden import cases_of, computed, parse_passes

PASSES = parse_passes("switches-to-ifs")


@pytest.mark.parametrize(
    ("value", "result"), [(3, 8), (2**32 + 3, 7), (2**33 + 3, 9), (-1, 9), (2**32 - 1, 9), (0, 9)]
)
def test_the_case_that_is_taken(value: int, result: int) -> None:
    *_, got = computed(cases_of("switches_to_ifs")["one"], PASSES, given={0: np.int64(value)})
    assert got == result


@pytest.mark.parametrize(
    ("value", "written"), [(-1, [7, 0, 0, 0]), (2**32 - 1, [0, 7, 7, 0]), (5, [0, 7, 7, 0])]
)
def test_one_in_the_other(value: int, written: list[int]) -> None:
    given = {0: np.int64(value), 1: np.zeros(4, np.int32)}
    array, *_ = computed(cases_of("switches_to_ifs")["nested"], PASSES, given=given)
    assert array.tolist() == written

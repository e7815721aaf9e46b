"""Loops whose accesses are told to be independent compute the same in another order, and on the way
to vectors.
"""

from __future__ import annotations

import pytest

from avial_lab.compiler.ir.attributes import INDEPENDENT
from tests.compiler.passes.golden import OPTIMISED, Backwards, assert_same, cases_of, each_case

CASES = cases_of("independent_accesses")


@each_case("independent_accesses", without=("leaves_calls",))
def test_the_same_bits(case: str) -> None:
    assert_same(case, "independent-accesses", opt_level=OPTIMISED)


@pytest.mark.parametrize("name", ["rows_apart"])
def test_the_same_bits_backwards(name: str) -> None:
    backwards = (Backwards(INDEPENDENT),)
    assert_same(CASES[name], "independent-accesses", then=backwards, opt_level=OPTIMISED)

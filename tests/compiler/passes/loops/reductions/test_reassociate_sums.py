"""Sums in another order are within their bound; what is not summed up has the same bits."""

from __future__ import annotations

import pytest

from tests.compiler.passes.golden import assert_same, cases_of

CASES = cases_of("reassociate_sums", private=True)
SUMMED = ("in_memory", "handed_on", "as_many_terms_as_lanes")


@pytest.mark.parametrize("case", CASES)
def test_the_same_values(case: str) -> None:
    text = CASES[case].replace("func.func private", "func.func")
    assert_same(text, "reassociate-sums", rtol=1e-5 if case in SUMMED else 0)

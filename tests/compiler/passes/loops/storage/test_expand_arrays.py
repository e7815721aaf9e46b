"""Rows of their own hold what one row held."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("expand_arrays")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "expand-arrays")

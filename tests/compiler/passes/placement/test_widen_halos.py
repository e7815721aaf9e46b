"""Blocks of steps compute what the steps computed."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("widen_halos")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "widen-halos{steps=4}")

"""Scratch memory of each iteration holds what the shared one held."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("place_allocations")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "place-allocations")

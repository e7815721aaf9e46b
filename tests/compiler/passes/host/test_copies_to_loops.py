"""Loops copy what memref.copy copies."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("copies_to_loops", without=("two_dimensions", "known_on_one_side"))
def test_the_same_bits(case: str) -> None:
    source, target = assert_same(case, "copies-to-loops")
    assert source.tolist() == target.tolist()

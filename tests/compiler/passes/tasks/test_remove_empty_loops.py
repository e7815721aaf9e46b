"""What never runs is not missed."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("remove_empty_loops")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "remove-empty-loops")

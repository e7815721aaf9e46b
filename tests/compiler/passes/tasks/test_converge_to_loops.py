"""A converge runs as often as its condition says."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("converge_to_loops")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "converge-to-loops")

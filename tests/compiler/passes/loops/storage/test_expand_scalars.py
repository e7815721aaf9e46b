"""An element for each iteration holds what the scalar held."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("expand_scalars")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "expand-scalars")

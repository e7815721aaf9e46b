"""Each element has its terms added in the order that it had."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("parallel_first")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "parallel-first")

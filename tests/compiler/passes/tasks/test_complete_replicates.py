"""What is added to replicates by hand changes no value."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("complete_replicates")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "complete-replicates")

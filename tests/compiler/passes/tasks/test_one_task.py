"""One task computes what the function computed."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("one_task")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "one-task{why=because}")

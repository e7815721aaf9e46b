"""Written out, functions compute what their calls computed."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("inline_calls", without=("leaves_others",))
def test_the_same_bits(case: str) -> None:
    assert_same(case, "inline-calls")

"""Functions written out are those of libm, up to their last bits."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("expand_math", without=("vectors", "lanes_beyond_a_limit"))
def test_the_same_values(case: str) -> None:
    assert_same(case, "expand-math", rtol=1e-6)

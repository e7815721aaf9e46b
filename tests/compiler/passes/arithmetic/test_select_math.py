"""What is marked may be written out: the same values, up to their last bits."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case

NO_ARRAYS = ("vectors", "rows_of_lanes_have_a_limit", "easy_powers_of_vectors", "leaves_others")


@each_case("select_math", without=(*NO_ARRAYS, "in_a_kernel"))
def test_the_same_values(case: str) -> None:
    assert_same(case, "select-math,expand-math", rtol=1e-6)

"""What loops hand on by memory is what they handed on as values."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, cases_of, each_case


@each_case("iter_args_to_memory", without=("leaves_what_scalars_decide",))
def test_the_same_bits(case: str) -> None:
    assert_same(case, "iter-args-to-memory")


def test_what_scalars_decide() -> None:
    """Its last store is to the second element of an array of one."""
    case = cases_of("iter_args_to_memory")["leaves_what_scalars_decide"]
    assert_same(case.replace("memref<1xf64>", "memref<2xf64>"), "iter-args-to-memory")

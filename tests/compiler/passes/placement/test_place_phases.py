"""Where phases run changes no value."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("place_phases")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "place-phases{ranks=4 gpus=1 division=cyclic(16)}")

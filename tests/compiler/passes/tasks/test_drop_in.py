"""Phases and tasks compute what the loops computed, one after the other."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("drop_in")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "drop-in")

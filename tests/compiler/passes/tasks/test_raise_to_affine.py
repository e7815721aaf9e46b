"""Affine loops compute what the scf loops computed."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("raise_to_affine")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "raise-to-affine")

"""What LLVM is told of loops changes no value."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("independent_to_llvm")
def test_the_same_bits(case: str) -> None:
    to_llvm = "lower-affine,convert-scf-to-cf,convert-to-llvm,reconcile-unrealized-casts"
    assert_same(case, f"keep-independent,{to_llvm},independent-to-llvm")

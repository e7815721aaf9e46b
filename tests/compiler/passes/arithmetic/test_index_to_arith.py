"""Arithmetic of the index dialect in words of arith computes the same, and is right where MLIR's
own rewrites are not.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.arithmetic.scalars import ENDS, run_and_reference
from tests.compiler.passes.golden import assert_same, cases_of, each_case


@each_case("index_to_arith", without=("all",))
def test_the_same_bits(case: str) -> None:
    """(`all` has division of -3, in which MLIR's own lowering is right.)"""
    assert_same(case, "index-to-arith")


@pytest.mark.parametrize("number", [1, 63])
def test_all_operations_are_what_mlir_makes_of_them(number: int) -> None:
    assert_same(cases_of("index_to_arith")["all"], "index-to-arith", given={0: np.int64(number)})


@pytest.mark.quick("ule", "sge")
@pytest.mark.parametrize("predicate", ["ule", "ugt", "slt", "sge"])
def test_a_difference_is_compared_with_its_wrap(predicate: str) -> None:
    """llvm#216042: `n - 2 <= 0` is no `n <= 2`."""
    body = f"""
      %two = index.constant 2
      %zero = index.constant 0
      %d = index.sub %x, %two
      %r = index.cmp {predicate}(%d, %zero)
      %e = arith.extui %r : i1 to i64
    """
    d = ENDS.view(np.uint64) - np.uint64(2)
    compared = d if predicate.startswith("u") else d.view(np.int64)
    compare = {"le": np.less_equal, "lt": np.less, "gt": np.greater, "ge": np.greater_equal}
    want = compare[predicate[1:]](compared, 0).astype(np.int64)
    run_and_reference(body, ENDS, want, result="%e")


@pytest.mark.quick("-7")
@pytest.mark.parametrize("divisor", [2, -7])
def test_the_least_number_is_divided(divisor: int) -> None:
    """llvm PR 223127, of constants and of numbers from memory."""
    want = np.array([-(-int(x) // divisor) for x in ENDS])
    body = f"""
      %d = index.constant {divisor}
      %q = index.ceildivs %x, %d
      %e = index.casts %q : index to i64
    """
    run_and_reference(body, ENDS, want, result="%e")
    least = np.full(ENDS.size, -(-int(ENDS.min()) // divisor))
    constant = f"%m = index.constant {ENDS.min()}\n" + body.replace("%x", "%m")
    run_and_reference(constant, ENDS, least, result="%e")

"""Affine forms of numbers from memory: right at the ends of 64 bits, in values and conditions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.passes.arithmetic.scalars import ENDS, run_and_reference
from tests.compiler.passes.golden import assert_same, each_case


@each_case("exact_affine")
def test_the_same_bits(case: str) -> None:
    assert_same(case, "exact-affine")


def wrapped(values: list[int]) -> np.ndarray:
    return np.array([(x + 2**63) % 2**64 - 2**63 for x in values])


FORMS = {
    "d0 ceildiv 7": lambda x: -(-x // 7),
    "d0 floordiv 7": lambda x: x // 7,
    "d0 mod 7": lambda x: x % 7,
    "d0 * 3 + 5": lambda x: x * 3 + 5,
    "-d0": lambda x: -x,
    "(d0 ceildiv 2) * 2 - d0": lambda x: -(-x // 2) * 2 - x,
}


@pytest.mark.quick("d0 ceildiv 7", "d0 floordiv 7", "d0 mod 7")
@pytest.mark.parametrize("form", FORMS)
def test_a_value(form: str) -> None:
    """llvm PR 215696 for ceildiv."""
    body = f"""
      %q = affine.apply affine_map<(d0) -> ({form})>(%x)
      %e = arith.index_cast %q : index to i64
    """
    want = wrapped([FORMS[form](int(x)) for x in ENDS])
    run_and_reference(body, ENDS, want, result="%e")


@pytest.mark.parametrize(("name", "pick"), [("min", min), ("max", max)])
def test_an_extreme(name: str, pick: type) -> None:
    body = f"""
      %q = affine.{name} affine_map<(d0) -> (d0 ceildiv 5, d0 floordiv 3)>(%x)
      %e = arith.index_cast %q : index to i64
    """
    want = wrapped([pick(-(-int(x) // 5), int(x) // 3) for x in ENDS])
    run_and_reference(body, ENDS, want, result="%e")


def test_a_promise_of_products_from_memory() -> None:
    """A product of a number from memory may wrap, and is compared so."""
    body = """
      %q = affine.apply affine_map<(d0) -> (d0 * 2)>(%x)
      %r = arith.cmpi slt, %q, %x : index
      %e = arith.extui %r : i1 to i64
    """
    doubled = wrapped([2 * int(x) for x in ENDS])
    run_and_reference(body, ENDS, (doubled < ENDS).astype(np.int64), result="%e")

"""Memory is freed where nobody needs it any more, and not before."""

from __future__ import annotations

import ctypes

import pytest

from tests.compiler.passes.golden import assert_same, cases_of
from tests.compiler.passes.llvm.test_pool_allocations import counted

CASES = cases_of("free_allocations")

NEVER = "scf.for %i = %n to %n step %n {"
OFTEN = """%c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {"""


def test_what_is_handed_on_keeps_its_values() -> None:
    assert_same(CASES["handed_on"], "free-allocations")


@pytest.mark.parametrize("case", ["large_or_of_unknown_size", "freed"])
def test_all_of_it_is_freed_once(case: str) -> None:
    taken, given = counted(CASES[case].replace(NEVER, OFTEN), ctypes.c_int64(7))
    assert len(taken) in (7, 14)
    assert sorted(given) == sorted(taken)

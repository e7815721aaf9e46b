"""Loops that are marked for threads compute the same in another order."""

from __future__ import annotations

import pytest

from avial_lab.compiler.ir.attributes import PARALLEL
from tests.compiler.passes.golden import Backwards, assert_same, cases_of

CASES = cases_of("mark_parallel")


@pytest.mark.parametrize("name", ["elementwise", "inside_of_time", "scratch", "beside", "two_rows"])
def test_the_same_bits_backwards(name: str) -> None:
    assert_same(CASES[name], "mark-parallel", then=(Backwards(PARALLEL),))

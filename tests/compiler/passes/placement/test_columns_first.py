"""Columns add up what rows added, in the rows' order: the same bits."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("columns_first")
def test_the_golden_cases_compute_the_same(case: str) -> None:
    assert_same(case, "columns-first{on=gpu}")

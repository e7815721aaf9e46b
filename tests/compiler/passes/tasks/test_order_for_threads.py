"""Fronts compute what the loops did, every element in the same order: the same bits."""

from __future__ import annotations

from tests.compiler.passes.golden import assert_same, each_case


@each_case("order_for_threads")
def test_the_golden_cases_compute_the_same(case: str) -> None:
    assert_same(case, "order-for-threads{on=gpu}")

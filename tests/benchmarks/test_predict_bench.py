"""What a race between a prediction and its runs is summed up to."""

from __future__ import annotations

import pytest

from avial_lab.benchmarks.kernel_suite import element_of
from avial_lab.benchmarks.predict_bench import (
    ELEMENTS,
    Predicted,
    _program,
    predicted_table,
    summary,
)

FOUND = (
    Predicted("gemm", 1, 1.0, 1.5, 2.0, (2.0, 2.0, 9.0, 2.0, 2.0, 2.0)),
    Predicted("gemm", 2, 1.5, 1.0, 0.9, (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)),
    Predicted("lu", 1, 3.0, 3.3, 3.0, (3.0, 3.0, 3.0, 4.0, 4.0, 4.0)),
)


def test_the_profile_is_held_against_later_runs() -> None:
    gemm, _, lu = FOUND
    assert gemm.off_roofline == 0.5
    assert gemm.off_profile == 0
    assert (lu.first_s, lu.later_s) == (3, 4)
    assert lu.off_roofline == 0
    assert lu.off_profile == 0.25
    assert gemm.spread == 3.5


def test_a_table_and_its_medians() -> None:
    assert predicted_table(FOUND, "SMALL").rows[0][:4] == ("gemm", "1", "1 s", "2 s")
    assert summary(FOUND) == (
        "median error 50 % by the roofline, 10 % by runs of a smaller size, "
        "10 % by a profile of the same size; "
        "runs 29 % apart; Spearman 0.50"
    )


def test_one_row_is_in_order() -> None:
    assert summary(FOUND[:1]).endswith("Spearman 1.00")
    assert FOUND[0].off_profile == pytest.approx(0)


@pytest.mark.parametrize(("name", "element"), [("gemm", "f64"), ("nussinov", "i64")])
def test_a_kernel_is_predicted_in_the_first_type_that_it_has(name: str, element: str) -> None:
    assert element_of(name, ELEMENTS) == element
    assert f"x{element}>" in _program(name, "MINI", 1).question.source.text

"""The polynomials in the code are as near to what they stand for as is said of them."""

from __future__ import annotations

import mpmath
import pytest

from avial_lab.compiler.codegen.math import inverse_trigonometric, power, trigonometric
from tests.compiler.codegen.math.minimax import DIGITS, Fit, fits, in_two, parts


@pytest.mark.quick("exp 64", "erf, P 64", "exp2 32")
@pytest.mark.parametrize("fit", tuple(fits()), ids=lambda fit: f"{fit.name} {fit.width}")
def test_the_error_of_the_terms(fit: Fit) -> None:
    error = float(mpmath.log(fit.error(fit.terms), 2))
    assert fit.exponent - 0.5 < error < fit.exponent


@pytest.mark.slow
def test_the_terms_are_those_that_are_found() -> None:
    fit = next(each for each in fits() if each.name == "exp" and each.width == 32)
    assert fit.found() == pytest.approx(fit.terms, rel=1e-3)
    assert float(mpmath.log(fit.error(fit.found()), 2)) < fit.exponent


@pytest.mark.parametrize(("width", "ends"), [(32, (12, 24, 37)), (64, (32, 53, 86))])
def test_the_parts_of_a_quarter_turn(width: int, ends: tuple[int, ...]) -> None:
    with mpmath.workdps(DIGITS):
        assert trigonometric.OF_WIDTH[width].parts == parts(mpmath.pi / 2, ends, width)


def test_the_numbers_in_two_parts() -> None:
    with mpmath.workdps(DIGITS):
        for share, known in ((1, power.FIRST), (3, power.SECOND), (5, power.THIRD)):
            assert known == in_two(2 / mpmath.ln2 / share, 64)
        for width, own in inverse_trigonometric.OF_WIDTH.items():
            assert own.eighths == tuple(in_two(k * mpmath.pi / 4, width) for k in (1, 2, 3, 4))

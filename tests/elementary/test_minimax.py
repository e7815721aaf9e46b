"""The polynomials in the code are as near to what they stand for as is said of them."""

from __future__ import annotations

import mpmath
import pytest

from tests.elementary.minimax import Fit, fits


@pytest.mark.parametrize("fit", tuple(fits()), ids=lambda fit: f"{fit.name} {fit.width}")
def test_the_error_of_the_terms(fit: Fit) -> None:
    error = float(mpmath.log(fit.error(fit.terms), 2))
    assert fit.exponent - 0.5 < error < fit.exponent


def test_the_terms_are_those_that_are_found() -> None:
    fit = next(each for each in fits() if each.name == "exp" and each.width == 32)
    assert fit.found() == pytest.approx(fit.terms, rel=1e-3)
    assert float(mpmath.log(fit.error(fit.found()), 2)) < fit.exponent

"""exp(x) - 1 is libm's, also where x is so small that the difference would be nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from avial_lab.compiler.passes.host.expm1_to_libm import Expm1ToLibm
from tests.compiler.passes.golden import cases_of, computed


@pytest.mark.parametrize("x", [0.0, -0.0, 1e-300, 1e-12, -1e-12, 0.5, -40.0, math.inf])
def test_the_values_of_python(x: float) -> None:
    (got,) = computed(
        cases_of("expm1_to_libm")["double"], (Expm1ToLibm(),), given={0: np.float64(x)}
    )
    np.testing.assert_allclose(got[0], math.expm1(x), rtol=1e-15)
    assert np.signbit(got[0]) == np.signbit(x)

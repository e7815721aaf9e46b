"""A product and a sum rounded once, computed exactly: the truth about fused operations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

Real = TypeVar("Real", np.float32, np.float64)


def fma(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of NumPy's numbers, to the nearest of their type, ties to even (IEEE 754-2019,
    section 5.4.1).
    """
    kind = type(a)
    with np.errstate(all="ignore"):
        if not (np.isfinite(a) and np.isfinite(b)):
            return a * b + c
        if not np.isfinite(c):
            return c  # the exact product is finite, even where a · b overflows
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        if exact == 0:
            return a * b + c if a == 0 or b == 0 else kind(0)  # the signs of zeros, else +0
        return rounded(exact, kind)


def rounded(exact: Fraction, kind: type[Real]) -> Real:
    """The nearest number of that type: subnormal ones have fewer digits, the greatest a limit."""
    limits = np.finfo(kind)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, int(limits.minexp)) - limits.nmant)
    nearest = round(size / step) * step
    found = np.inf if nearest > Fraction(float(limits.max)) else float(nearest)
    return kind(found if exact > 0 else -found)

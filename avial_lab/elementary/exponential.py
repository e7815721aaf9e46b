"""e to the power of x.

x -> k and r with x = k ln 2 + r, |r| <= ln 2 / 2 (Cody and Waite, Software Manual for the
Elementary Functions, 1980, chapter 6) -> 2^k (1 + r + r² q(r)).

q is the polynomial nearest to (e^r - 1 - r) / r² in the error that it makes of e^r (Remez's
exchange in 60 digits, then the coefficients rounded one after the other, those behind fitted again
each time; `tests/elementary/minimax.py`): the relative error is below 2^-28.2 and 2^-57.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2

from avial_lab.elementary.numbers import Real, Whole, fma, polynomial


@dataclass(frozen=True)
class Constants:
    """`high` + `low` is ln 2, `high` with so few digits that its product with any k is exact.

    Below `least` the power is zero, above `most` it is infinite.
    """

    high: float
    low: float
    least: float
    most: float
    terms: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        0.693145751953125,
        1.428606765330187e-06,
        -104.0,
        89.0,
        (0.4999999403953552, 0.1666651964187622, 0.04166823998093605, 0.008368823677301407,
         0.0013823214685544372),
    ),
    64: Constants(
        0.6931471803691238,
        1.9082149292705877e-10,
        -746.0,
        710.0,
        (0.5000000000000011, 0.16666666666666416, 0.04166666666652659, 0.0083333333334915,
         0.0013888888944509185, 0.00019841269514439034, 2.4801492223532243e-05,
         2.7557578213859244e-06, 2.763055299308924e-07, 2.5002969437744188e-08),
    ),
}  # fmt: skip


def exp(x: Real) -> Real:
    """2^k in two factors: the power may be subnormal, or great where 2^k alone is infinite."""
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    k, r, rest = reduced(x.at_most(own.most).at_least(own.least))
    part = r + fma(r * r, polynomial(r, own.terms), rest)
    shifted = k + 4 * kind.bias  # positive, and its halves are
    half = shifted >> 1
    first, second = half - kind.bias, (shifted - half) - kind.bias
    return (part + 1.0) * kind.power_of_two(first) * kind.power_of_two(second)


def reduced(x: Real) -> tuple[Whole, Real, Real]:
    """k and r, with what r lost by rounding, for an x not far from those with a finite power."""
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    moved = fma(x, log2(e), kind.rounder)
    rounded = moved - kind.rounder
    near, less = fma(rounded, -own.high, x), rounded * own.low
    r = near - less
    k = moved.bits() - kind.number(kind.rounder).bits()
    return k, r, (near - r) - less


def less_one(x: Real) -> tuple[Whole, Real]:
    """k and e^r - 1, where a last digit more or less does not matter."""
    k, r, _ = reduced(x)
    return k, fma(r * r, polynomial(r, OF_WIDTH[x.kind.width].terms), r)

"""e to the power of x.

x -> k and r with x = k ln 2 + r, |r| <= ln 2 / 2 (Cody and Waite, Software Manual for the
Elementary Functions, 1980, chapter 6) -> 2^k (1 + r + r² q(r)).

q is the polynomial nearest to (e^r - 1 - r) / r² in the error that it makes of e^r (Remez's
exchange in 60 digits, then the coefficients rounded one after the other, those behind fitted again
each time; `tests/compiler/codegen/math/minimax.py`): the relative error is below 2^-28.2 and
2^-57.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log, log2

from avial_lab.compiler.codegen.math.floats import Real, Whole, fma, polynomial


@dataclass(frozen=True)
class Constants:
    """`high` + `low` is ln 2, `high` with so few digits that its product with any k is exact.

    Below `least` the power is zero, above `most` it is infinite; below `least_less_one` it is
    nothing beside 1. `of_two`: the same for powers of two. `nearest` + `beyond` is ln 2 in two
    numbers of full length.
    """

    high: float
    low: float
    least: float
    least_less_one: float
    most: float
    terms: tuple[float, ...]
    least_of_two: float
    most_of_two: float
    nearest: float
    beyond: float
    terms_of_two: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        0.693145751953125,
        1.428606765330187e-06,
        -104.0,
        -20.0,
        89.0,
        (0.4999999403953552, 0.1666651964187622, 0.04166823998093605, 0.008368823677301407,
         0.0013823214685544372),
        -151.0,
        129.0,
        0.6931471824645996,
        -1.9046542121259336e-09,
        (0.24022647738456726, 0.05550362169742584, 0.009618505835533142, 0.0013390225358307362,
         0.000153265762492083),
    ),
    64: Constants(
        0.6931471803691238,
        1.9082149292705877e-10,
        -746.0,
        -40.0,
        710.0,
        (0.5000000000000011, 0.16666666666666416, 0.04166666666652659, 0.0083333333334915,
         0.0013888888944509185, 0.00019841269514439034, 2.4801492223532243e-05,
         2.7557578213859244e-06, 2.763055299308924e-07, 2.5002969437744188e-08),
        -1076.0,
        1025.0,
        0.6931471805599453,
        2.3190468138462996e-17,
        (0.24022650695910122, 0.055504108664820716, 0.009618129107596926, 0.001333355814669096,
         0.00015403530454227894, 1.5252733542677334e-05, 1.3215436495553927e-06,
         1.017818610469195e-07, 7.0736034149920194e-09, 4.4361338498776674e-10),
    ),
}  # fmt: skip


def exp(x: Real) -> Real:
    own = OF_WIDTH[x.kind.width]
    k, part = less_one(x.at_most(own.most).at_least(own.least))
    return _scaled(part + 1.0, k)


def exp2(x: Real) -> Real:
    """x = k + r, |r| <= ½, and 2^r = 1 + r ln 2 + r² q(r)."""
    own = OF_WIDTH[x.kind.width]
    k, r = _whole_and_rest(x, own)
    rest = fma(r * r, polynomial(r, own.terms_of_two), r * own.beyond)
    return _scaled(fma(r, own.nearest, rest) + 1.0, k)


def exp2_of_sum(x: Real, less: Real) -> Real:
    """Of x + less, where x has rounded that off."""
    own = OF_WIDTH[x.kind.width]
    k, most = _whole_and_rest(x, own)
    r = most + less
    lost = less - (r - most)
    rest = fma(r * r, polynomial(r, own.terms_of_two), fma(lost, own.nearest, r * own.beyond))
    return _scaled(fma(r, own.nearest, rest) + 1.0, k)


def exp2_in_double(x: Real) -> Real:
    """As exact as single precision needs it, and infinite or zero where that is."""
    kind, own = x.kind, OF_WIDTH[32]
    k, r = _whole_and_rest(x, own)
    rest = fma(r * r, polynomial(r, own.terms_of_two), r * OF_WIDTH[64].nearest)
    return (rest + 1.0) * kind.power_of_two(k + kind.bias)


def _whole_and_rest(x: Real, own: Constants) -> tuple[Whole, Real]:
    kind = x.kind
    within = x.at_most(own.most_of_two).at_least(own.least_of_two)
    moved = within + kind.rounder
    return moved.bits() - kind.number(kind.rounder).bits(), within - (moved - kind.rounder)


def expm1(x: Real) -> Real:
    """2^k - 1 and 2^k r, added up with what that loses, and 2^k times the rest of e^r - 1: all of
    it halved until the end, as 2^k alone may be infinite. Where 2^k - 1 is no number any more, 1
    is taken from what is small.
    """
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    k, r, rest = reduced(x.at_most(own.most).at_least(own.least_less_one))
    tail = fma(r * r, polynomial(r, own.terms), fma(r, rest, rest))
    half = kind.power_of_two(k + (kind.bias - 1))
    is_exact = x < kind.fraction * log(2)
    most = is_exact.choose(half - 0.5, half)
    left = is_exact.choose(kind.number(0.0), kind.number(-0.5))
    part = half * r
    total = most + part
    value = total + (fma(half, tail, (most - total) + part) + left)
    return (value + value).with_sign_of(x)


def _scaled(value: Real, k: Whole) -> Real:
    """2^k times a number near 1, in two factors: that may be subnormal, or great where 2^k alone is
    infinite.
    """
    kind = value.kind
    shifted = k + 4 * kind.bias  # positive, and its halves are
    half = shifted >> 1
    first, second = half - kind.bias, (shifted - half) - kind.bias
    return value * kind.power_of_two(first) * kind.power_of_two(second)


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
    """k and e^r - 1."""
    k, r, rest = reduced(x)
    return k, r + fma(r * r, polynomial(r, OF_WIDTH[x.kind.width].terms), rest)


def about_less_one(x: Real) -> tuple[Whole, Real]:
    """The same where a last digit more or less does not matter."""
    k, r, _ = reduced(x)
    return k, fma(r * r, polynomial(r, OF_WIDTH[x.kind.width].terms), r)

"""The natural logarithm.

x -> k and f with x = 2^k (1 + f), √½ <= 1 + f < √2 -> k ln 2 + ln(1 + f); with s = f / (2 + f)

    ln(1 + f) = 2 artanh s = f - f²/2 + s (f²/2 + s² R(s²))

so that f, the greatest term, goes into the last sum as it is (Tang, Table-driven implementation of
the logarithm function, ACM TOMS 16, 1990, has the identity).

R is the polynomial nearest to (2 artanh s - 2 s) / s³, found as that of the exponential is: the
error is below 2^-30 and 2^-59 of the logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

from avial_lab.compiler.codegen.math.floats import Real, fma, polynomial


@dataclass(frozen=True)
class Constants:
    """`high` + `low` is ln 2, `high` with so few digits that its product with any k is exact;
    `root` the bits of √½. `of_two` + and `of_ten` +: 1 / ln 2 and 1 / ln 10, again with few digits
    in the first part; so is `two_of_ten`, log₁₀ 2.
    """

    high: float
    low: float
    root: int
    terms: tuple[float, ...]
    of_two: tuple[float, float]
    of_ten: tuple[float, float]
    two_of_ten: tuple[float, float]


OF_WIDTH = {
    32: Constants(
        0.693145751953125,
        1.428606765330187e-06,
        0x3F3504F3,
        (0.6666678190231323, 0.39976873993873596, 0.29889795184135437),
        (1.4423828125, 0.00031222839606925845),
        (0.4342041015625, 9.038033749675378e-05),
        (0.301025390625, 4.605039066518657e-06),
    ),
    64: Constants(
        0.6931471803691238,
        1.9082149292705877e-10,
        0x3FE6A09E667F3BCD,
        (0.666666666666674, 0.39999999999376984, 0.285714287514888, 0.2222219757071492,
         0.18183619760344955, 0.15312551933190316, 0.14811705334824873),
        (1.4426946640014648, 3.768874985636099e-07),
        (0.4342944622039795, 1.9699272335463627e-08),
        (0.30102999566361177, 3.694239077158931e-13),
    ),
}  # fmt: skip


def log(x: Real) -> Real:
    own = OF_WIDTH[x.kind.width]
    k, f = reduced(x)
    half_square, rest = _series(f)
    value = fma(k, own.high, f - (half_square - fma(k, own.low, rest)))
    return _defined(x, value)


def log2(x: Real) -> Real:
    own = OF_WIDTH[x.kind.width]
    return _of_base(x, own.of_two, (1.0, 0.0))


def log10(x: Real) -> Real:
    own = OF_WIDTH[x.kind.width]
    return _of_base(x, own.of_ten, own.two_of_ten)


def log1p(x: Real) -> Real:
    """Of u, which is 1 + x rounded, and with what that lost over u; near zero x is f itself."""
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    u = x + 1.0
    moved = u - 1.0
    lost = (1.0 - (u - moved)) + (x - moved)
    k, f = reduced(u)
    is_near = k.equals(0.0)
    f = is_near.choose(x, f)
    more = is_near.choose(kind.number(0.0), lost / u)
    half_square, rest = _series(f)
    value = fma(k, own.high, f - (half_square - (rest + fma(k, own.low, more))))
    return _defined(u, value, x).with_sign_of(x)


def _of_base(x: Real, inverse: tuple[float, float], two: tuple[float, float]) -> Real:
    """The logarithm of another base, where `inverse` is 1 / ln base and `two` the logarithm of two:
    the greater part of ln(1 + f) with so few digits that its product is exact.
    """
    kind = x.kind
    k, f = reduced(x)
    half_square, rest = _series(f)
    most = f - half_square
    high = (most.bits() & -(1 << (kind.fraction // 2 + 1))).real()
    low = ((f - high) - half_square) + rest
    product = high * inverse[0]
    less = fma(low + high, inverse[1], low * inverse[0])
    whole = k * two[0]
    total = whole + product
    less = less + ((whole - total) + product)
    if two[1]:
        less = fma(k, two[1], less)
    return _defined(x, total + less)


def _series(f: Real) -> tuple[Real, Real]:
    """f²/2, and ln(1 + f) - f + f²/2."""
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    return half_square, s * fma(z, polynomial(z, OF_WIDTH[f.kind.width].terms), half_square)


def _defined(x: Real, value: Real, infinite: Real | None = None) -> Real:
    """The value for a positive finite x; what is right for another, which is `infinite` where x is
    not finite.
    """
    kind = x.kind
    of_positive = (x < inf).choose(value, x if infinite is None else infinite)
    of_others = x.equals(0.0).choose(kind.number(-inf), kind.number(nan))
    return (x > 0.0).choose(of_positive, of_others)


def reduced(x: Real) -> tuple[Real, Real]:
    """k and f of a positive finite x; subnormal ones are multiplied by a power of two first."""
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    more = kind.fraction + 2
    is_small = x < 2.0 ** (1 - kind.bias)
    bits = is_small.choose(x * 2.0**more, x).bits()
    one = kind.bias << kind.fraction
    moved = bits + (one - own.root)
    mantissa = (moved & ((1 << kind.fraction) - 1)) + own.root
    rounder = kind.number(kind.rounder)
    biased = ((moved >> kind.fraction) + rounder.bits()).real()
    offset = is_small.choose(
        kind.number(kind.rounder + kind.bias + more), kind.number(kind.rounder + kind.bias)
    )
    return biased - offset, mantissa.real() - 1.0

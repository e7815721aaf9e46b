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

from avial_lab.elementary.numbers import Real, fma, polynomial


@dataclass(frozen=True)
class Constants:
    """`high` + `low` is ln 2, `high` with so few digits that its product with any k is exact;
    `root` the bits of √½.
    """

    high: float
    low: float
    root: int
    terms: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        0.693145751953125,
        1.428606765330187e-06,
        0x3F3504F3,
        (0.6666678190231323, 0.39976873993873596, 0.29889795184135437),
    ),
    64: Constants(
        0.6931471803691238,
        1.9082149292705877e-10,
        0x3FE6A09E667F3BCD,
        (0.666666666666674, 0.39999999999376984, 0.285714287514888, 0.2222219757071492,
         0.18183619760344955, 0.15312551933190316, 0.14811705334824873),
    ),
}  # fmt: skip


def log(x: Real) -> Real:
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    k, f = reduced(x)
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    z = s * s
    inner = fma(s, half_square + z * polynomial(z, own.terms), k * own.low)
    value = fma(k, own.high, f - (half_square - inner))
    of_positive = (x < inf).choose(value, x)
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

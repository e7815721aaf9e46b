"""The arcs of tangent, sine and cosine.

    atan t = t - t³ P(t²)  for t up to `MIDDLE`,  asin s = s + s³ Q(s²)  up to ½

Of other quotients a / b of positive numbers, to which π/4 and π/2 are the nearest,

    atan(a/b) = π/4 + atan((a - b) / (a + b)),  atan(a/b) = π/2 + atan(-b / a)

so that one division does (fdlibm's s_atan.c has more cases), and of other sines

    asin x = π/2 - 2 asin √((1 - x) / 2)

P and Q are the polynomials nearest to these in the error that they make of the arcs, found as that
of the exponential is: below 2^-29.6 and 2^-57.7 (P), 2^-27.6 and 2^-59.8 (Q).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from avial_lab.compiler.codegen.math.double_double import Pair, total
from avial_lab.compiler.codegen.math.floats import Real, Truth, fma, polynomial


@dataclass(frozen=True)
class Constants:
    """`eighths` of a turn: π/4, π/2, 3π/4 and π, each in two numbers. `tangent`: of P, `sine`: of
    Q.
    """

    eighths: tuple[tuple[float, float], ...]
    tangent: tuple[float, ...]
    sine: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        ((0.7853981852531433, -2.1855694143368964e-08),
         (1.5707963705062866, -4.371138828673793e-08),
         (2.356194496154785, -5.962440319251527e-09),
         (3.1415927410125732, -8.742277657347586e-08)),
        (0.3333331048488617, -0.19998575747013092, 0.14255645871162415, -0.10812690109014511,
         0.0753118097782135, -0.03279248997569084),
        (0.16666752099990845, 0.074953094124794, 0.045469172298908234, 0.02418452873826027,
         0.04215897619724274),
    ),
    64: Constants(
        ((0.7853981633974483, 3.061616997868383e-17),
         (1.5707963267948966, 6.123233995736766e-17),
         (2.356194490192345, 9.184850993605148e-17),
         (3.141592653589793, 1.2246467991473532e-16)),
        (0.3333333333333302, -0.19999999999921006, 0.14285714278717254, -0.1111111079800728,
         0.0909090079676902, -0.07692165837264682, 0.0666501701270338, -0.05868896904560409,
         0.05184854944775941, -0.04434855588382894, 0.03370046492579954, -0.019245626286230437,
         0.005844038491577219),
        (0.1666666666666676, 0.07499999999970858, 0.04464285717457505, 0.03038194270895217,
         0.02237221496716921, 0.017351612205969414, 0.013980819969644788, 0.011398904930196928,
         0.010780352523259103, 0.0037058341045190005, 0.021709280236049934,
         -0.021002219583806644, 0.03263092327391804),
    ),
}  # fmt: skip

MIDDLE = 0.5625
"""The first quotient that π/4 is added for. Its arc is more than ½, and has no finer digits than
what is added.
"""


def atan(x: Real) -> Real:
    one = x.kind.number(1.0)
    return _first_quadrant(abs(x), one, one < 0.0).with_sign_of(x)


def atan2(y: Real, x: Real) -> Real:
    """Of infinite numbers it is as of 1 and 0, of two zeros as of 0 and 1. Great ones are made
    smaller: their sum is finite then; small ones greater: their parts have digits then.
    """
    kind, one = x.kind, x.kind.number(1.0)
    a, b = abs(y), abs(x)
    is_infinite, most = a.equals(inf) | b.equals(inf), 2.0 ** (kind.bias - 2)
    least, more = 2.0 ** (kind.fraction + 2 - kind.bias), 2.0 ** (kind.fraction + 2)
    greater = ((a < least) & (b < least)).choose(kind.number(more), one)
    scale = ((a > most) | (b > most)).choose(kind.number(0.25), greater)
    a, b = (
        is_infinite.choose(each.equals(inf).choose(one, each * 0.0), each * scale)
        for each in (a, b)
    )
    b = (a.equals(0.0) & b.equals(0.0)).choose(one, b)
    return _first_quadrant(a, b, one.with_sign_of(x) < 0.0).with_sign_of(y)


def _first_quadrant(a: Real, b: Real, is_turned: Truth) -> Real:
    """atan(a / b), and π less it where that `is_turned`."""
    kind, own = a.kind, OF_WIDTH[a.kind.width]
    is_beyond, is_above = a > b * MIDDLE, a > b + b
    over = is_above.choose(-b, is_beyond.choose(a - b, a))
    t = over / is_above.choose(a, is_beyond.choose(a + b, b))
    t = is_turned.choose(-t, t)
    zero, (eighth, quarter, more, half) = (0.0, 0.0), own.eighths
    high, low = (
        is_above.choose(
            kind.number(quarter[part]),
            is_beyond.choose(
                is_turned.choose(kind.number(more[part]), kind.number(eighth[part])),
                is_turned.choose(kind.number(half[part]), kind.number(zero[part])),
            ),
        )
        for part in (0, 1)
    )
    z = t * t
    return high + (t + fma(-(t * z), polynomial(z, own.tangent), low))


def asin(x: Real) -> Real:
    kind, size = x.kind, abs(x)
    quarter = Pair.of(kind, OF_WIDTH[kind.width].eighths[1])
    is_near, z = _near(size)
    s = is_near.choose(size, -(z.root() + z.root()))
    zero = kind.number(0.0)
    base = Pair(is_near.choose(zero, quarter.high), is_near.choose(zero, quarter.low))
    return _and_arc(base, s, z).with_sign_of(x)


def acos(x: Real) -> Real:
    """π/2 - asin x, 2 asin √… or π - 2 asin √…"""
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    is_near, z = _near(abs(x))
    s = is_near.choose(-x, (z.root() + z.root()).with_sign_of(x))
    high, low = (
        is_near.choose(kind.number(near), (x < 0.0).choose(kind.number(half), kind.number(0.0)))
        for near, half in zip(own.eighths[1], own.eighths[3], strict=True)
    )
    return _and_arc(Pair(high, low), s, z)


def _near(size: Real) -> tuple[Truth, Real]:
    """Whether it is up to ½, and the square of what the arc is taken of."""
    is_near = size < 0.5
    return is_near, is_near.choose(size * size, (1.0 - size) * 0.5)


def _and_arc(base: Pair, s: Real, z: Real) -> Real:
    """base + s + s z Q(z), of which s is no more than the base, if there is one."""
    whole = total(base.high, s)
    rest = fma(s * z, polynomial(z, OF_WIDTH[s.kind.width].sine), base.low)
    return whole.high + (whole.low + rest)

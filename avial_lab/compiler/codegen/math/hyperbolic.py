"""The hyperbolic tangent, sine and cosine.

Near zero the tangent is x + x³ P(x²); from `FROM` on ±(1 - 2 / (e^(2 |x|) + 1)).

With |x| = k ln 2 + r as in `exponential`, and m and p half of 2^k - 2^-k and of 2^k + 2^-k

    sinh |x| = m cosh r + p sinh r,  cosh x = p cosh r + m sinh r

    sinh r = r + r³ S(r²),  cosh r = 1 + r² C(r²)

but below 1, where of that little may be left, sinh x = x + x³ T(x²).

The polynomials are those nearest to what they stand for in the error that they make of the
function, found as that of the exponential is: below 2^-29.1 and 2^-59.2 (P), 2^-34.1 and 2^-61.6
(S), 2^-33.2 and 2^-69.9 (C), 2^-31.3 and 2^-61.5 (T).
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.compiler.codegen.math import exponential
from avial_lab.compiler.codegen.math.floats import Real, fma, polynomial

FROM = 0.75


@dataclass(frozen=True)
class Constants:
    """From `most` on the tangent is 1, and from `most_of_sine` on the others are infinite. `below`:
    of P, `sine`: of S, `cosine`: of C, `small`: of T.
    """

    most: float
    below: tuple[float, ...]
    most_of_sine: float
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    small: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        10.0,
        (-0.33333316445350647, 0.1333272010087967, -0.0538945347070694, 0.021457793191075325,
         -0.007665812503546476, 0.001741756685078144),
        89.5,
        (0.1666666716337204, 0.008333191275596619, 0.00019959300698246807),
        (0.5, 0.04166645556688309, 0.001393577316775918),
        (0.1666666716337204, 0.008333315141499043, 0.00019841664470732212, 2.790000053209951e-06),
    ),
    64: Constants(
        20.0,
        (-0.3333333333333327, 0.13333333333324351, -0.053968253963783464, 0.021869488424043636,
         -0.008863233868336814, 0.003592112161273514, -0.0014557314322353515,
         0.0005895602243794162, -0.00023762191569800633, 9.344596581491125e-05,
         -3.362026324601002e-05, 9.49441738410423e-06, -1.4862247272280571e-06),
        710.5,
        (0.16666666666666677, 0.008333333333321438, 0.00019841269886591083,
         2.7557243751019524e-06, 2.5109195778986135e-08),
        (0.5, 0.041666666666666685, 0.001388888888887331, 2.4801587349107076e-05,
         2.7557251930694e-07, 2.0921728097553015e-09),
        (0.16666666666666669, 0.00833333333333297, 0.0001984126984153125,
         2.7557319130348996e-06, 2.505212686280932e-08, 1.605699988380933e-10,
         7.765919561893076e-13),
    ),
}  # fmt: skip


def tanh(x: Real) -> Real:
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    size, square = abs(x), x * x
    below = fma(x * square, polynomial(square, own.below), x)
    within = size.at_most(own.most)
    k, part = exponential.less_one(within + within)
    scale = kind.power_of_two(k + kind.bias)
    above = 1.0 - kind.number(2.0) / fma(scale, part, scale + 1.0)
    return (size < FROM).choose(below, above).with_sign_of(x)


def sinh(x: Real) -> Real:
    own, square = OF_WIDTH[x.kind.width], x * x
    great, small, sine, beside = _parts(abs(x))
    rest = fma(great - small, beside, (great + small) * sine)
    half = great + (rest - small)
    below = fma(x * square, polynomial(square, own.small), x)
    return (abs(x) < 1.0).choose(below, half + half).with_sign_of(x)


def cosh(x: Real) -> Real:
    great, small, sine, beside = _parts(abs(x))
    half = great + (fma(great + small, beside, (great - small) * sine) + small)
    return half + half


def _parts(size: Real) -> tuple[Real, Real, Real, Real]:
    """A quarter of 2^k and of 2^-k, sinh r and cosh r - 1. (Half of 2^k may be infinite; from 40 on
    2^-k is nothing beside it, and no normal number in the end.)
    """
    kind, own = size.kind, OF_WIDTH[size.kind.width]
    within = size.at_most(own.most_of_sine)
    k, r, rest = exponential.reduced(within)
    square = r * r
    sine = r + fma(r * square, polynomial(square, own.sine), rest)
    great = kind.power_of_two(k + (kind.bias - 2))
    small = (within < 40.0).choose(kind.power_of_two((kind.bias - 2) - k), kind.number(0.0))
    return great, small, sine, square * polynomial(square, own.cosine)

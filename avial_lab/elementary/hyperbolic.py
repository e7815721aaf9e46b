"""The hyperbolic tangent.

Near zero it is x + x³ P(x²); from `FROM` on ±(1 - 2 / (e^(2 |x|) + 1)).

P is the polynomial nearest to (tanh x / x - 1) / x² in the error that it makes of the tangent,
found as that of the exponential is: below 2^-29.1 and 2^-59.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.elementary import exponential
from avial_lab.elementary.numbers import Real, fma, polynomial

FROM = 0.75


@dataclass(frozen=True)
class Constants:
    """From `most` on the function is 1."""

    most: float
    below: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        10.0,
        (-0.33333316445350647, 0.1333272010087967, -0.0538945347070694, 0.021457793191075325,
         -0.007665812503546476, 0.001741756685078144),
    ),
    64: Constants(
        20.0,
        (-0.3333333333333327, 0.13333333333324351, -0.053968253963783464, 0.021869488424043636,
         -0.008863233868336814, 0.003592112161273514, -0.0014557314322353515,
         0.0005895602243794162, -0.00023762191569800633, 9.344596581491125e-05,
         -3.362026324601002e-05, 9.49441738410423e-06, -1.4862247272280571e-06),
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

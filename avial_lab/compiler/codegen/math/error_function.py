"""The error function: 2/√π ∫₀ˣ e^(-t²) dt.

Near zero it is x + x P(x²); from `FROM` on ±(1 - e^(-Q(|x| - FROM))), where Q is -ln erfc: of what
is taken from 1, few digits are left in the difference, and ever fewer.

P and Q are the polynomials nearest to what they stand for, in the error that they make of erf,
found as that of the exponential is: below 2^-27.1 and 2^-56 (P), 2^-26.6 and 2^-55.7 (Q), where
most is the rounding of Q's first coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.compiler.codegen.math import exponential
from avial_lab.compiler.codegen.math.floats import Real, fma, polynomial

FROM = 0.84375


@dataclass(frozen=True)
class Constants:
    """`below` of P, `above` of Q. From `most` on the function is 1."""

    most: float
    below: tuple[float, ...]
    above: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        4.0,
        (0.12837916612625122, -0.37612590193748474, 0.11282879114151001, -0.026808327063918114,
         0.005060051567852497, -0.0006365172448568046),
        (1.4576858282089233, 2.3786981105804443, 0.8220959901809692, 0.04825485125184059,
         -0.011513103730976582, 0.0020687885116785765, -0.00019944304949603975),
    ),
    64: Constants(
        6.0,
        (0.12837916709551256, -0.3761263890318333, 0.11283791670932851, -0.02686617064039425,
         0.005223977573154716, -0.0008548323632349055, 0.00012055195102312904,
         -1.4922029383064704e-05, 1.640056072174958e-06, -1.5707563191045693e-07,
         1.0707583000752417e-08),
        (1.457685797861741, 2.3786996504088047, 0.822078183395574, 0.04833252999366505,
         -0.011661214454314613, 0.0021803603330222666, -0.00018671006569942014,
         -6.95597461023056e-05, 4.287293964256921e-05, -1.2775547896856449e-05,
         1.958589456902138e-06, 2.4712819540420654e-07, -2.862791343195849e-07,
         1.1042364090664526e-07, -2.7917295624997924e-08, 4.955306099734596e-09,
         -5.994267836036556e-10, 4.452612062813015e-11, -1.5323881154576009e-12),
    ),
}  # fmt: skip


def erf(x: Real) -> Real:
    kind, own = x.kind, OF_WIDTH[x.kind.width]
    size = abs(x)
    below = fma(x, polynomial(x * x, own.below), x)
    beyond = size.at_most(own.most) - FROM
    first, *rest = own.above
    k, part = exponential.about_less_one(-fma(beyond, polynomial(beyond, rest), first))
    scale = kind.power_of_two(k + kind.bias)
    above = kind.number(1.0) - fma(scale, part, scale)
    return (size < FROM).choose(below, above.with_sign_of(x))

"""Sine, cosine and tangent: of arguments up to a limit, and of those beyond.

x -> k and r with x = k π/2 + r, |r| <= π/4 -> ± sin r or ± cos r, as the last two bits of k say;
tan r or -1 / tan r, as the last one does.

π/2 comes in parts (Cody and Waite, Software Manual for the Elementary Functions, 1980, chapter 8).
The first two end where the digits of such an x end, so that these differences are exact. Some x lie
so near to a multiple of π/2 that all of their digits are gone by then: the rest is two parts more,
and r two numbers.

    sin r = r - r³ P(r²),  cos r = 1 + r² Q(r²),  tan r = r + r³ T(r²)

where P, Q and T are the polynomials nearest to these in the error that they make of the functions,
found as that of the exponential is: below 2^-27.8 and 2^-57.8 (P), 2^-32.9 and 2^-63.7 (Q), 2^-29.5
and 2^-59.9 (T).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

from mlir.dialects import arith

from avial_lab.compiler.codegen.math.double_double import product
from avial_lab.compiler.codegen.math.far_reduction import reduced_far
from avial_lab.compiler.codegen.math.floats import Real, Whole, fma, horner, polynomial


@dataclass(frozen=True)
class Constants:
    """`parts` add up to π/2. The product of each but the last with k is exact: that has 11 bits for
    an x within the limit, or 20. `sine`: of P, `cosine`: of Q, `tangent`: of T.
    """

    parts: tuple[float, float, float, float]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    tangent: tuple[float, ...]


OF_WIDTH = {
    32: Constants(
        (1.570556640625, 0.0002396702766418457, 1.5890691429376602e-08, 2.5633440682570896e-12),
        (0.16666655242443085, -0.008332190103828907, 0.00019518454791978002),
        (-0.5, 0.04166664555668831, -0.0013887310633435845, 2.4432567443000153e-05),
        (0.33333349227905273, 0.13332676887512207, 0.054058678448200226, 0.021287573501467705,
         0.01082371175289154, 0.00010309791832696646, 0.00437027495354414),
    ),
    64: Constants(
        (1.5707963267341256, 6.077094383272197e-11, 6.12323399538461e-17, 3.5215598651832e-27),
        (0.1666666666666663, -0.008333333333321922, 0.00019841269829463137,
         -2.755731358434574e-06, 2.5050742705689586e-08, -1.5895968806317136e-10),
        (-0.5, 0.04166666666666659, -0.0013888888888872349, 2.4801587288469685e-05,
         -2.7557314081544553e-07, 2.0875688863071893e-09, -1.1357969834305957e-11),
        (0.33333333333333376, 0.13333333333326092, 0.053968253972529176, 0.02186948840900154,
         0.008863237771523796, 0.003592102414706157, 0.0014560348651594247,
         0.000588917053922329, 0.00024356652353388009, 8.402577911332228e-05,
         6.637947529646355e-05, -2.457609210614728e-05, 4.7758259811864886e-05,
         -2.3841341057894516e-05, 9.703169230793245e-06),
    ),
}  # fmt: skip

LIMIT = {32: 3216.0, 64: 1647099.0}
"""The size of the arguments in question, by their bits."""


Quarters = tuple[Whole, Real, Real]


def sin(x: Real) -> Real:
    return _sine(reduced(x))


def cos(x: Real) -> Real:
    return _cosine(reduced(x))


def tan(x: Real) -> Real:
    return _tangent(reduced(x))


def sin_far(x: Real) -> Real:
    return _far(_sine, x)


def cos_far(x: Real) -> Real:
    return _far(_cosine, x)


def tan_far(x: Real) -> Real:
    return _far(_tangent, x)


def _far(function: Callable[[Quarters], Real], x: Real) -> Real:
    """Of one number of any size. One of single precision may be within the limit of double
    precision, in which it is computed.
    """
    if x.kind.width == 64:
        return function(reduced_far(x))
    wide = x.wide()
    (k, r, less), (far_k, far_r, far_less) = reduced(wide), reduced_far(wide)
    is_far = abs(wide) > LIMIT[64]
    k = Whole(wide.kind, arith.select(is_far.value, far_k.value, k.value))
    r, less = is_far.choose(far_r, r), is_far.choose(far_less, less)
    return function((k, r, less)).narrow(32)


def _sine(quarters: Quarters) -> Real:
    return _quarter(*quarters)


def _cosine(quarters: Quarters) -> Real:
    """The sine a quarter further."""
    k, r, less = quarters
    return _quarter(k + 1, r, less)


def _tangent(quarters: Quarters) -> Real:
    """-1 / tan r of both numbers that tan r is. What r is too great by is taken from it last, and
    as +0: so the sign of zero stays.
    """
    k, r, less = quarters
    square, (first, *terms) = _square(r, less), OF_WIDTH[r.kind.width].tangent
    most = fma(square, polynomial(square, terms), first)
    rest = fma(-r * square, most, less)
    high = r - rest
    low = (r - high) - rest
    inverse = r.kind.number(-1.0) / high
    found = product(inverse, high)
    left = fma(inverse, low, (found.high + 1.0) + found.low)
    return (k & 1).equals(0).choose(high, fma(inverse, left, inverse))


def _square(r: Real, less: Real) -> Real:
    return fma(r, r, -(r + r) * less)


def reduced(x: Real) -> tuple[Whole, Real, Real]:
    """k, of which the last bits count, r, and what rounding made it too great by."""
    kind, (first, second, third, last) = x.kind, OF_WIDTH[x.kind.width].parts
    moved = fma(x, 2 / pi, kind.rounder)
    k = moved - kind.rounder
    near = fma(k, -second, fma(k, -first, x))
    rest = k * third
    r = near - rest
    return moved.bits(), r, fma(k, last, rest - (near - r))


def _quarter(k: Whole, r: Real, less: Real) -> Real:
    """sin(k π/2 + r - less). In the sine all that is taken from r is +0 where that is -0.0. The
    greatest terms of the polynomials are added last, as they are rounded the most.
    """
    kind, own = r.kind, OF_WIDTH[r.kind.width]
    square = _square(r, less)
    sine = r - fma(r * square, horner(square, own.sine), less)
    cosine = fma(square, horner(square, own.cosine), 1.0)
    value = (k & 1).equals(0).choose(sine, cosine)
    return (value.bits() ^ ((k & 2) << (kind.width - 2))).real()

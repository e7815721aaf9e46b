"""x to the power of y.

x, y -> y log₂|x| -> 2 to the power of that, and its sign.

Its error is that of the product, which is up to 1075: the logarithm needs eleven digits more than
the power has. Single precision is computed in double. That has its logarithm in pairs of numbers,

    log₂|x| = k + s (D + z (D/3 + z (D/5 + z R(z)))),  s = f / (2 + f),  z = s²,  D = 2 / ln 2

with k and f of |x| = 2^k (1 + f) as in `logarithm`. R and, for single precision, all of the series
S(z) in the parentheses are the polynomials nearest to these in the error that they make of the
logarithm, found as that of the exponential is: below 2^-72.6 (R) and 2^-37.7 (S). The other errors
add up to 2^-67.

What is to come out where x or y is 0, 1 or infinite, and where x is negative, says the C standard
(ISO/IEC 9899:2018, F.10.4.4).
"""

from __future__ import annotations

from math import inf, nan

from avial_lab.compiler.codegen.math import double_double, exponential, logarithm
from avial_lab.compiler.codegen.math.double_double import Pair, product, total
from avial_lab.compiler.codegen.math.floats import Real, Truth, fma, polynomial

FIRST = (2.8853900817779268, 4.0710547481862066e-17)
SECOND = (0.9617966939259756, 5.0577616648125907e-17)
THIRD = (0.5770780163555853, 5.2551030481378675e-17)
"""2 / ln 2, a third and a fifth of it, each in two numbers."""

REST = (0.4121985831112032, 0.3205988979415417, 0.2623081956686034, 0.22195244577962914,
        0.19239544890290725, 0.16855622663559477, 0.17204576652771902)  # fmt: skip
SERIES = (2.8853900817907094, 0.9617966724999513, 0.5770837556168826, 0.4116619553036841,
          0.3409379531402559)  # fmt: skip
"""R and S."""

GREATEST = {32: 1e38, 64: 1e300}
"""What a greater y may be replaced with: all powers but those of 1 are zero or infinite there."""


def powf(x: Real, y: Real) -> Real:
    kind, size = x.kind, abs(x)
    within = y.at_most(GREATEST[kind.width]).at_least(-GREATEST[kind.width])
    value = _in_pairs(size, within) if kind.width == 64 else _in_double(size, within)
    value = (y.equals(0.0) | x.equals(1.0)).choose(kind.number(1.0), value)
    sign = _is_whole(y * 0.5).choose(size, x).bits() & (1 << (kind.width - 1))
    of_fraction = ((x < 0.0) & (x > -inf)).choose(kind.number(nan), value)
    return _is_whole(y).choose((value.bits() ^ sign).real(), of_fraction)


def _in_double(size: Real, y: Real) -> Real:
    wide = size.wide()
    k, f = logarithm.reduced(wide)
    s = f / (f + 2.0)
    log = _of_any(wide, fma(s, polynomial(s * s, SERIES), k))
    return exponential.exp2_in_double(y.wide() * log).narrow(32)


def _in_pairs(size: Real, y: Real) -> Real:
    log = _log2(size)
    high = _of_any(size, log.high)
    most = product(y, high)
    is_exact = abs(most.high) < 2.0**11
    less = is_exact.choose(fma(y, log.low, most.low), y.kind.number(0.0))
    return exponential.exp2_of_sum(most.high, less)


def _of_any(size: Real, log: Real) -> Real:
    """The logarithm of zero, infinity and NaN too."""
    finite = (size < inf).choose(log, size)
    return size.equals(0.0).choose(size.kind.number(-inf), finite)


def _log2(size: Real) -> Pair:
    k, f = logarithm.reduced(size)
    kind = size.kind
    s = _quotient(f)
    z = s * s
    rest = polynomial(z.high, REST)
    third = fma(z.high, rest, THIRD[0])
    lost = fma(z.high, rest, THIRD[0] - third) + THIRD[1]
    second = double_double.fma(z, Pair(third, lost), Pair.of(kind, SECOND))
    log = s * double_double.fma(z, second, Pair.of(kind, FIRST))
    whole = total(k, log.high)
    return Pair(whole.high, whole.low + log.low)


def _quotient(f: Real) -> Pair:
    """f / (2 + f)."""
    below = f + 2.0
    lost = f - (below - 2.0)
    inverse = f.kind.number(1.0) / below
    s = f * inverse
    found = product(s, below)
    return Pair(s, (((f - found.high) - found.low) - s * lost) * inverse)


def _is_whole(y: Real) -> Truth:
    """Also where it is infinite. Adding and subtracting 2^fraction drops what is behind the point,
    which a number from there on does not have.
    """
    most = 2.0**y.kind.fraction
    size = abs(y).at_most(most)
    return ((size + most) - most).equals(size)

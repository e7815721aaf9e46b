"""The cube root.

x -> q, m and f with |x| = 2^(3 q) m, m = 2^i (1 + f), |i| <= 1, √½ <= 1 + f < √2 -> 2^q ∛m.

1 / ∛m is W(f) 2^(-i/3) at first, w (1 + (1 - m w³) / 3) then, ten digits as many; of the root y = m
w² Newton's step is taken with all that y³ - m has (Markstein, IA-64 and Elementary Functions, 2000,
has such steps for roots without a division).

W is the polynomial nearest to (1 + f)^(-1/3), found as that of the exponential is: the error is
below 2^-9.1 and 2^-17.4.
"""

from __future__ import annotations

from math import inf

from avial_lab.compiler.codegen.math import logarithm
from avial_lab.compiler.codegen.math.double_double import product
from avial_lab.compiler.codegen.math.floats import Real, fma, polynomial

TERMS = {
    32: (1.0005974769592285, -0.34789350628852844, 0.20970164239406586),
    64: (1.000003856808801, -0.33326096764422164, 0.2216038961494592, -0.17581699997285946,
         0.16043446535697495, -0.10809937312242929),
}  # fmt: skip


def cbrt(x: Real) -> Real:
    """Zeros, infinite numbers and NaN are their own."""
    kind, size = x.kind, abs(x)
    k, f = logarithm.reduced(size)
    moved = fma(k, 1 / 3, kind.rounder)
    third = moved - kind.rounder
    i = fma(third, -3.0, k)
    scale = (i > 0.5).choose(kind.number(2.0 ** (-1 / 3)), kind.number(1.0))
    scale = (i < -0.5).choose(kind.number(2.0 ** (1 / 3)), scale)
    m = f + 1.0
    m = (i > 0.5).choose(m + m, (i < -0.5).choose(m * 0.5, m))
    w = polynomial(f, TERMS[kind.width]) * scale
    w = fma(w * fma(-m * w, w * w, 1.0), 1 / 3, w)
    square = w * w
    y = m * square
    whole = product(y, y)
    over = product(whole.high, y)
    left = ((over.high - m) + over.low) + whole.low * y
    root = fma(left * square, -1 / 3, y)
    q = moved.bits() - (kind.number(kind.rounder).bits() - kind.bias)
    value = (root * kind.power_of_two(q)).with_sign_of(x)
    return ((size > 0.0) & (size < inf)).choose(value, x)

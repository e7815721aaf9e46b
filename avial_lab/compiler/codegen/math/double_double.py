"""Numbers of twice the digits: the sum of two, of which the second is what the first lost.

Real -> Pair, and back by `high + low` (Dekker, A floating-point technique for extending the
available precision, Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.compiler.codegen.math import floats
from avial_lab.compiler.codegen.math.floats import Kind, Real


@dataclass(frozen=True)
class Pair:
    high: Real
    low: Real

    @staticmethod
    def of(kind: Kind, number: tuple[float, float]) -> Pair:
        high, low = number
        return Pair(kind.number(high), kind.number(low))

    def __mul__(self, other: Pair) -> Pair:
        whole = product(self.high, other.high)
        crossed = floats.fma(self.low, other.high, whole.low)
        return Pair(whole.high, floats.fma(self.high, other.low, crossed))


def product(a: Real, b: Real) -> Pair:
    """Without an error, where nothing underflows; the second part of an infinite one is none."""
    high = a * b
    if a.kind.fused:
        return Pair(high, floats.fma(a, b, -high))
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    low = (((a_high * b_high) - high) + a_high * b_low) + a_low * b_high
    return Pair(high, low + a_low * b_low)


def total(a: Real, b: Real) -> Pair:
    """Of two numbers, the first of them no less in size."""
    high = a + b
    return Pair(high, (a - high) + b)


def fma(a: Pair, b: Pair, c: Pair) -> Pair:
    """a · b + c, where c is the greatest."""
    if not c.high.kind.fused:
        more = a * b
        whole = total(c.high, more.high)
        return Pair(whole.high, whole.low + (c.low + more.low))
    high = floats.fma(a.high, b.high, c.high)
    lost = floats.fma(a.high, b.high, c.high - high)
    crossed = floats.fma(a.high, b.low, floats.fma(a.low, b.high, c.low))
    return Pair(high, lost + crossed)


def _halves(x: Real) -> tuple[Real, Real]:
    """So that the products of halves are exact, or nearly: those of the second."""
    high = (x.bits() & -(1 << (x.kind.fraction // 2 + 1))).real()
    return high, x - high

"""Floating-point numbers: rounded once, from whatever is exact; compared; as bits.

Exact number -> nearest of a type, ties to even, without the double rounding that a way over another
type would bring.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tests.witness.values import Compound, Element, Float, Integer, Number, Undefined, Unsupported


def rounded(exact: int | Fraction | np.float64, kind: Float) -> Number:
    """The nearest of the type.

    To f64 Python rounds ints and fractions right. To a narrower type: by a double, then a single,
    whose last bit is made odd where digits are lost; that has two bits more than the target, so
    that nothing seems to lie half-way that does not (S. Boldo, G. Melquiond, 2008).
    """
    if isinstance(exact, float) and not math.isfinite(exact):
        return kind.dtype.type(exact)
    if isinstance(exact, float) and exact == 0:
        return kind.dtype.type(exact)  # with its sign
    value = Fraction(exact)
    if kind.dtype == np.float64:
        return np.float64(_nearest_double(value))
    double = _to_odd(value, np.float64)
    if kind.dtype in (np.float32, np.float16):
        return kind.dtype.type(double)
    return kind.dtype.type(_to_odd(value, np.float32))


def _nearest_double(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _to_odd(value: Fraction, type_: type[np.floating[Any]]) -> np.floating[Any]:
    """Rounded to odd: the neighbour with an odd last bit where `value` is none of the type."""
    near = type_(_nearest_double(value))
    if not np.isfinite(near):
        return type_(np.copysign(np.finfo(type_).max, near))
    exact = Fraction(float(near))
    if exact == value:
        return near
    bits = near.view({4: np.uint32, 8: np.uint64}[near.itemsize])
    if int(bits) & 1:
        return near
    return np.nextafter(near, type_(math.inf if value > exact else -math.inf))


def fused(x: Number, y: Number, z: Number, kind: Float) -> Number:
    """x * y + z, rounded once."""
    numbers = [float(x), float(y), float(z)]
    exact: Fraction | None = None
    if all(map(math.isfinite, numbers)):
        exact = Fraction(numbers[0]) * Fraction(numbers[1]) + Fraction(numbers[2])
    if not exact:  # also the zeros, whose sign is that of IEEE's sum
        wide = np.float64(numbers[0]) * np.float64(numbers[1])
        if exact is not None and numbers[0] and numbers[1]:
            wide = np.float64(-numbers[2])
        return kind.read(wide + np.float64(numbers[2]))
    return rounded(exact, kind)


# -- order -----------------------------------------------------------------------------------------


def _extreme(x: Number, y: Number, *, number: bool, above: bool) -> Number:
    if np.isnan(x) or np.isnan(y):
        return (y if np.isnan(x) else x) if number else x + y
    if x == y:
        return x if bool(np.signbit(x)) != above else y
    return x if (x > y) == above else y


def greatest(x: Number, y: Number, *, number: bool) -> Number:
    """`number`: one that is no number gives way. +0 is above -0."""
    return _extreme(x, y, number=number, above=True)


def least(x: Number, y: Number, *, number: bool) -> Number:
    return _extreme(x, y, number=number, above=False)


_COMPARISONS = (
    lambda x, y: x == y,
    lambda x, y: x > y,
    lambda x, y: x >= y,
    lambda x, y: x < y,
    lambda x, y: x <= y,
    lambda x, y: x != y,
)


def compared(predicate: int, x: Number, y: Number) -> int:
    """arith.cmpf by its number: false, oeq ogt oge olt ole one, ord, ueq … une, uno, true."""
    unordered = bool(np.isnan(x) or np.isnan(y))
    if predicate in (0, 15):
        return int(predicate == 15)
    if predicate in (7, 14):
        return int(unordered == (predicate == 14))
    if unordered:
        return int(predicate > 7)
    return int(bool(_COMPARISONS[(predicate - 1) % 7](x, y)))


# -- integers and bits -----------------------------------------------------------------------------


def as_integer(x: Number, low: int, high: int) -> int:
    """Cut towards zero; Undefined where no integer of the type is that."""
    wide = float(x)
    if not math.isfinite(wide) or not low <= math.trunc(wide) <= high:
        raise Undefined(f"{wide} as an integer from {low} to {high}")
    return math.trunc(wide)


def bits_of(x: Number, kind: Element) -> int:
    if isinstance(kind, Integer):
        return int(x)
    if isinstance(kind, Compound):
        raise Unsupported("the bits of a vector")
    return int(np.array([x], kind.dtype).view(f"u{kind.dtype.itemsize}")[0])


def from_bits(bits: int, kind: Element) -> Number:
    if isinstance(kind, Integer):
        return bits & kind.mask
    if isinstance(kind, Compound):
        raise Unsupported("a vector of bits")
    return np.array([bits], f"u{kind.dtype.itemsize}").view(kind.dtype)[0]

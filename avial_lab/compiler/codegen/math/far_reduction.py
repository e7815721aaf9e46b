"""Multiples of π/2 taken from arguments of any size, with as many digits of 2/π as that needs.

|x| beyond the limit of `trigonometric.reduced` -> k, of which the last two bits count, r and what
rounding made it too great by.

An x = M 2^e with a whole M of 53 bits; x 2/π modulo 4 is M times those 192 bits of 2/π that begin
with the one that stands for 2 in the product, modulo 2^192: the digits before give multiples of 4,
and those behind less than 2^-137, where no x is nearer to a multiple of π/2 than 2^-61. (M. Payne,
R. Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983; K. C. Ng,
Argument reduction for huge arguments: good to the last bit, 1992.)
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.codegen.math.double_double import product
from avial_lab.compiler.codegen.math.floats import Real, Whole, fma

_FRACTION_BITS, _BIAS = 52, 1075
"""A number is its last 52 bits, and one before, times 2^(exponent - 1075)."""

_DIGITS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
"""Of 2/π, 64 at a time, behind 64 zeros."""

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


def reduced_far(x: Real) -> tuple[Whole, Real, Real]:
    """Of one number of double precision; none where it is infinite or none."""
    bits = x.bits()
    size = bits & ((1 << 63) - 1)
    exponent = size >> _FRACTION_BITS
    whole = (size & ((1 << _FRACTION_BITS) - 1)) + (1 << _FRACTION_BITS)
    begin = exponent + (62 - _BIAS)
    turns = _product(whole, _window(begin))
    return _divided(x, turns)


def _window(begin: Whole) -> tuple[Whole, Whole, Whole]:
    """The 192 digits from the one of that number on, the last word first."""
    word, inside = begin >> 6, begin & 63
    words = [_word(word + k) for k in range(4)]
    last, middle, first = (_joined(words[k], words[k + 1], inside) for k in (2, 1, 0))
    return last, middle, first


def _word(number: Whole) -> Whole:
    found = number.kind.bits(0)
    for k, digits in enumerate(_DIGITS):
        found = _either(number.equals(k).value, number.kind.bits(digits), found)
    return found


def _joined(high: Whole, low: Whole, count: Whole) -> Whole:
    """Both words moved to the left by so many bits, fewer than 64: the first."""
    kind = high.kind
    left = arith.shli(high.value, count.value)
    right = arith.shrui((low >> 1).value, (63 - count).value)
    return Whole(kind, arith.ori(left, right))


def _product(whole: Whole, window: Sequence[Whole]) -> tuple[Whole, Whole, Whole]:
    """Modulo 2^192, the last word first."""
    kind = whole.kind
    parts = [arith.mului_extended(whole.value, each.value) for each in window]
    (first, up), (middle, more), (last, _) = parts
    second = arith.addi(middle, up)
    is_over = arith.cmpi(arith.CmpIPredicate.ult, second, up)
    third = arith.addi(arith.addi(last, more), arith.extui(kind.whole, is_over))
    return Whole(kind, first), Whole(kind, second), Whole(kind, third)


def _divided(x: Real, turns: tuple[Whole, Whole, Whole]) -> tuple[Whole, Real, Real]:
    """Of a number of quarters modulo 4, 2 bits before the point and 190 behind: the nearest whole
    number, and what is left as radians.
    """
    kind = x.kind
    last, middle, first = turns
    two = kind.bits(2)
    high, low = _joined(first, middle, two), _joined(middle, last, two)
    is_more = arith.cmpi(arith.CmpIPredicate.slt, high.value, kind.bits(0).value)
    quarters = (first >> 62) + (high >> 63)
    # Where the fraction is 1/2 or more it is taken from 1: both words are negated together.
    borrow = _either(low.equals(0).value, kind.bits(0), kind.bits(1))
    high = _either(is_more, 0 - high - borrow, high)
    low = _either(is_more, 0 - low, low)
    size = ((high >> 1).value, kind.bits(1).value)
    about = Real(kind, arith.sitofp(kind.real, arith.ori(*size)))
    zeros = (62 + 1023) - (about.bits() >> _FRACTION_BITS)
    left, rest = _joined(high, low, zeros), Whole(kind, arith.shli(low.value, zeros.value))
    scale = kind.power_of_two(1023 - zeros)
    ahead = _real(left >> 11) * (scale * 2.0**-53)
    behind = _real((left << 52) & ((1 << 63) - 1) ^ (rest >> 12)) * (scale * 2.0**-116)
    turn = product(ahead, kind.number(_HALF_PI[0]))
    less = turn.low + fma(ahead, _HALF_PI[1], behind * _HALF_PI[0])
    r = turn.high + less
    less = (r - turn.high) - less
    is_negative = arith.xori(
        is_more, arith.cmpi(arith.CmpIPredicate.slt, x.bits().value, kind.bits(0).value)
    )
    turned = _either((x.bits() >> 63).equals(0).value, quarters, 0 - quarters)
    r, less = (
        Real(kind, arith.select(is_negative, (-each).value, each.value)) for each in (r, less)
    )
    none = x - x  # of an infinite one, and of one that is none
    return turned, r + none, less


def _real(number: Whole) -> Real:
    """Of one with the sign bit 0."""
    return Real(number.kind, arith.sitofp(number.kind.real, number.value))


def _either(condition: ir.Value, if_true: Whole, if_false: Whole) -> Whole:
    return Whole(if_true.kind, arith.select(condition, if_true.value, if_false.value))

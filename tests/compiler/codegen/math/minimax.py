"""The coefficients of elementary functions: `python -m tests.compiler.codegen.math.minimax` prints
them all.

What is approximated, where, in which error, with how many terms -> coefficients of single or double
precision, and their error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from avial_lab.compiler.codegen.math import (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    root,
    trigonometric,
)
from avial_lab.compiler.codegen.math.error_function import FROM
from avial_lab.compiler.codegen.math.inverse_trigonometric import MIDDLE

Number = Any
"""One of mpmath's."""

DIGITS = 60
GRID = 1500


@dataclass(frozen=True)
class Fit:
    """The polynomial that `weight` · (`wanted` - polynomial) is least of from `low` to `high`.

    `terms` are those the code has, and their error is below 2^`exponent`.
    """

    name: str
    width: int
    wanted: Callable[[Number], Number]
    weight: Callable[[Number], Number]
    low: float
    high: float
    terms: tuple[float, ...]
    exponent: float

    def error(self, terms: tuple[float, ...]) -> Number:
        """The greatest of those on a grid."""
        with mpmath.workdps(DIGITS):
            return max(abs(e) for e in self._errors(list(map(mpmath.mpf, terms))))

    def found(self) -> tuple[float, ...]:
        """Rounded one after the other: each time the rest is fitted once more (least squares)."""
        with mpmath.workdps(DIGITS):
            exact, nodes = self._exchanged(), self._nodes(4 * len(self.terms))
            goal = [_value(exact, x) for x in nodes]
            done: list[Number] = []
            while len(done) < len(self.terms):
                done.append(_rounded(exact[len(done)], self.width))
                powers = range(len(done), len(self.terms))
                if powers:
                    left = [g - _value(done, x) for g, x in zip(goal, nodes, strict=True)]
                    exact = done + self._squares(nodes, left, powers)
            return tuple(map(float, done))

    def _exchanged(self) -> list[Number]:
        """Remez: of as many points as there are terms, and one, those where the error is greatest
        by turns of sign.
        """
        count, points = len(self.terms), self._nodes(len(self.terms) + 1)
        grid = self._nodes(GRID)
        terms: list[Number] = []
        for _ in range(12):
            rows = [
                [x**k for k in range(count)] + [(-1) ** i / self.weight(x)]
                for i, x in enumerate(points)
            ]
            solved = mpmath.lu_solve(
                mpmath.matrix(rows), mpmath.matrix(list(map(self.wanted, points)))
            )
            terms = list(solved)[:count]
            errors = self._errors(terms)
            turns = list(_greatest_by_turns(errors))
            while len(turns) > count + 1:
                turns.pop(0 if abs(errors[turns[0]]) < abs(errors[turns[-1]]) else -1)
            if len(turns) <= count or max(map(abs, errors)) < abs(solved[count]) * mpmath.mpf(
                "1.01"
            ):
                break
            points = [grid[k] for k in turns]
        return terms

    def _squares(self, nodes: list[Number], left: list[Number], powers: range) -> list[Number]:
        weights = list(map(self.weight, nodes))
        rows = mpmath.matrix(
            [[w * x**k for k in powers] for w, x in zip(weights, nodes, strict=True)]
        )
        goal = mpmath.matrix([w * each for w, each in zip(weights, left, strict=True)])
        return list(mpmath.lu_solve(rows.T * rows, rows.T * goal))

    def _errors(self, terms: list[Number]) -> list[Number]:
        return [self.weight(x) * (self.wanted(x) - _value(terms, x)) for x in self._nodes(GRID)]

    def _nodes(self, count: int) -> list[Number]:
        """Chebyshev's."""
        middle = (mpmath.mpf(self.low) + self.high) / 2
        half = (mpmath.mpf(self.high) - self.low) / 2
        return [
            middle - half * mpmath.cospi((2 * k + mpmath.mpf(1)) / (2 * count))
            for k in range(count)
        ]


def _rounded(value: Number, width: int) -> Number:
    return mpmath.mpf(float(np.float32(float(value)) if width == 32 else value))


def _value(terms: list[Number], x: Number) -> Number:
    total = mpmath.mpf(0)
    for each in reversed(terms):
        total = total * x + each
    return total


def _greatest_by_turns(errors: list[Number]) -> Iterator[int]:
    """Of each stretch of one sign where it is greatest."""
    best = 0
    for k, error in enumerate(errors):
        if (error >= 0) != (errors[best] >= 0):
            yield best
            best = k
        elif abs(error) > abs(errors[best]):
            best = k
    yield best


def _of_power(r: Number) -> Number:
    """(e^r - 1 - r) / r²."""
    return (mpmath.expm1(r) - r) / r**2 if abs(r) > 1e-9 else 1 / mpmath.mpf(2) + r / 6


def _of_logarithm(z: Number) -> Number:
    """(2 artanh s - 2 s) / s³ with s² = z."""
    s = mpmath.sqrt(z)
    return (2 * mpmath.atanh(s) / s - 2) / z


def _of_erf(z: Number) -> Number:
    """erf(x) / x - 1 with x² = z."""
    x = mpmath.sqrt(z)
    return mpmath.erf(x) / x - 1


def _of_power_of_two(r: Number) -> Number:
    """(2^r - 1 - r ln 2) / r²."""
    return _of_power(r * mpmath.ln2) * mpmath.ln2**2


def _of_tangent(z: Number) -> Number:
    """(tanh(x) / x - 1) / x² with x² = z."""
    x = mpmath.sqrt(z)
    return (mpmath.tanh(x) / x - 1) / z


def _beyond(v: Number) -> Number:
    return -mpmath.log(mpmath.erfc(v + FROM))


def _of_log2(terms: int) -> Callable[[Number], Number]:
    """log₂((1 + s) / (1 - s)) / s with s² = z, without so many of the first terms of its series."""

    def rest(z: Number) -> Number:
        s = mpmath.sqrt(z)
        known = sum(z**k / (2 * k + 1) for k in range(terms))
        return (mpmath.atanh(s) / s - known) / z**terms * 2 / mpmath.ln2

    return rest


def in_two(value: Number, width: int) -> tuple[float, float]:
    high = _rounded(value, width)
    return float(high), float(_rounded(value - high, width))


def _of_sine(z: Number) -> Number:
    """(1 - sin(x) / x) / x² with x² = z."""
    x = mpmath.sqrt(z)
    return (1 - mpmath.sin(x) / x) / z


def _of_cosine(z: Number) -> Number:
    """(cos(x) - 1) / x² with x² = z."""
    return (mpmath.cos(mpmath.sqrt(z)) - 1) / z


def parts(value: Number, ends: Sequence[int], width: int) -> tuple[float, ...]:
    """`value` cut off at 2^-end, for each of the `ends`, and rounded at the last."""
    with mpmath.workdps(DIGITS):
        found: list[Number] = []
        for end in ends:
            found.append(mpmath.ldexp(mpmath.floor(mpmath.ldexp(value - sum(found), end)), -end))
        found.append(_rounded(value - sum(found), width))
        return tuple(map(float, found))


HALF = float(np.log(2)) / 2 * 1.001
EIGHTH = float(np.pi) / 4 * 1.0001
SQUARE = ((2**0.5 - 1) / (2**0.5 + 1)) ** 2 * 1.01


def fits() -> Iterator[Fit]:
    for width, exp, log, below, above, tangent, sine, cosine in (
        (32, -28.2, -30.0, -27.1, -26.6, -29.1, -27.8, -32.9),
        (64, -57.8, -59.3, -56.0, -55.7, -59.2, -57.8, -63.7),
    ):
        of_exp, of_log = exponential.OF_WIDTH[width].terms, logarithm.OF_WIDTH[width].terms
        of_erf = error_function.OF_WIDTH[width]
        yield Fit("exp", width, _of_power, lambda r: max(abs(r), 1e-3) ** 2 / mpmath.exp(r),
                  -HALF, HALF, of_exp, exp)  # fmt: skip
        yield Fit("exp2", width, _of_power_of_two, lambda r: max(abs(r), 1e-3) ** 2 / 2**r,
                  -0.5005, 0.5005, exponential.OF_WIDTH[width].terms_of_two, exp)  # fmt: skip
        yield Fit("tanh", width, _of_tangent, lambda z: z / (1 + z * _of_tangent(z)),
                  1e-12, hyperbolic.FROM**2, hyperbolic.OF_WIDTH[width].below, tangent)  # fmt: skip
        yield Fit("sin", width, _of_sine, lambda z: z / (1 - z * _of_sine(z)),
                  1e-12, EIGHTH**2, trigonometric.OF_WIDTH[width].sine, sine)  # fmt: skip
        yield Fit("cos", width, _of_cosine, lambda z: z / mpmath.cos(mpmath.sqrt(z)),
                  1e-12, EIGHTH**2, trigonometric.OF_WIDTH[width].cosine, cosine)  # fmt: skip
        yield Fit("log", width, _of_logarithm, lambda z: z / 2, 1e-12, SQUARE, of_log, log)
        yield Fit("erf, P", width, _of_erf, lambda z: 1 / (1 + _of_erf(z)),
                  1e-24, FROM**2, of_erf.below, below)  # fmt: skip
        yield Fit("erf, Q", width, _beyond, lambda v: mpmath.erfc(v + FROM) / mpmath.erf(v + FROM),
                  0.0, of_erf.most - FROM, of_erf.above, above)  # fmt: skip
        yield from _odd_ones(width)
        inverse, even = (-9.1, -33.2) if width == 32 else (-17.4, -69.9)
        yield Fit("cbrt", width, _of_root, lambda f: 1 / _of_root(f), 2**-0.5 - 1, 2**0.5 - 1,
                  root.TERMS[width], inverse)  # fmt: skip
        yield Fit("cosh", width, _of_cosh, lambda z: z / mpmath.cosh(mpmath.sqrt(z)),
                  1e-12, HALF**2, hyperbolic.OF_WIDTH[width].cosine, even)  # fmt: skip
    of_all, of_rest = _of_log2(0), _of_log2(3)
    yield Fit("powf, S", 64, of_all, lambda z: 1 / of_all(z), 1e-9, SQUARE, power.SERIES, -37.7)
    yield Fit("powf, R", 64, of_rest, lambda z: z**3 / of_all(z), 1e-4, SQUARE, power.REST, -72.6)


def _odd_ones(width: int) -> Iterator[Fit]:
    """(f(x) / x - 1) / x², or what is less than 1 by that."""
    arcs, sinh = inverse_trigonometric.OF_WIDTH[width], hyperbolic.OF_WIDTH[width]
    tangent = trigonometric.OF_WIDTH[width].tangent
    for name, of, sign, most, terms, errors in (
        ("atan", mpmath.atan, -1, MIDDLE**2, arcs.tangent, (-29.6, -57.7)),
        ("asin", mpmath.asin, 1, 0.25, arcs.sine, (-27.6, -59.8)),
        ("tan", mpmath.tan, 1, EIGHTH**2, tangent, (-29.5, -59.9)),
        ("sinh, S", mpmath.sinh, 1, HALF**2, sinh.sine, (-34.1, -61.6)),
        ("sinh, T", mpmath.sinh, 1, 1.0, sinh.small, (-31.3, -61.5)),
    ):
        wanted = _of_odd(of, sign)
        yield Fit(name, width, wanted, _weight_of_odd(wanted, sign), 1e-12, most * 1.0001, terms,
                  errors[width == 64])  # fmt: skip


def _of_odd(of: Callable[[Number], Number], sign: int) -> Callable[[Number], Number]:
    def wanted(z: Number) -> Number:
        x = mpmath.sqrt(z)
        return sign * (of(x) / x - 1) / z

    return wanted


def _weight_of_odd(wanted: Callable[[Number], Number], sign: int) -> Callable[[Number], Number]:
    return lambda z: z / (1 + sign * z * wanted(z))


def _of_cosh(z: Number) -> Number:
    """(cosh(x) - 1) / x² with x² = z."""
    return (mpmath.cosh(mpmath.sqrt(z)) - 1) / z


def _of_root(f: Number) -> Number:
    """The inverse of the cube root of 1 + f."""
    return (1 + f) ** (-1 / mpmath.mpf(3))


if __name__ == "__main__":
    for each in fits():
        terms = each.found()
        error = float(mpmath.log(each.error(terms), 2))
        sys.stdout.write(f"{each.name}, {each.width} bits, 2^{error:.2f}: {terms}\n")

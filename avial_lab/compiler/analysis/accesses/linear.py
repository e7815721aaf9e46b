"""Indices as linear forms: constant + Σ factor × variable, each variable a loop's or a thread's.

MLIR index values -> linear forms, their bounds, and whether they take every value in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.core.regions import iterations


@dataclass(frozen=True, slots=True)
class Variable:
    """A loop variable or thread index: low, low + step, … below high; `full` when it takes each
    value for sure.

    An unknown has `low` None; `symbol` names one that is the same number wherever it stands.
    Variables are compared by identity.
    """

    low: int | None
    high: int = 0
    step: int = 1
    full: bool = False
    symbol: str = ""
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def count(self) -> int:
        return 0 if self.low is None else iterations(self.low, self.high, self.step)


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + Σ coefficient × variable."""

    constant: int
    terms: tuple[tuple[Variable, int], ...] = ()

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        if not self.terms and not other.terms:
            return Linear(self.constant + sign * other.constant)
        terms = dict(self.terms)
        for variable, factor in other.terms:
            terms[variable] = terms.get(variable, 0) + sign * factor
        return Linear(
            self.constant + sign * other.constant, tuple((v, f) for v, f in terms.items() if f)
        )

    def times(self, factor: int) -> Linear:
        return Linear(
            self.constant * factor, tuple((v, f * factor) for v, f in self.terms if factor)
        )

    @property
    def is_vague(self) -> bool:
        """Whether anything in it is unknown that has no name."""
        # Not any(): it is asked for every index of every access.
        for variable, _ in self.terms:  # noqa: SIM110
            if variable.low is None and not variable.symbol:
                return True
        return False

    def bounds(self) -> tuple[int, int] | None:
        """Least and greatest value; None where a variable is unknown or never has a value."""
        low = high = self.constant
        for variable, factor in self.terms:
            if variable.low is None or not variable.count:
                return None
            ends = (
                variable.low * factor,
                (variable.low + (variable.count - 1) * variable.step) * factor,
            )
            low, high = low + min(ends), high + max(ends)
        return low, high

    def dense(self, window: Window) -> bool:
        """Whether, with `window` added, it takes every value between its bounds (mixed radix: no
        digit leaves a gap).
        """
        extent = 1
        digits = [(abs(f) * v.step, v.count) for v, f in self.terms if v.low is not None]
        for stride, count in sorted([*digits, (window.stride, window.count)]):
            if stride > extent:
                return False
            extent += stride * (count - 1)
        return all(variable.full for variable, _ in self.terms)

    def split(self) -> tuple[Linear, Linear]:
        """Its terms in symbols, and the rest."""
        symbols = tuple(term for term in self.terms if term[0].symbol)
        if not symbols:
            return Linear(0), self
        rest = tuple(term for term in self.terms if not term[0].symbol)
        return Linear(0, symbols), Linear(self.constant, rest)

    def symbols(self) -> str:
        """Its terms in symbols as text, in an order of their own.

        >>> k, n = (Linear(0, ((Variable(None, symbol=name), 1),)) for name in "kn")
        >>> n.times(-2).plus(k).plus(Linear(50)).symbols()
        'k - 2 * n'
        """
        parts: list[str] = []
        named = [(variable.symbol, factor) for variable, factor in self.terms if variable.symbol]
        for name, factor in sorted(named):
            sign = ("- " if parts else "-") if factor < 0 else ("+ " if parts else "")
            parts.append(f"{sign}{name}" if abs(factor) == 1 else f"{sign}{abs(factor)} * {name}")
        return " ".join(parts)


def unknown() -> Linear:
    return Linear(0, ((Variable(None), 1),))


def symbol(name: str) -> Linear:
    """A number that is not known, but the same wherever it stands."""
    return Linear(0, ((Variable(None, symbol=name), 1),))


def ranged(low: int, high: int) -> Linear:
    """Some value with low <= value <= high, not known to take all of them."""
    return Linear(low) if low == high else Linear(0, ((Variable(low, high + 1), 1),))


@dataclass(frozen=True, slots=True)
class Guard:
    """Inside this branch, low <= form <= high."""

    form: Linear
    low: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """`count` elements, `stride` apart, from an index on."""

    stride: int = 1
    count: int = 1

    @property
    def extent(self) -> int:
        return self.stride * (self.count - 1) + 1


ONE = Window()


def extreme(forms: Sequence[Linear], pick: Callable[..., int]) -> Linear:
    """The max (min) of several bounds: one form where there is one, else what is known of it."""
    if len(forms) == 1:
        return forms[0]
    bounds = [form.bounds() for form in forms]
    if any(b is None for b in bounds):
        return unknown()
    lows, highs = zip(*(b for b in bounds if b is not None), strict=True)
    return ranged(pick(lows), pick(highs))


def apply_map(affine_map: ir.AffineMap, operands: Sequence[Linear]) -> list[Linear]:
    """The linear forms of a map's results for those of its operands (dimensions, then symbols)."""
    dims = affine_map.n_dims
    return [_evaluate(expr, operands[:dims], operands[dims:]) for expr in affine_map.results]


def _evaluate(expr: ir.AffineExpr, dims: Sequence[Linear], symbols: Sequence[Linear]) -> Linear:
    if isinstance(expr, ir.AffineDimExpr):
        return dims[expr.position]
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return Linear(expr.value)
    binary = ir.AffineBinaryExpr(expr)
    a, b = _evaluate(binary.lhs, dims, symbols), _evaluate(binary.rhs, dims, symbols)
    if isinstance(expr, ir.AffineAddExpr):
        return a.plus(b)
    if isinstance(expr, ir.AffineMulExpr):
        return (
            a.times(b.constant)
            if not b.terms
            else b.times(a.constant)
            if not a.terms
            else unknown()
        )
    bounds = a.bounds()
    if bounds is None or b.terms or b.constant <= 0:
        return unknown()
    low, high = bounds
    if isinstance(expr, ir.AffineModExpr):
        return (
            ranged(0, b.constant - 1)
            if low // b.constant != high // b.constant
            else (a.plus(Linear(low // b.constant * b.constant), -1))
        )
    if isinstance(expr, ir.AffineFloorDivExpr):
        return ranged(low // b.constant, high // b.constant)
    return ranged(-(-low // b.constant), -(-high // b.constant))

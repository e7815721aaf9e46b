"""Numbers of single and double precision in code that is being written, and their bits.

Python expressions of `Real`, `Whole` and `Truth` -> operations of arith and math at the insertion
point. Every operation is rounded on its own; what is to be rounded together is said so (`fma`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, math


@dataclass(frozen=True)
class Kind:
    """A type of floating-point numbers, or of vectors of them: `width` bits in each, `fraction` of
    them behind the point. `fused`: the machine multiplies and adds in one instruction.
    """

    real: ir.Type
    fused: bool

    @property
    def width(self) -> int:
        element = self.real.element_type if isinstance(self.real, ir.VectorType) else self.real
        return 32 if isinstance(element, ir.F32Type) else 64

    @property
    def fraction(self) -> int:
        return 23 if self.width == 32 else 52

    @property
    def bias(self) -> int:
        """Of the exponent."""
        return 127 if self.width == 32 else 1023

    @property
    def rounder(self) -> float:
        """A number that small ones lose their fraction to when they are added: 1.5 · 2^fraction."""
        return 1.5 * 2.0**self.fraction

    @property
    def whole(self) -> ir.Type:
        """The type of the bits."""
        return self._of(ir.IntegerType.get_signless(self.width))

    def of_width(self, width: int) -> Kind:
        """As many numbers of that many bits each."""
        return Kind(self._of(ir.F32Type.get() if width == 32 else ir.F64Type.get()), self.fused)

    def _of(self, element: ir.Type) -> ir.Type:
        if isinstance(self.real, ir.VectorType):
            return ir.VectorType.get(self.real.shape, element, scalable=self.real.scalable_dims)
        return element

    def number(self, value: Real | float) -> Real:
        if isinstance(value, Real):
            return value
        return Real(self, _constant(self.real, lambda kind: ir.FloatAttr.get(kind, value)))

    def bits(self, value: Whole | int) -> Whole:
        if isinstance(value, Whole):
            return value
        signed = (value + (1 << (self.width - 1))) % (1 << self.width) - (1 << (self.width - 1))
        return Whole(self, _constant(self.whole, lambda kind: ir.IntegerAttr.get(kind, signed)))

    def power_of_two(self, exponent: Whole) -> Real:
        """Of an exponent that has the bias already, and is one of a normal number."""
        return (exponent << self.fraction).real()


@dataclass(frozen=True)
class Real:
    kind: Kind
    value: ir.Value

    def __add__(self, other: Real | float) -> Real:
        return Real(self.kind, arith.addf(self.value, self.kind.number(other).value))

    def __sub__(self, other: Real | float) -> Real:
        return Real(self.kind, arith.subf(self.value, self.kind.number(other).value))

    def __rsub__(self, other: float) -> Real:
        return self.kind.number(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return Real(self.kind, arith.mulf(self.value, self.kind.number(other).value))

    def __truediv__(self, other: Real | float) -> Real:
        return Real(self.kind, arith.divf(self.value, self.kind.number(other).value))

    def __neg__(self) -> Real:
        return Real(self.kind, arith.negf(self.value))

    def __abs__(self) -> Real:
        return Real(self.kind, math.absf(self.value))

    def __lt__(self, other: Real | float) -> Truth:
        return self._compare(arith.CmpFPredicate.OLT, other)

    def __gt__(self, other: Real | float) -> Truth:
        return self._compare(arith.CmpFPredicate.OGT, other)

    def equals(self, other: Real | float) -> Truth:
        return self._compare(arith.CmpFPredicate.OEQ, other)

    def _compare(self, how: arith.CmpFPredicate, other: Real | float) -> Truth:
        """False where one of them is no number."""
        return Truth(arith.cmpf(how, self.value, self.kind.number(other).value))

    def at_most(self, limit: float) -> Real:
        """The limit in place of what is greater; NaN stays."""
        return (self > limit).choose(self.kind.number(limit), self)

    def at_least(self, limit: float) -> Real:
        return (self < limit).choose(self.kind.number(limit), self)

    def bits(self) -> Whole:
        return Whole(self.kind, arith.bitcast(self.kind.whole, self.value))

    def root(self) -> Real:
        return Real(self.kind, math.sqrt(self.value))

    def with_sign_of(self, other: Real) -> Real:
        return Real(self.kind, math.copysign(self.value, other.value))

    def wide(self) -> Real:
        """In double precision."""
        kind = self.kind.of_width(64)
        return self if self.kind.width == 64 else Real(kind, arith.extf(kind.real, self.value))

    def narrow(self, width: int) -> Real:
        """Rounded to that many bits."""
        kind = self.kind.of_width(width)
        return self if self.kind.width == width else Real(kind, arith.truncf(kind.real, self.value))


@dataclass(frozen=True)
class Whole:
    """The bits of a number as an integer, modulo 2^width."""

    kind: Kind
    value: ir.Value

    def __add__(self, other: Whole | int) -> Whole:
        return Whole(self.kind, arith.addi(self.value, self.kind.bits(other).value))

    def __sub__(self, other: Whole | int) -> Whole:
        return Whole(self.kind, arith.subi(self.value, self.kind.bits(other).value))

    def __rsub__(self, other: int) -> Whole:
        return self.kind.bits(other) - self

    def __and__(self, other: Whole | int) -> Whole:
        return Whole(self.kind, arith.andi(self.value, self.kind.bits(other).value))

    def __xor__(self, other: Whole | int) -> Whole:
        return Whole(self.kind, arith.xori(self.value, self.kind.bits(other).value))

    def __lshift__(self, count: int) -> Whole:
        return Whole(self.kind, arith.shli(self.value, self.kind.bits(count).value))

    def __rshift__(self, count: int) -> Whole:
        """With zeros from the left: the other shift of 64 bits is slow before AVX-512."""
        return Whole(self.kind, arith.shrui(self.value, self.kind.bits(count).value))

    def equals(self, other: Whole | int) -> Truth:
        return Truth(arith.cmpi(arith.CmpIPredicate.eq, self.value, self.kind.bits(other).value))

    def real(self) -> Real:
        """The number with these bits."""
        return Real(self.kind, arith.bitcast(self.kind.real, self.value))


@dataclass(frozen=True)
class Truth:
    value: ir.Value

    def __and__(self, other: Truth) -> Truth:
        return Truth(arith.andi(self.value, other.value))

    def __or__(self, other: Truth) -> Truth:
        return Truth(arith.ori(self.value, other.value))

    def choose(self, if_true: Real, if_false: Real) -> Real:
        return Real(if_true.kind, arith.select(self.value, if_true.value, if_false.value))


def fma(a: Real, b: Real | float, c: Real | float) -> Real:
    """a · b + c, rounded once where the machine does that in one instruction, else twice."""
    kind = a.kind
    b, c = kind.number(b), kind.number(c)
    if not kind.fused:
        return a * b + c
    return Real(kind, math.fma(a.value, b.value, c.value))


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """Σ cₖ xᵏ: the even and the odd powers beside each other, each by Horner's rule. The machine
    would wait for one chain of so many operations.
    """
    if len(coefficients) < 4:
        return horner(x, coefficients)
    square = x * x
    return fma(x, horner(square, coefficients[1::2]), horner(square, coefficients[::2]))


def horner(x: Real, coefficients: Sequence[float]) -> Real:
    """The same as one chain: one product less, and the first coefficient is added last."""
    *rest, last = coefficients
    total = x.kind.number(last)
    for each in reversed(rest):
        total = fma(total, x, each)
    return total


def _constant(kind: ir.Type, attribute: Callable[[ir.Type], ir.Attribute]) -> ir.Value:
    if not isinstance(kind, ir.VectorType):
        return arith.constant(kind, attribute(kind))
    splat = ir.DenseElementsAttr.get_splat(kind, attribute(kind.element_type))
    return arith.constant(kind, splat)

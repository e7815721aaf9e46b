"""One element of an array operation, as scalar operations with NumPy's meaning.

Name of the operation, its operands' values -> the value, at the insertion point. Element types are
those of the ptensor (`ui8` says that it is unsigned); the values are signless.

Integers: division rounds towards minus infinity, by zero it gives 0, and the least integer by -1
itself (NumPy 2's `floor_divide` and `remainder`); shifts by the width or more give 0 or -1. Floats:
`floor_divide` and `remainder` as NumPy's `npy_divmod`, from C's `fmod`.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, complex, math

Made = ir.Value


def is_unsigned(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType) and kind.is_unsigned


def is_bool(kind: ir.Type) -> bool:
    return isinstance(kind, ir.IntegerType) and kind.width == 1


def is_float(kind: ir.Type) -> bool:
    return isinstance(kind, ir.FloatType)


def stored(kind: ir.Type) -> ir.Type:
    """The type of its elements in memory: integers without a sign."""
    return ir.IntegerType.get_signless(kind.width) if isinstance(kind, ir.IntegerType) else kind


def number(kind: ir.Type, value: float) -> Made:
    """A constant of an integer or float type."""
    return arith.constant(stored(kind), float(value) if is_float(kind) else int(value))


def unary(name: str, kind: ir.Type, x: Made) -> Made:
    """The function of that name of an operand of that element type; KeyError for no such."""
    return _UNARY[name](kind, x)


def bits(x: Made, after: ir.Type) -> Made:
    """Its bits as a number of another type of that width."""
    wanted = stored(after)
    return x if x.type == wanted else arith.bitcast(wanted, x)


def binary(name: str, kind: ir.Type, x: Made, y: Made) -> Made:
    """The same of two operands of one element type."""
    if name in _ORDERED:
        return _compared(name, kind, x, y)
    return _BINARY[name](kind, x, y)


def cast(x: Made, before: ir.Type, after: ir.Type) -> Made:
    """The number in another element type: towards zero to integers, and modulo their range between
    them.
    """
    wanted = stored(after)
    if before == after:
        return x
    if isinstance(before, ir.ComplexType):
        if is_bool(after):
            parts = (cast(part(x), before.element_type, after) for part in (complex.re, complex.im))
            return arith.ori(*parts)
        if not isinstance(after, ir.ComplexType):
            raise KeyError("a complex number is no real one")
        return complex.create_(
            after,
            cast(complex.re(x), before.element_type, after.element_type),
            cast(complex.im(x), before.element_type, after.element_type),
        )
    if isinstance(after, ir.ComplexType):
        real = cast(x, before, after.element_type)
        return complex.create_(after, real, number(after.element_type, 0))
    if is_bool(after):
        if is_float(before):
            return arith.cmpf(arith.CmpFPredicate.UNE, x, number(before, 0))
        return arith.cmpi(arith.CmpIPredicate.ne, x, number(before, 0))
    if is_float(before) and is_float(after):
        if before.width == after.width:
            return arith.truncf(wanted, arith.extf(ir.F32Type.get(), x))
        return (arith.extf if after.width > before.width else arith.truncf)(wanted, x)
    if is_float(before):
        return (arith.fptoui if is_unsigned(after) else arith.fptosi)(wanted, x)
    unsigned = is_unsigned(before) or is_bool(before)
    if is_float(after):
        return (arith.uitofp if unsigned else arith.sitofp)(wanted, x)
    if before.width == after.width:
        return x
    if before.width > after.width:
        return arith.trunci(wanted, x)
    return (arith.extui if unsigned else arith.extsi)(wanted, x)


# -- comparisons -----------------------------------------------------------------------------------

_ORDERED = {
    "equal": ("eq", "OEQ"),
    "not_equal": ("ne", "UNE"),
    "less": ("lt", "OLT"),
    "less_equal": ("le", "OLE"),
    "greater": ("gt", "OGT"),
    "greater_equal": ("ge", "OGE"),
}


def _compared(name: str, kind: ir.Type, x: Made, y: Made) -> Made:
    integer, real = _ORDERED[name]
    if isinstance(kind, ir.ComplexType):
        return {"equal": complex.eq, "not_equal": complex.neq}[name](x, y)
    if is_float(kind):
        return arith.cmpf(arith.CmpFPredicate[real], x, y)
    if integer not in ("eq", "ne"):
        integer = ("u" if is_unsigned(kind) or is_bool(kind) else "s") + integer
    return arith.cmpi(arith.CmpIPredicate[integer], x, y)


# -- two operands ----------------------------------------------------------------------------------


def _by_kind(real: Callable, whole: Callable, other: Callable | None = None) -> Callable:
    """floats, integers, complex numbers"""

    def made(kind: ir.Type, x: Made, y: Made) -> Made:
        if isinstance(kind, ir.ComplexType):
            if other is None:
                raise KeyError("complex numbers have no order")
            return other(x, y)
        return (real if is_float(kind) else whole)(x, y)

    return made


def _multiply(kind: ir.Type, x: Made, y: Made) -> Made:
    return _by_kind(arith.mulf, arith.muli, complex.mul)(kind, x, y)


def _add(kind: ir.Type, x: Made, y: Made) -> Made:
    if is_bool(kind):
        return arith.ori(x, y)
    return _by_kind(arith.addf, arith.addi, complex.add)(kind, x, y)


def _extreme(real: Callable, signed: Callable, unsigned: Callable) -> Callable:
    def made(kind: ir.Type, x: Made, y: Made) -> Made:
        if is_float(kind):
            return real(x, y)
        return (unsigned if is_unsigned(kind) or is_bool(kind) else signed)(x, y)

    return made


def _safe_divisor(kind: ir.IntegerType, x: Made, y: Made) -> tuple[Made, Made]:
    """A divisor that the machine takes: 1 in place of 0, and of -1 under the least integer; whether
    it was 0.
    """
    one, zero = number(kind, 1), number(kind, 0)
    none = arith.cmpi(arith.CmpIPredicate.eq, y, zero)
    avoided = none
    if not is_unsigned(kind):
        least = number(kind, -(1 << (kind.width - 1)))
        over = arith.andi(
            arith.cmpi(arith.CmpIPredicate.eq, x, least),
            arith.cmpi(arith.CmpIPredicate.eq, y, number(kind, -1)),
        )
        avoided = arith.ori(none, over)
    return arith.select(avoided, one, y), none


def _floor_divide(kind: ir.Type, x: Made, y: Made) -> Made:
    if is_float(kind):
        return _divided(kind, x, y)[0]
    divisor, none = _safe_divisor(ir.IntegerType(kind), x, y)
    quotient = (arith.divui if is_unsigned(kind) else arith.floordivsi)(x, divisor)
    return arith.select(none, number(kind, 0), quotient)


def _remainder(kind: ir.Type, x: Made, y: Made) -> Made:
    if is_float(kind):
        return _divided(kind, x, y)[1]
    divisor, none = _safe_divisor(ir.IntegerType(kind), x, y)
    if is_unsigned(kind):
        return arith.select(none, number(kind, 0), arith.remui(x, divisor))
    rest = arith.subi(x, arith.muli(arith.floordivsi(x, divisor), divisor))
    return arith.select(none, number(kind, 0), rest)


def _divided(kind: ir.Type, x: Made, y: Made) -> tuple[Made, Made]:
    """Floor and rest as NumPy's npy_divmod has them."""
    zero, one = number(kind, 0), number(kind, 1)
    rest = arith.remf(x, y)
    quotient = arith.divf(arith.subf(x, rest), y)
    some = arith.cmpf(arith.CmpFPredicate.UNE, rest, zero)
    apart = arith.xori(
        arith.cmpf(arith.CmpFPredicate.OLT, y, zero),
        arith.cmpf(arith.CmpFPredicate.OLT, rest, zero),
    )
    moved = arith.andi(some, apart)
    rest = arith.select(moved, arith.addf(rest, y), rest)
    rest = arith.select(some, rest, math.copysign(zero, y))
    quotient = arith.select(moved, arith.subf(quotient, one), quotient)
    floor = math.floor(quotient)
    far = arith.cmpf(arith.CmpFPredicate.OGT, arith.subf(quotient, floor), number(kind, 0.5))
    floor = arith.select(far, arith.addf(floor, one), floor)
    nothing = arith.cmpf(arith.CmpFPredicate.UNE, quotient, zero)
    floor = arith.select(nothing, floor, math.copysign(zero, arith.divf(x, y)))
    by_zero = arith.cmpf(arith.CmpFPredicate.OEQ, y, zero)
    return (
        arith.select(by_zero, arith.divf(x, y), floor),
        arith.select(by_zero, arith.remf(x, y), rest),
    )


def _shifted(shift: Callable) -> Callable:
    """Shifts by the width or more leave what shifting on and on leaves."""

    def made(kind: ir.IntegerType, x: Made, y: Made) -> Made:
        width = kind.width
        fits = arith.cmpi(arith.CmpIPredicate.ult, y, number(kind, width))
        near = arith.select(fits, y, number(kind, width - 1))
        moved = shift(kind)(x, near)
        if shift(kind) is arith.shrsi:
            return moved
        return arith.select(fits, moved, number(kind, 0))

    return made


def _right(kind: ir.Type) -> Callable:
    return arith.shrui if is_unsigned(kind) else arith.shrsi


_BINARY: dict[str, Callable] = {
    "add": _add,
    "subtract": _by_kind(arith.subf, arith.subi, complex.sub),
    "multiply": _multiply,
    "divide": _by_kind(arith.divf, arith.divsi, complex.div),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "pow": lambda kind, x, y: (
        complex.pow(x, y) if isinstance(kind, ir.ComplexType) else math.powf(x, y)
    ),
    "atan2": lambda _, x, y: math.atan2(x, y),
    "copysign": lambda _, x, y: math.copysign(x, y),
    "maximum": _extreme(arith.maximumf, arith.maxsi, arith.maxui),
    "minimum": _extreme(arith.minimumf, arith.minsi, arith.minui),
    "bitwise_and": lambda _, x, y: arith.andi(x, y),
    "bitwise_or": lambda _, x, y: arith.ori(x, y),
    "bitwise_xor": lambda _, x, y: arith.xori(x, y),
    "bitwise_left_shift": _shifted(lambda _: arith.shli),
    "bitwise_right_shift": _shifted(_right),
}

# -- one operand -----------------------------------------------------------------------------------


def _negative(kind: ir.Type, x: Made) -> Made:
    if isinstance(kind, ir.ComplexType):
        return complex.neg(x)
    return arith.negf(x) if is_float(kind) else arith.subi(number(kind, 0), x)


def _absolute(kind: ir.Type, x: Made) -> Made:
    if isinstance(kind, ir.ComplexType):
        return complex.abs(x)
    if is_unsigned(kind) or is_bool(kind):
        return x
    return math.absf(x) if is_float(kind) else math.absi(x)


def _sign(kind: ir.Type, x: Made) -> Made:
    zero, one = number(kind, 0), number(kind, 1)
    above = binary("greater", kind, x, zero)
    if is_unsigned(kind) or is_bool(kind):
        return arith.select(above, one, zero)
    below = binary("less", kind, x, zero)
    found = arith.select(above, one, arith.select(below, number(kind, -1), zero))
    if not is_float(kind):
        return found
    return arith.select(arith.cmpf(arith.CmpFPredicate.UNO, x, x), x, found)


def _inverted(kind: ir.Type, x: Made) -> Made:
    return arith.xori(x, arith.constant(stored(kind), -1))


def _rounded(real: Callable) -> Callable:
    """Integers are whole already."""
    return lambda kind, x: real(x) if is_float(kind) else x


def _asked(real: Callable, whole: bool) -> Callable:
    """What is asked of floats, and what it is of integers."""

    def made(kind: ir.Type, x: Made) -> Made:
        if is_float(kind):
            return real(x)
        return arith.constant(ir.IntegerType.get_signless(1), whole)

    return made


def _against_infinity(relation: str, x: Made) -> Made:
    return arith.cmpf(arith.CmpFPredicate[relation], math.absf(x), number(x.type, float("inf")))


def _function(name: str) -> Callable:
    def made(kind: ir.Type, x: Made) -> Made:
        return getattr(complex if isinstance(kind, ir.ComplexType) else math, name)(x)

    return made


_UNARY: dict[str, Callable] = {
    "negative": _negative,
    "abs": _absolute,
    "sign": _sign,
    "bitwise_invert": _inverted,
    "logical_not": _inverted,
    "square": lambda kind, x: _multiply(kind, x, x),
    "reciprocal": lambda kind, x: arith.divf(number(kind, 1), x),
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "trunc": _rounded(math.trunc),
    "round": _rounded(math.roundeven),
    "isnan": _asked(lambda x: arith.cmpf(arith.CmpFPredicate.UNO, x, x), whole=False),
    "isinf": _asked(lambda x: _against_infinity("OEQ", x), whole=False),
    "isfinite": _asked(lambda x: _against_infinity("OLT", x), whole=True),
    "real": lambda _, x: complex.re(x),
    "imag": lambda _, x: complex.im(x),
    "times_i": lambda kind, x: complex.create_(kind, arith.negf(complex.im(x)), complex.re(x)),
    "conj": lambda _, x: complex.conj(x),
    **{
        name: _function(name)
        for name in (
            "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin",
            "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
        )
    },
}  # fmt: skip
UNARY = frozenset(_UNARY)
BINARY = frozenset({*_BINARY, *_ORDERED})

COSTLY = frozenset(
    {"pow", "atan2", "remainder", "floor_divide", "exp", "expm1", "log", "log1p", "log2", "log10",
     "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
     "sqrt", "divide"}
)  # fmt: skip
"""What takes as long as some ten others."""

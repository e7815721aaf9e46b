"""Operations on numbers, with Python's and NumPy's meaning, as lines of MLIR.

Numbers -> Numbers. What the text alone says is computed here; integers that are affine in loop
variables stay so.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from avial_lab.compiler.frontends.python.emitter import Emitter
from avial_lab.compiler.frontends.python.kinds import (
    BOOL,
    FLOAT,
    INT,
    INT64,
    Kind,
    divided,
    kind_of_number,
    promoted,
)
from avial_lab.compiler.frontends.python.linear import Linear, Range, least, most, number, term
from avial_lab.compiler.frontends.python.values import Number, Plain

Refuse = Callable[..., Exception]

TOO_LONG = "does not fit into 64 bits"
"""How what is said of an integer ends that only Python has."""

RAISES = "python:"
"""How the text of an assertion begins that stands for an exception: its type and place follow."""


def constant(value: Plain | np.generic) -> Number:
    """A number that is known."""
    kind = kind_of_number(value)
    assert kind is not None
    plain: Plain = value.item() if isinstance(value, np.generic) else value
    if kind == INT:
        return Number(kind, linear=number(int(plain.real)))
    return Number(kind, constant=plain)


def affine(value: Linear) -> Number:
    return Number(INT, linear=value)


def spelled(value: Plain, kind: Kind) -> str:
    """As MLIR writes a constant of that kind.

    >>> spelled(1e-5, FLOAT), spelled(float("inf"), FLOAT), spelled(3, FLOAT)
    ('1.0e-05', '0x7FF0000000000000', '3.0')
    """
    if kind.is_bool:
        return "true" if value else "false"
    if kind.is_int:
        wrapped = int(value.real) & ((1 << 64) - 1)
        bits = 8 * kind.dtype.itemsize
        wrapped &= (1 << bits) - 1
        return str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)
    real = kind.dtype.type(value)
    if not math.isfinite(real):
        unsigned = f"u{kind.dtype.itemsize}"
        return f"0x{int(np.asarray(real).view(unsigned)):0{2 * kind.dtype.itemsize}X}"
    text = repr(float(real))
    if "." not in text:
        mantissa, e, exponent = text.partition("e")
        text = f"{mantissa}.0{e}{exponent}"
    return text


class Arithmetic:
    """Writes with `emitter`; `refuse` makes the error for what cannot be."""

    def __init__(self, emitter: Emitter, refuse: Refuse) -> None:
        self.e = emitter
        self.refuse = refuse

    # -- one kind and another ----------------------------------------------------------------------

    def value(self, x: Number, kind: Kind | None = None) -> str:
        """The SSA value of the number, as one of that kind."""
        kind = kind or x.kind
        if x.known is not None:
            self._check_it_fits(x, kind)
            return self._constant(x.known, kind)
        if x.linear is not None and x.ssa is None:
            index = self.e.index(x.linear)
            whole = self.e.value(f"arith.index_cast {index} : index to i64")
            x = Number(x.kind, ssa=whole)
        assert x.ssa is not None
        return self._cast(x.ssa, x.kind, kind)

    def _constant(self, value: Plain, kind: Kind) -> str:
        if kind.is_complex:
            part = Kind(np.dtype(f"f{kind.dtype.itemsize // 2}"))
            given = complex(value)
            real, imaginary = (
                f"{spelled(p, part)} : {part.mlir}" for p in (given.real, given.imag)
            )
            both = f"[{real}, {imaginary}]"
            return self.e.value(f"complex.constant {both} : {kind.mlir}")
        if kind.is_bool:
            return self.e.value(f"arith.constant {spelled(value, kind)}")
        text = spelled(value, kind)
        made = self.e.value(f"arith.constant {text} : {kind.mlir}")
        if kind.is_float and value.real >= 0 and not text.startswith("-"):
            self.e.positive.add(made)
        return made

    def _cast(self, ssa: str, before: Kind, after: Kind) -> str:
        if before.dtype == after.dtype:
            return ssa
        x, y = before.mlir, after.mlir
        if before.is_complex and not after.is_complex:
            part = Kind(np.dtype(f"f{before.dtype.itemsize // 2}"))
            return self._cast(self.e.value(f"complex.re {ssa} : {x}"), part, after)
        if after.is_complex:
            part = Kind(np.dtype(f"f{after.dtype.itemsize // 2}"))
            if before.is_complex:
                own = Kind(np.dtype(f"f{before.dtype.itemsize // 2}"))
                real = self._cast(self.e.value(f"complex.re {ssa} : {x}"), own, part)
                imaginary = self._cast(self.e.value(f"complex.im {ssa} : {x}"), own, part)
            else:
                real, imaginary = self._cast(ssa, before, part), self._constant(0.0, part)
            return self.e.value(f"complex.create {real}, {imaginary} : {y}")
        if after.is_bool:
            zero = self._constant(0, before)
            if before.is_float:
                return self.e.value(f"arith.cmpf une, {ssa}, {zero} : {x}")
            return self.e.value(f"arith.cmpi ne, {ssa}, {zero} : {x}")
        if before.is_float and after.is_float:
            name = "extf" if after.dtype.itemsize > before.dtype.itemsize else "truncf"
        elif before.is_float and after.dtype.itemsize < 8:
            # What does not fit wraps, as in NumPy on the machines that there are.
            ssa, x = self.e.value(f"arith.fptosi {ssa} : {x} to i64"), "i64"
            name = "trunci"
        elif before.is_float:
            name = "fptoui" if after.is_unsigned else "fptosi"
        elif after.is_float:
            name = "uitofp" if before.is_unsigned else "sitofp"
        elif after.dtype.itemsize == before.dtype.itemsize and not before.is_bool:
            return ssa
        elif after.dtype.itemsize < before.dtype.itemsize:
            name = "trunci"
        else:
            name = "extui" if before.is_unsigned else "extsi"
        return self.e.value(f"arith.{name} {ssa} : {x} to {y}")

    def cast(self, x: Number, kind: Kind) -> Number:
        """As of that kind, wrapped or rounded."""
        if x.known is not None:
            return self._known_as(x.known, kind, x)
        if kind == x.kind or (kind.dtype == x.kind.dtype and x.linear is None):
            return Number(kind, x.ssa, x.linear)
        if x.linear is not None and kind == INT:
            return Number(INT, x.ssa, x.linear)
        return Number(kind, ssa=self.value(x, kind))

    def _known_as(self, value: Plain, kind: Kind, x: Number) -> Number:
        if kind == INT:
            return Number(INT, linear=number(int(value.real)))
        if kind.is_complex:
            return Number(kind, constant=complex(value))
        if isinstance(value, complex):
            raise self.refuse("a complex number is no real one", "take its .real")
        if kind.is_float:
            return Number(kind, constant=float(kind.dtype.type(value)))
        if kind.is_bool:
            return Number(kind, constant=bool(value))
        if isinstance(value, float):
            if not math.isfinite(value):
                return Number(kind, ssa=self._cast(self._constant(value, x.kind), x.kind, kind))
            value = int(value)
        self._check_it_fits(x, kind)
        bits = 8 * kind.dtype.itemsize
        wrapped = value & ((1 << bits) - 1)
        if not kind.is_unsigned and wrapped >> (bits - 1):
            wrapped -= 1 << bits
        return Number(kind, constant=wrapped)

    def _check_it_fits(self, x: Number, kind: Kind) -> None:
        """A Python integer among NumPy's, whose kind it takes."""
        if x.kind != INT or x.known is None or kind.weak or not kind.is_int:
            return
        ends = np.iinfo(kind.dtype)
        if not ends.min <= x.known.real <= ends.max:
            raise self.refuse(
                f"Python integer {x.known} out of bounds for {kind}",
                "convert what it meets to a wider kind: ….astype(numpy.int64)",
                OverflowError,
            )

    def truth(self, x: Number) -> Number:
        """As a condition."""
        if x.known is not None:
            return Number(BOOL, constant=bool(x.known))
        if x.kind.is_bool:
            return x
        if x.kind.is_complex:
            zero = self._constant(0, x.kind)
            return Number(BOOL, ssa=self.e.value(f"complex.neq {x.ssa}, {zero} : {x.kind.mlir}"))
        return Number(BOOL, ssa=self._cast(self.value(x), x.kind, BOOL))

    # -- two numbers -------------------------------------------------------------------------------

    def binary(self, op: ast.operator, x: Number, y: Number) -> Number:
        folded = self._folded(op, x, y)
        if folded is not None:
            return folded
        kept = self._linear(op, x, y)
        if kept is not None:
            return kept
        match op:
            case ast.Add() | ast.Sub() | ast.Mult():
                return self._ring(op, x, y)
            case ast.Div():
                return self._quotient(x, y)
            case ast.FloorDiv() | ast.Mod():
                return self._floor(op, x, y)
            case ast.Pow():
                return self._power(x, y)
            case ast.BitAnd() | ast.BitOr() | ast.BitXor():
                return self._bits(op, x, y)
            case ast.LShift() | ast.RShift():
                return self._shift(op, x, y)
            case _:
                raise self.refuse("this operator is not supported", "write it with loops")

    def _folded(self, op: ast.operator, x: Number, y: Number) -> Number | None:
        """Of constants, as NumPy and Python compute it."""
        if x.known is None or y.known is None or type(op) not in _PYTHON:
            return None
        left, right = self._as_python(x), self._as_python(y)
        if _is_huge(op, left, right):
            raise self.refuse(f"its value {TOO_LONG}", "compute it as a float")
        try:
            with np.errstate(all="ignore"):
                result: Any = _PYTHON[type(op)](left, right)
        except (ArithmeticError, ValueError):
            return None  # raised when it is run
        if type(result) is int and not -(1 << 63) <= result < 1 << 63:
            raise self.refuse(f"{result} {TOO_LONG}", "compute it as a float")
        return constant(result)

    def _as_python(self, x: Number) -> object:
        assert x.known is not None
        return x.known if x.kind.weak else x.kind.dtype.type(x.known)

    def _linear(self, op: ast.operator, x: Number, y: Number) -> Number | None:
        if x.kind != INT or y.kind != INT or x.linear is None or y.linear is None:
            return None
        match op:
            case ast.Add():
                return affine(x.linear + y.linear)
            case ast.Sub():
                return affine(x.linear - y.linear)
            case ast.Mult() if x.linear.known is not None:
                return affine(y.linear.scaled(x.linear.known))
            case ast.Mult() if y.linear.known is not None:
                return affine(x.linear.scaled(y.linear.known))
            case ast.FloorDiv() | ast.Mod() if (y.linear.known or 0) > 0:
                return self._divided_linear(op, x.linear, y.linear.constant)
            case _:
                return None

    def _divided_linear(self, op: ast.operator, x: Linear, by: int) -> Number | None:
        """As an affine value, which rounds as Python does."""
        if not self.e.is_affine(x):
            return None
        sign = "floordiv" if isinstance(op, ast.FloorDiv) else "mod"
        bound = self.e.bound(x)
        head, arrow, rest = bound.partition(" -> (")
        form, end, given = rest.partition(")>(")
        name = self.e.value(f"affine.apply {head}{arrow}({form}) {sign} {by}{end}{given}")
        return Number(INT, linear=Linear({name: 1}), ssa=None)

    def _both(self, x: Number, y: Number, kind: Kind) -> tuple[str, str]:
        return self.value(x, kind), self.value(y, kind)

    def _ring(self, op: ast.operator, x: Number, y: Number) -> Number:
        kind = promoted(x.kind, y.kind)
        name = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}[type(op)]
        if kind.is_bool:
            if kind.weak:
                kind = INT
            elif name == "sub":
                raise self.refuse("NumPy subtracts no bool from a bool", "use ^, or np.logical_xor")
            else:
                left, right = self._both(x, y, kind)
                word = "ori" if name == "add" else "andi"
                return Number(kind, ssa=self.e.value(f"arith.{word} {left}, {right} : i1"))
        left, right = self._both(x, y, kind)
        return Number(kind, ssa=self._made(name, left, right, kind))

    def _made(self, name: str, left: str, right: str, kind: Kind) -> str:
        if kind.is_complex:
            return self.e.value(f"complex.{name} {left}, {right} : {kind.mlir}")
        letter = "f" if kind.is_float else "i"
        made = self.e.value(f"arith.{name}{letter} {left}, {right} : {kind.mlir}")
        square = name == "mul" and left == right
        if kind.is_float and (square or (name != "sub" and {left, right} <= self.e.positive)):
            self.e.positive.add(made)
        return made

    def _quotient(self, x: Number, y: Number) -> Number:
        kind = divided(x.kind, y.kind)
        if kind.weak:
            self.check_not_zero(y, "division by zero")
        left, right = self._both(x, y, kind)
        return Number(kind, ssa=self._made("div", left, right, kind))

    def check_not_zero(self, y: Number, words: str) -> None:
        """Python raises where NumPy goes on."""
        if y.known:
            return
        kind = y.kind
        if kind.is_complex:
            zero = self._constant(0, kind)
            ok = self.e.value(f"complex.neq {self.value(y)}, {zero} : {kind.mlir}")
        elif y.linear is not None and self._is_never_zero(y.linear):
            return
        else:
            ok = self._cast(self.value(y), kind, BOOL)
        self.raise_unless(ok, "ZeroDivisionError", words)

    def _is_never_zero(self, value: Linear) -> bool:
        low, high = least(value, self.e.ranges), most(value, self.e.ranges)
        return (low is not None and low > 0) or (high is not None and high < 0)

    def raise_unless(self, ok: str, kind: str, words: str) -> None:
        """An exception of that type at the place where the emitter is."""
        line = getattr(self.e.node, "lineno", 0)
        column = getattr(self.e.node, "col_offset", 0) + 1
        plain = words.replace("\\", "/").replace('"', "'").replace("\n", " ")
        self.e.line(f'cf.assert {ok}, "{RAISES}{kind}:{line}:{column}:{plain}"')

    def _floor(self, op: ast.operator, x: Number, y: Number) -> Number:
        kind = promoted(x.kind, y.kind)
        if kind.is_bool:
            kind = INT if kind.weak else Kind(np.dtype(np.int8))
        if kind.is_complex:
            raise self.refuse("complex numbers have no floor", "divide with /")
        if kind.weak:
            words = "integer modulo by zero" if isinstance(op, ast.Mod) else "division by zero"
            self.check_not_zero(y, words)
        if isinstance(op, ast.FloorDiv) and kind == INT and isinstance(y.known, int):
            part = self._part_of_size(x.linear, y.known)
            if part is not None:
                return affine(part)
        left, right = self._both(x, y, kind)
        if kind.is_float:
            quotient, rest = self._float_divmod(left, right, kind)
            return Number(kind, ssa=quotient if isinstance(op, ast.FloorDiv) else rest)
        if isinstance(y.known, int) and y.known > 0 and not kind.is_unsigned:
            quotient, rest = self._by_positive(left, right, kind)
        else:
            quotient, rest = self._int_divmod(left, right, kind)
        return Number(kind, ssa=quotient if isinstance(op, ast.FloorDiv) else rest)

    def remainder(self, x: Number, y: Number, kind: Kind) -> Number:
        """Of integers as C has it, with the sign of `x`; 0 of a division by zero, as NumPy."""
        left, right = self._both(x, y, kind)
        one, letter = self._constant(1, kind), "u" if kind.is_unsigned else "s"
        plain = [0] if kind.is_unsigned else [0, -1]  # by -1 the least one overflows
        for each in plain:
            given = self._constant(each, kind)
            same = self.e.value(f"arith.cmpi eq, {right}, {given} : {kind.mlir}")
            right = self.e.value(f"arith.select {same}, {one}, {right} : {kind.mlir}")
        rest = self.e.value(f"arith.rem{letter}i {left}, {right} : {kind.mlir}")
        return Number(kind, ssa=rest)

    def _part_of_size(self, size: Linear | None, by: int) -> Linear | None:
        """As a symbol of affine loops, where it is the size of arguments that is divided."""
        if size is None or by < 2 or not size.terms or not size.terms.keys() <= self.e.sizes:
            return None
        low = least(size, self.e.ranges)
        if low is None or low < 1:
            return None
        sizes = [*size.terms]
        short = {name: f"s{k}" for k, name in enumerate(sizes)}
        inner = Linear({short[n]: f for n, f in size.terms.items()}, size.constant).text()
        given = f"()[{', '.join(short.values())}]"
        name = self.e.value(
            f"affine.apply affine_map<{given} -> (({inner}) floordiv {by})>()[{', '.join(sizes)}]"
        )
        self.e.symbols |= {name}
        self.e.ranges[name] = Range(number(low // by), size - number(1))
        return term(name)

    def _by_positive(self, x: str, y: str, kind: Kind) -> tuple[str, str]:
        t, e = kind.mlir, self.e
        zero, one = self._constant(0, kind), self._constant(1, kind)
        quotient = e.value(f"arith.divsi {x}, {y} : {t}")
        rest = e.value(f"arith.remsi {x}, {y} : {t}")
        below = e.value(f"arith.cmpi slt, {rest}, {zero} : {t}")
        lower = e.value(f"arith.subi {quotient}, {one} : {t}")
        higher = e.value(f"arith.addi {rest}, {y} : {t}")
        return (
            e.value(f"arith.select {below}, {lower}, {quotient} : {t}"),
            e.value(f"arith.select {below}, {higher}, {rest} : {t}"),
        )

    def _int_divmod(self, x: str, y: str, kind: Kind) -> tuple[str, str]:
        """Floor and rest, 0 and 0 by zero; the least integer by -1 wraps."""
        t, e = kind.mlir, self.e
        zero, one = self._constant(0, kind), self._constant(1, kind)
        none = e.value(f"arith.cmpi eq, {y}, {zero} : {t}")
        if kind.is_unsigned:
            by = e.value(f"arith.select {none}, {one}, {y} : {t}")
            quotient = e.value(f"arith.divui {x}, {by} : {t}")
            rest = e.value(f"arith.remui {x}, {by} : {t}")
        else:
            low = e.value(f"arith.constant {-(1 << (8 * kind.dtype.itemsize - 1))} : {t}")
            minus = e.value(f"arith.constant -1 : {t}")
            at_low = e.value(f"arith.cmpi eq, {x}, {low} : {t}")
            by_minus = e.value(f"arith.cmpi eq, {y}, {minus} : {t}")
            over = e.value(f"arith.andi {at_low}, {by_minus} : i1")
            avoided = e.value(f"arith.ori {none}, {over} : i1")
            by = e.value(f"arith.select {avoided}, {one}, {y} : {t}")
            quotient = e.value(f"arith.divsi {x}, {by} : {t}")
            rest = e.value(f"arith.remsi {x}, {by} : {t}")
            some = e.value(f"arith.cmpi ne, {rest}, {zero} : {t}")
            both = e.value(f"arith.xori {rest}, {by} : {t}")
            apart = e.value(f"arith.cmpi slt, {both}, {zero} : {t}")
            moved = e.value(f"arith.andi {some}, {apart} : i1")
            lower = e.value(f"arith.subi {quotient}, {one} : {t}")
            quotient = e.value(f"arith.select {moved}, {lower}, {quotient} : {t}")
            higher = e.value(f"arith.addi {rest}, {by} : {t}")
            rest = e.value(f"arith.select {moved}, {higher}, {rest} : {t}")
        quotient = e.value(f"arith.select {none}, {zero}, {quotient} : {t}")
        rest = e.value(f"arith.select {none}, {zero}, {rest} : {t}")
        return quotient, rest

    def _float_divmod(self, x: str, y: str, kind: Kind) -> tuple[str, str]:
        """As CPython's float_floor_div and NumPy's npy_divmod."""
        t, e = kind.mlir, self.e
        zero, one = self._constant(0.0, kind), self._constant(1.0, kind)
        rest = e.value(f"arith.remf {x}, {y} : {t}")
        whole = e.value(f"arith.subf {x}, {rest} : {t}")
        quotient = e.value(f"arith.divf {whole}, {y} : {t}")
        some = e.value(f"arith.cmpf une, {rest}, {zero} : {t}")
        below = e.value(f"arith.cmpf olt, {y}, {zero} : {t}")
        under = e.value(f"arith.cmpf olt, {rest}, {zero} : {t}")
        apart = e.value(f"arith.xori {below}, {under} : i1")
        moved = e.value(f"arith.andi {some}, {apart} : i1")
        higher = e.value(f"arith.addf {rest}, {y} : {t}")
        rest = e.value(f"arith.select {moved}, {higher}, {rest} : {t}")
        signed = e.value(f"math.copysign {zero}, {y} : {t}")
        rest = e.value(f"arith.select {some}, {rest}, {signed} : {t}")
        lower = e.value(f"arith.subf {quotient}, {one} : {t}")
        quotient = e.value(f"arith.select {moved}, {lower}, {quotient} : {t}")
        floor = e.value(f"math.floor {quotient} : {t}")
        gap = e.value(f"arith.subf {quotient}, {floor} : {t}")
        half = self._constant(0.5, kind)
        far = e.value(f"arith.cmpf ogt, {gap}, {half} : {t}")
        next_ = e.value(f"arith.addf {floor}, {one} : {t}")
        floor = e.value(f"arith.select {far}, {next_}, {floor} : {t}")
        nothing = e.value(f"arith.cmpf une, {quotient}, {zero} : {t}")
        exact = e.value(f"arith.divf {x}, {y} : {t}")
        naught = e.value(f"math.copysign {zero}, {exact} : {t}")
        floor = e.value(f"arith.select {nothing}, {floor}, {naught} : {t}")
        by_zero = e.value(f"arith.cmpf oeq, {y}, {zero} : {t}")
        plain = e.value(f"arith.remf {x}, {y} : {t}")
        return (
            e.value(f"arith.select {by_zero}, {exact}, {floor} : {t}"),
            e.value(f"arith.select {by_zero}, {plain}, {rest} : {t}"),
        )

    def _power(self, x: Number, y: Number) -> Number:
        kind = promoted(x.kind, y.kind)
        if kind.is_bool:
            kind = INT if kind.weak else Kind(np.dtype(np.int8))
        power = y.known
        if kind.is_int:
            return self._whole_power(x, y, kind)
        if power in (0, 1, 2, 3, 4) and (power <= 2 or kind.is_int):
            return self._repeated(x, int(power.real), kind)
        left, right = self._both(x, y, kind)
        if kind.is_complex:
            return Number(kind, ssa=self.e.value(f"complex.pow {left}, {right} : {kind.mlir}"))
        if kind.weak:
            self._check_power(left, right, power, kind)
        if power == 0.5 and not kind.weak:
            return Number(kind, ssa=self.e.value(f"math.sqrt {left} : {kind.mlir}"))
        return Number(kind, ssa=self.e.value(f"math.powf {left}, {right} : {kind.mlir}"))

    def _check_power(self, base: str, exponent: str, power: Plain | None, kind: Kind) -> None:
        """What Python has no float for: a reciprocal of 0, and a fractional power below it, which
        would be complex.
        """
        t, e, zero = kind.mlir, self.e, self._constant(0.0, kind)
        if power is None or power.real < 0:
            ok = e.value(f"arith.cmpf une, {base}, {zero} : {t}")
            if power is None:
                fine = e.value(f"arith.cmpf uge, {exponent}, {zero} : {t}")
                ok = e.value(f"arith.ori {ok}, {fine} : i1")
            self.raise_unless(ok, "ZeroDivisionError", "0.0 cannot be raised to a negative power")
        is_whole = power is not None and float(power.real).is_integer()
        if is_whole or base in e.positive:
            return
        ok = e.value(f"arith.cmpf uge, {base}, {zero} : {t}")
        if power is None:
            whole = e.value(f"math.trunc {exponent} : {t}")
            fine = e.value(f"arith.cmpf ueq, {exponent}, {whole} : {t}")
            ok = e.value(f"arith.ori {ok}, {fine} : i1")
        words = "a negative number to a fractional power is complex: complex(x) ** y"
        self.raise_unless(ok, "ValueError", words)

    def _whole_power(self, x: Number, y: Number, kind: Kind) -> Number:
        if isinstance(y.known, int):
            if y.known >= 0:
                return self._repeated(x, y.known, kind)
            if kind.weak:  # Python's integer becomes a float
                return self._power(self.cast(x, FLOAT), self.cast(y, FLOAT))
            raise self.refuse(
                "integers to negative integer powers are not allowed", "make one of them a float"
            )
        left, right = self._both(x, y, kind)
        zero = self._constant(0, kind)
        if not kind.is_unsigned:
            ok = self.e.value(f"arith.cmpi sge, {right}, {zero} : {kind.mlir}")
            self.raise_unless(ok, "ValueError", "integers to negative integer powers")
        return Number(kind, ssa=self.e.value(f"math.ipowi {left}, {right} : {kind.mlir}"))

    def _repeated(self, x: Number, power: int, kind: Kind) -> Number:
        """By squaring, modulo the integers' size."""
        base = self.cast(x, kind)
        result: Number | None = None
        while power:
            if power & 1:
                result = base if result is None else self.binary(ast.Mult(), result, base)
            power >>= 1
            if power:
                base = self.binary(ast.Mult(), base, base)
        return result if result is not None else self.cast(constant(1), kind)

    def _bits(self, op: ast.operator, x: Number, y: Number) -> Number:
        kind = promoted(x.kind, y.kind)
        if not (kind.is_bool or kind.is_int):
            raise self.refuse(f"{kind} has no bits to combine", "use and, or, not for conditions")
        name = {ast.BitAnd: "andi", ast.BitOr: "ori", ast.BitXor: "xori"}[type(op)]
        left, right = self._both(x, y, kind)
        return Number(kind, ssa=self.e.value(f"arith.{name} {left}, {right} : {kind.mlir}"))

    def _shift(self, op: ast.operator, x: Number, y: Number) -> Number:
        kind = promoted(x.kind, y.kind)
        if kind.is_bool:
            kind = INT if kind.weak else Kind(np.dtype(np.int8))
        if not kind.is_int:
            raise self.refuse(f"{kind} has no bits to shift", "multiply by a power of two")
        t, e = kind.mlir, self.e
        left, right = self._both(x, y, kind)
        bits = 8 * kind.dtype.itemsize
        if kind.weak and not (y.known is not None and y.known.real >= 0):
            zero = self._constant(0, kind)
            ok = e.value(f"arith.cmpi sge, {right}, {zero} : {t}")
            self.raise_unless(ok, "ValueError", "negative shift count")
        width, last = self._constant(bits, kind), self._constant(bits - 1, kind)
        fits = e.value(f"arith.cmpi ult, {right}, {width} : {t}")
        near = e.value(f"arith.select {fits}, {right}, {last} : {t}")
        if isinstance(op, ast.RShift):
            name = "shrui" if kind.is_unsigned else "shrsi"
            moved = e.value(f"arith.{name} {left}, {near} : {t}")
            if name == "shrsi":
                return Number(kind, ssa=moved)
        else:
            moved = e.value(f"arith.shli {left}, {near} : {t}")
        zero = self._constant(0, kind)
        return Number(kind, ssa=e.value(f"arith.select {fits}, {moved}, {zero} : {t}"))

    # -- one number --------------------------------------------------------------------------------

    def unary(self, op: ast.unaryop, x: Number) -> Number:
        if isinstance(op, ast.Not):
            return self.negation(self.truth(x))
        if x.known is not None:
            return constant(_PYTHON_UNARY[type(op)](self._as_python(x)))
        if isinstance(op, ast.UAdd):
            return x if not x.kind.is_bool else self.cast(x, INT)
        if isinstance(op, ast.USub):
            if x.kind == INT and x.linear is not None:
                return affine(-x.linear)
            if x.kind.is_bool:
                if not x.kind.weak:
                    raise self.refuse("NumPy has no minus of a bool", "use ~")
                x = self.cast(x, INT)
            return self._minus(x)
        if x.kind.is_bool and x.kind.weak:
            x = self.cast(x, INT)
        if not (x.kind.is_int or x.kind.is_bool):
            raise self.refuse(f"{x.kind} has no bits to turn over", "use - for the negative")
        if x.kind.is_bool:
            ones = self._constant(1, x.kind)
        else:
            ones = self.e.value(f"arith.constant -1 : {x.kind.mlir}")
        return Number(
            x.kind, ssa=self.e.value(f"arith.xori {self.value(x)}, {ones} : {x.kind.mlir}")
        )

    def _minus(self, x: Number) -> Number:
        t = x.kind.mlir
        if x.kind.is_complex:
            return Number(x.kind, ssa=self.e.value(f"complex.neg {x.ssa} : {t}"))
        if x.kind.is_float:
            return Number(x.kind, ssa=self.e.value(f"arith.negf {x.ssa} : {t}"))
        zero = self._constant(0, x.kind)
        return Number(x.kind, ssa=self.e.value(f"arith.subi {zero}, {self.value(x)} : {t}"))

    def negation(self, x: Number) -> Number:
        """`not x` of a condition."""
        if x.known is not None:
            return Number(BOOL, constant=not x.known)
        one = self._constant(1, BOOL)
        return Number(BOOL, ssa=self.e.value(f"arith.xori {x.ssa}, {one} : i1"))

    # -- comparisons -------------------------------------------------------------------------------

    def compared(self, op: ast.cmpop, x: Number, y: Number) -> Number:
        kind = promoted(x.kind, y.kind)
        result = BOOL if kind.weak else Kind(np.dtype(np.bool_))
        if x.known is not None and y.known is not None:
            told = _COMPARED[type(op)](self._as_python(x), self._as_python(y))
            return Number(result, constant=bool(told))
        if INT in (x.kind, y.kind) and kind.is_int and not kind.weak:
            return self._compared_with_pythons(op, x, y, kind)
        return self._compared(op, x, y, kind, result)

    def _compared_with_pythons(self, op: ast.cmpop, x: Number, y: Number, kind: Kind) -> Number:
        """An integer of NumPy's and one of Python's, which need not be of that kind."""
        result = Kind(np.dtype(np.bool_))
        python, swapped = (x, True) if x.kind == INT else (y, False)
        if python.known is not None:
            value, ends = int(python.known.real), np.iinfo(kind.dtype)
            if ends.min <= value <= ends.max:
                return self._compared(op, x, y, kind, result)
            near = ends.max if value < 0 else ends.min  # as far from it as any
            given = (value, int(near)) if swapped else (int(near), value)
            return Number(result, constant=bool(_COMPARED[type(op)](*given)))
        if kind.dtype != np.uint64:
            return self._compared(op, x, y, INT64, result)
        given = (-1, 0) if swapped else (0, -1)
        below = Number(result, constant=bool(_COMPARED[type(op)](*given)))
        negative = self._compared(ast.Lt(), python, constant(0), INT, BOOL)
        return self.select(negative, below, self._compared(op, x, y, kind, result))

    def _compared(self, op: ast.cmpop, x: Number, y: Number, kind: Kind, result: Kind) -> Number:
        if x.linear is not None and y.linear is not None:
            decided = self._decided(op, x.linear - y.linear)
            if decided is not None:
                return Number(result, constant=decided)
        if kind.is_complex:
            left, right = self._both(x, y, kind)
            name = {ast.Eq: "eq", ast.NotEq: "neq"}.get(type(op))
            if name is None:
                raise self.refuse("complex numbers have no order", "compare their abs()")
            return Number(result, ssa=self.e.value(f"complex.{name} {left}, {right} : {kind.mlir}"))
        integer, real = _PREDICATES[type(op)]
        if kind.is_float:
            left, right = self._both(x, y, kind)
            text = f"arith.cmpf {real}, {left}, {right} : {kind.mlir}"
            return Number(result, ssa=self.e.value(text))
        if x.linear is not None and y.linear is not None:
            left, right = self.e.index(x.linear), self.e.index(y.linear)
            mlir = "index"
        else:
            left, right = self._both(x, y, kind)
            mlir = kind.mlir
        if integer not in ("eq", "ne"):
            integer = ("u" if kind.is_unsigned else "s") + integer
        return Number(result, ssa=self.e.value(f"arith.cmpi {integer}, {left}, {right} : {mlir}"))

    def _decided(self, op: ast.cmpop, apart: Linear) -> bool | None:
        """What the loops' ends say of a comparison of x - y with 0."""
        low, high = least(apart, self.e.ranges), most(apart, self.e.ranges)
        match op:
            case ast.Lt():
                return _told(high is not None and high < 0, low is not None and low >= 0)
            case ast.GtE():
                return _told(low is not None and low >= 0, high is not None and high < 0)
            case ast.LtE():
                return _told(high is not None and high <= 0, low is not None and low > 0)
            case ast.Gt():
                return _told(low is not None and low > 0, high is not None and high <= 0)
            case _:
                return None

    def select(self, condition: Number, x: Number, y: Number) -> Number:
        if condition.known is not None:
            return x if condition.known else y
        kind = promoted(x.kind, y.kind)
        left, right = self._both(x, y, kind)
        text = f"arith.select {condition.ssa}, {left}, {right} : {kind.mlir}"
        return Number(kind, ssa=self.e.value(text))


def _told(yes: bool, no: bool) -> bool | None:
    if yes:
        return True
    return False if no else None


def _is_huge(op: ast.operator, x: object, y: object) -> bool:
    """Whether a power or shift of whole numbers needs more than 64 bits, seen without computing it:
    `3 ** 10**18` would take all memory.
    """
    if type(x) is not int or type(y) is not int or y < 64:
        return False
    return (isinstance(op, ast.Pow) and abs(x) > 1) or (isinstance(op, ast.LShift) and x != 0)


_PYTHON: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_PYTHON_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
}
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_PREDICATES = {
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
    ast.Lt: ("lt", "olt"),
    ast.LtE: ("le", "ole"),
    ast.Gt: ("gt", "ogt"),
    ast.GtE: ("ge", "oge"),
}

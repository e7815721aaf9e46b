"""Functions of one element after the other: of numbers, or of arrays element by element."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import constant
from avial_lab.compiler.frontends.python.kinds import (
    BOOL,
    FLOAT,
    FLOAT64,
    INT,
    INT64,
    NP_BOOL,
    Kind,
    promoted,
)
from avial_lab.compiler.frontends.python.library import counting
from avial_lab.compiler.frontends.python.linear import Linear, number
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Lazy,
    Number,
    Operand,
    Value,
)

if TYPE_CHECKING:
    from avial_lab.compiler.frontends.python.translate import Translation


Given = dict[str, Any]

_NEVER = (builtins.print, builtins.open, builtins.input, builtins.eval, builtins.exec)
_DRAWING = (np.random.RandomState, np.random.Generator)
"""What their methods give is another each time."""


_OF_COMPLEX = {"sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh"}
"""Functions that MLIR's dialect of complex numbers has."""


class Elementwise:
    """Functions of one element after the other: of numbers, or of arrays element by element."""

    def __init__(self, translation: Translation) -> None:
        self.t = translation
        self.node: ast.AST = ast.Pass()
        """The call that is being translated."""

    def index(self, value: Number) -> Linear:
        if value.linear is not None:
            return value.linear
        if value.known is not None:
            return number(int(value.known.real))
        whole = self.t.a.value(value, INT64)
        return Linear({self.t.e.value(f"arith.index_cast {whole} : i64 to index"): 1})

    def folded(self, called: object, args: list[Any], named: Given) -> Value | None:
        """Of constants, what a function of Python's or NumPy's makes of them."""
        module = getattr(called, "__module__", "") or ""
        if not callable(called) or module.partition(".")[0] not in ("math", "builtins", "numpy"):
            return None
        if called in _NEVER or isinstance(getattr(called, "__self__", None), _DRAWING):
            return None
        given: list[object] = []
        for each in (*args, *named.values()):
            if isinstance(each, Fixed):
                given.append(each.value)
            elif isinstance(each, Number) and each.known is not None:
                given.append(each.known)
            else:
                return None
        count = len(args)
        try:
            made = called(*given[:count], **dict(zip(named, given[count:], strict=True)))
        except Exception as error:
            raise self.t.refused(f"{told(called)}: {error}", "", type(error)) from None
        found = self.t.constant(made)
        # Whoever gets it may write to it.
        return self.t.arrays.materialised(found) if isinstance(found, Array) else found

    def _part(self, value: Operand, name: str) -> Value:
        if isinstance(value, Array) and name == "real" and not value.kind.is_complex:
            return value

        def part(x: Number) -> Number:
            if not x.kind.is_complex:
                return x if name == "real" else self.t.a.cast(constant(0), x.kind)
            half = Kind(np.dtype(f"f{x.kind.dtype.itemsize // 2}"), x.kind.weak)
            which = "re" if name == "real" else "im"
            text = f"complex.{which} {self.t.a.value(x)} : {x.kind.mlir}"
            return Number(half, ssa=self.t.e.value(text))

        return self.mapped(part, value)

    def _array(self, value: Value) -> Array | Lazy:
        found = self.t.operand(value)
        if isinstance(found, Number):
            raise self.t.refused("an array is wanted, not a number", "", TypeError)
        if isinstance(found, Lazy) and found.mask is not None:
            return self.t.arrays.materialised(found)
        return found

    def shape(self, value: Value) -> tuple[Linear, ...]:
        given = value if isinstance(value, tuple) else (value,)
        return tuple(self.index(self.t.number(each, ast.Pass())) for each in given)

    def dtype(self, value: Value | None, default: Kind = FLOAT64) -> Kind:
        if value is None or (isinstance(value, Fixed) and value.value is None):
            return Kind(default.dtype)
        if isinstance(value, Fixed):
            try:
                found = np.dtype(value.value)  # type: ignore[call-overload]
            except TypeError:
                found = None
            if found is not None and found.kind in "biufc":
                return Kind(found)
        raise self.t.refused("this is no dtype of numbers", "np.float64, for example", TypeError)

    def elementwise(
        self, kind: Kind, compute: Callable[..., Number], *operands: Operand
    ) -> Number | Lazy:
        if all(isinstance(each, Number) for each in operands):
            return compute(*operands)
        return self.t.arrays.mapped(Kind(kind.dtype), compute, *operands)

    def mapped(self, compute: Callable[..., Number], *operands: Value) -> Number | Lazy:
        given = [self._scalar(each) for each in operands]
        if all(isinstance(each, Number) for each in given):
            return compute(*given)
        return self.elementwise(self.t.result_kind(compute, *given), compute, *given)

    def _scalar(self, value: Value) -> Operand:
        value = self.t.operand(value)
        if isinstance(value, Array) and not value.shape:
            return self.t.arrays.load(value, [])
        return value

    def _unary(self, called: object, name: str, x: Value) -> Value:
        """A function of one number: Python's give Python's floats, NumPy's NumPy's."""
        x = self._scalar(x)
        is_python = getattr(called, "__module__", "") == "math"
        if isinstance(x, Number) and x.known is not None:
            return self.folded(called, [x], {}) or x
        if is_python:
            kind = FLOAT
        elif x.kind.is_complex:
            if name not in _OF_COMPLEX:
                raise self.t.refused(
                    f"np.{called.__name__} of complex numbers is not supported",  # type: ignore[attr-defined]
                    "write it with np.exp and np.log",
                )
            kind = Kind(x.kind.dtype)
        else:
            given: Any = (
                {"i": int, "f": float, "b": np.dtype(bool)}[x.kind.dtype.kind]
                if x.kind.weak
                else x.kind.dtype
            )
            kind = Kind(called.resolve_dtypes((given, None))[-1])  # type: ignore[attr-defined]

        def compute(value: Number) -> Number:
            ssa = self.t.a.value(value, kind)
            if is_python:
                self._check_domain(name, ssa)
            dialect = "complex" if kind.is_complex else "math"
            made = self.t.e.value(f"{dialect}.{name} {ssa} : {kind.mlir}")
            if name == "exp" or (name == "sqrt" and ssa in self.t.e.positive):
                self.t.e.positive.add(made)
            return Number(kind, ssa=made)

        return self.elementwise(kind, compute, x)

    def _check_domain(self, name: str, ssa: str) -> None:
        """math.sqrt(-1) raises, where np.sqrt(-1) is nan."""
        relation = {"sqrt": "uge", "log": "ugt", "log2": "ugt", "log10": "ugt"}.get(name)
        if relation is None or (name == "sqrt" and ssa in self.t.e.positive):
            return
        zero = self.t.e.value("arith.constant 0.0 : f64")
        ok = self.t.e.value(f"arith.cmpf {relation}, {ssa}, {zero} : f64")
        self.t.a.raise_unless(ok, "ValueError", "math domain error")

    def _as_kind(self, x: Value, kind: Kind) -> Value:
        x = self._scalar(x)
        if isinstance(x, Number):
            return self.t.a.cast(x, kind)
        return self.t.arrays.mapped(Kind(kind.dtype), lambda v: self.t.a.cast(v, kind), x)

    def floor(self, name: str, x: Value) -> Value:
        """np.floor and its like: integers stay as they are."""

        def compute(value: Number) -> Number:
            if value.kind.is_complex:
                raise self.t.refused("complex numbers are not rounded here", "round their parts")
            if not value.kind.is_float:
                return value
            kind = Kind(value.kind.dtype)
            ssa = self.t.a.value(value, kind)
            return Number(kind, ssa=self.t.e.value(f"math.{name} {ssa} : {kind.mlir}"))

        return self.mapped(compute, x)

    def absolute(self, x: Value) -> Value:
        def compute(value: Number) -> Number:
            if value.known is not None:
                return (
                    constant(abs(value.known))
                    if value.kind.weak
                    else self.t.a.cast(constant(abs(value.known)), value.kind)
                )
            kind = value.kind
            if kind.is_complex:
                half = Kind(np.dtype(f"f{kind.dtype.itemsize // 2}"), kind.weak)
                return Number(
                    half, ssa=self.t.e.value(f"complex.abs {self.t.a.value(value)} : {kind.mlir}")
                )
            if kind.is_unsigned:
                return self.t.a.cast(value, INT) if kind == BOOL else value
            name = "absf" if kind.is_float else "absi"
            return Number(
                kind, ssa=self.t.e.value(f"math.{name} {self.t.a.value(value)} : {kind.mlir}")
            )

        return self.mapped(compute, x)

    def extreme(self, name: str, x: Value, y: Value) -> Value:
        """np.maximum, np.minimum: NaN where one of the two is."""

        def compute(a: Number, b: Number) -> Number:
            kind = promoted(a.kind, b.kind)
            left, right = self.t.a.value(a, kind), self.t.a.value(b, kind)
            word = {"f": f"{name}imumf", "i": f"{name}si"}.get(kind.dtype.kind, f"{name}ui")
            if kind.is_complex:
                raise self.t.refused("complex numbers have no order here", "compare their abs()")
            text = f"arith.{word} {left}, {right} : {kind.mlir}"
            return Number(Kind(kind.dtype), ssa=self.t.e.value(text))

        return self.mapped(compute, x, y)

    def chosen(self, larger: bool, *values: Value) -> Value:
        """Python's max and min: the first of equals, as comparisons go."""
        if len(values) == 1 and isinstance(values[0], tuple):
            values = values[0]
        op = ast.Gt() if larger else ast.Lt()
        if len(values) == 1:
            return self._first_of_all(op, "max" if larger else "min", values[0])
        found = self.t.number(values[0], ast.Pass())
        for each in values[1:]:
            value = self.t.number(each, ast.Pass())
            found = self.t.a.select(self.t.a.compared(op, value, found), value, found)
        return found

    def _first_of_all(self, op: ast.cmpop, name: str, x: Value) -> Value:
        """Of an array; a number that is none is chosen where it comes first, and not else."""
        array = self._array(x)
        if len(array.shape) != 1:
            raise self.t.refused(
                "The truth value of an array is ambiguous", f"np.{name}(…)", ValueError
            )
        if not array.kind.is_float:
            return self.t.calls.reduce(name, array)
        self.t.calls.refuse_empty(array, [0], f"{name}() arg is an empty sequence")
        lazy = self.t.arrays.lazy(array)

        def step(best: Number, value: Number) -> Number:
            return self.t.a.select(self.t.a.compared(op, value, best), value, best)

        return self.t.arrays.reduced(array, array.kind, lazy.element, step, axes=[0])

    def where(self, condition: Value, x: Value | None = None, y: Value | None = None) -> Value:
        if x is None or y is None:
            return self.t.written(counting.nonzero, {"a": self._kept(condition)}, self.node)

        def compute(c: Number, a: Number, b: Number) -> Number:
            test = self.t.a.truth(c)
            found = self.t.a.select(test, a, b)
            kind = promoted(a.kind, b.kind)
            return self.t.a.cast(found, Kind(kind.dtype))

        return self.mapped(compute, condition, x, y)

    def _kept(self, x: Value) -> Value:
        return self.t.arrays.in_memory(self._array(x))

    def squared(self, value: Value) -> Value:
        """Of NumPy's bools they are int8."""
        x = self.t.operand(value)
        if x.kind == NP_BOOL:
            x = self.t.operand(self._as_kind(x, Kind(np.dtype(np.int8))))
        return self.power(x, constant(2))

    def power(self, x: Value, y: Value) -> Value:
        return self.t.binary(ast.Pow(), self.t.operand(x), self.t.operand(y))

    def logical(self, name: str, x: Value, y: Value) -> Value:
        def compute(a: Number, b: Number) -> Number:
            left, right = (self.t.a.value(self.t.a.truth(each), BOOL) for each in (a, b))
            text = f"arith.{name} {left}, {right} : i1"
            return Number(NP_BOOL, ssa=self.t.e.value(text))

        return self.mapped(compute, x, y)

    def two(self, name: str, x: Value, y: Value) -> Value:
        """A function of MLIR's math of two floats."""

        def compute(a: Number, b: Number) -> Number:
            kind = as_float(promoted(a.kind, b.kind))
            left, right = self.t.a.value(a, kind), self.t.a.value(b, kind)
            return Number(kind, ssa=self.t.e.value(f"math.{name} {left}, {right} : {kind.mlir}"))

        return self.mapped(compute, x, y)

    def tested(self, name: str, x: Value) -> Value:
        def compute(value: Number) -> Number:
            if not value.kind.is_float:
                return Number(NP_BOOL, constant=name == "isfinite")
            t, v = value.kind.mlir, self.t.a.value(value)
            if name == "isnan":
                return Number(NP_BOOL, ssa=self.t.e.value(f"arith.cmpf uno, {v}, {v} : {t}"))
            size = self.t.e.value(f"math.absf {v} : {t}")
            most = self.t.a.value(self.t.a.cast(constant(float("inf")), Kind(value.kind.dtype)))
            relation = "oeq" if name == "isinf" else "olt"
            return Number(
                NP_BOOL, ssa=self.t.e.value(f"arith.cmpf {relation}, {size}, {most} : {t}")
            )

        return self.mapped(compute, x)

    def sign(self, x: Value) -> Value:
        def compute(value: Number) -> Number:
            if value.kind.is_bool:
                raise self.t.refused("np.sign takes no bools", "convert them", TypeError)
            kind = Kind(value.kind.dtype)
            zero, one = (self.t.a.cast(constant(n), kind) for n in (0, 1))
            above = self.t.a.compared(ast.Gt(), value, zero)
            below = self.t.a.compared(ast.Lt(), value, zero)
            less = self.t.a.select(below, self.t.a.cast(constant(-1), kind), zero)
            found = self.t.a.select(above, one, less)
            if not kind.is_float:
                return found
            nan = self.t.a.compared(ast.NotEq(), value, value)
            return self.t.a.select(nan, value, found)

        return self.mapped(compute, x)


def as_float(kind: Kind) -> Kind:
    """Of NumPy's functions of floats: that integers of so many bytes fit in."""
    if kind.is_float or kind.is_complex:
        return kind
    sizes = {} if kind.weak else {1: np.float16, 2: np.float32}
    return Kind(np.dtype(sizes.get(kind.dtype.itemsize, np.float64)))


def told(called: object) -> str:
    name = getattr(called, "__name__", None) or f"{called!r:.40}"
    module = getattr(called, "__module__", "") or ""
    return (
        f"{'np' if module.startswith('numpy') else module}.{name}"
        if module not in ("", "builtins")
        else name
    )

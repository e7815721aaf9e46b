"""What a program may call: Python's own functions, `math`, NumPy's functions and methods of arrays,
and other Python functions.

A call in the source -> a value of the translation.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.compiler.frontends.python.arithmetic import affine, constant
from avial_lab.compiler.frontends.python.arrays import sum_kind
from avial_lab.compiler.frontends.python.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    FLOAT64,
    INT,
    INT64,
    NP_BOOL,
    Kind,
    promoted,
)
from avial_lab.compiler.frontends.python.linear import Linear, number
from avial_lab.compiler.frontends.python.values import Array, Lazy, Number

if TYPE_CHECKING:
    from avial_lab.compiler.frontends.python.translate import Translation, Value

Operand = Number | Array | Lazy
Given = dict[str, Any]


@dataclass(frozen=True)
class Sequenced:
    """What a `for` goes over: the numbers from `low` to before `high` by `step`, and what the
    target gets at each; or `items`, one after the other.
    """

    low: Linear
    high: Linear
    step: Linear
    element: Callable[[Linear], Any]
    items: Sequence[Any] | None = None


class Marker:
    """Names that mean something to a program alone."""


def prange(*args: int) -> range:
    """`range`, for a loop whose iterations the person knows to be independent."""
    return range(*args)


class Calls:
    """The calls of one translation."""

    def __init__(self, translation: Translation) -> None:
        self.t = translation

    # -- loops -------------------------------------------------------------------------------------

    def iterated(self, node: ast.expr) -> Sequenced:
        with self.t.e.at(node):
            if isinstance(node, ast.Call):
                called = self._called(node.func)
                if called in (builtins.range, prange) or _is_prange(called):
                    return self._range(node)
                if called is builtins.reversed:
                    return self._reversed(self.iterated(node.args[0]))
                if called is builtins.enumerate:
                    return self._enumerated(node)
                if called is builtins.zip:
                    return self._zipped([self.iterated(each) for each in node.args])
            value = self.t.expression(node)
            if isinstance(value, tuple):
                return Sequenced(number(0), number(0), number(1), lambda _: None, value)
            array = self.t.operand(value)
            if isinstance(array, Number) or not array.shape:
                raise self.t.refused(
                    "a loop goes over a range or an array", "for i in range(n)", TypeError
                )
            whole = self.t.arrays.in_memory(array)
            return Sequenced(
                number(0),
                whole.shape[0],
                number(1),
                lambda at: self.t.item(whole, [affine(at)]),
            )

    def _range(self, node: ast.Call) -> Sequenced:
        ends = [self._whole(each) for each in node.args]
        if not 1 <= len(ends) <= 3:
            raise self.t.refused("range takes one to three numbers", "", TypeError)
        low = ends[0] if len(ends) > 1 else number(0)
        high = ends[1] if len(ends) > 1 else ends[0]
        step = ends[2] if len(ends) > 2 else number(1)
        if step.known == 0:
            raise self.t.refused("range() arg 3 must not be zero", "", ValueError)
        return Sequenced(low, high, step, affine)

    def _whole(self, node: ast.expr) -> Linear:
        """An integer as an index."""
        value = self.t.number(self.t.expression(node), node)
        if not (value.kind.is_int or value.kind.is_bool):
            raise self.t.refused(
                f"an integer is wanted, not {value.kind}", "convert it: int(…)", TypeError, node=node
            )
        return self.index(value)

    def index(self, value: Number) -> Linear:
        if value.linear is not None:
            return value.linear
        if value.known is not None:
            return number(int(value.known.real))
        whole = self.t.a.value(value, INT64)
        return Linear({self.t.e.value(f"arith.index_cast {whole} : i64 to index"): 1})

    def _reversed(self, of: Sequenced) -> Sequenced:
        if of.items is not None:
            return replace(of, items=tuple(reversed(of.items)))
        if of.step.known not in (1, -1):
            raise self.t.refused("reversed takes a range of step 1 here", "write the range out")
        step = -of.step
        last = of.high + step
        return Sequenced(last, of.low + step, step, of.element)

    def _enumerated(self, node: ast.Call) -> Sequenced:
        of = self.iterated(node.args[0])
        start = 0
        if len(node.args) > 1 or node.keywords:
            given = node.args[1] if len(node.args) > 1 else node.keywords[0].value
            known = self.t.number(self.t.expression(given), given).known
            if not isinstance(known, int):
                raise self.t.refused("enumerate starts at a number that is known here", "")
            start = known
        if of.items is not None:
            pairs = tuple((constant(k + start), each) for k, each in enumerate(of.items))
            return replace(of, items=pairs)
        if of.step.known != 1:
            raise self.t.refused("enumerate takes a range of step 1 here", "")
        return replace(
            of, element=lambda at: (affine(at - of.low + number(start)), of.element(at))
        )

    def _zipped(self, parts: Sequence[Sequenced]) -> Sequenced:
        lengths = {str(part.high - part.low) for part in parts}
        if any(part.items is not None or part.step.known != 1 for part in parts):
            raise self.t.refused("zip takes arrays and ranges of step 1 here", "use an index")
        if len(lengths) > 1:
            known = [(part.high - part.low).known for part in parts]
            if None in known:
                raise self.t.refused("what zip takes is of equal length here", "use an index")
            shortest = min(each for each in known if each is not None)
        else:
            shortest = None
        high = parts[0].high - parts[0].low if shortest is None else number(shortest)
        return Sequenced(
            number(0),
            high,
            number(1),
            lambda at: tuple(part.element(part.low + at) for part in parts),
        )

    # -- attributes --------------------------------------------------------------------------------

    def attribute(self, value: Value, name: str) -> Value:
        from avial_lab.compiler.frontends.python.translate import Fixed, Method

        match value:
            case Fixed(inner):
                try:
                    return self.t.constant(getattr(inner, name))
                except AttributeError as error:
                    raise self.t.refused(str(error), "", AttributeError) from None
            case Array() | Lazy() if name == "shape":
                return tuple(affine(extent) for extent in value.shape)
            case Array() | Lazy() if name == "ndim":
                return constant(len(value.shape))
            case Array() | Lazy() if name == "size":
                return self._size(value)
            case Array() | Lazy() if name == "T":
                array = self.t.arrays.in_memory(value)
                return self.t.arrays.transposed(array, range(len(array.shape))[::-1])
            case Array() | Lazy() | Number() if name == "dtype":
                return Fixed(value.kind.dtype)
            case Array() | Lazy() | Number() if name in ("real", "imag"):
                return self._part(value, name)
            case Array() | Lazy() | Number():
                if name in _METHODS or name in _DIRECT:
                    return Method(value, name)
        raise self.t.refused(f"'.{name}' is not there", "write it with loops, or with np.…")

    def _size(self, value: Array | Lazy) -> Number:
        total = affine(number(1))
        for extent in value.shape:
            total = self.t.a.binary(ast.Mult(), total, affine(extent))
        return total

    def _part(self, value: Operand, name: str) -> Value:
        def part(x: Number) -> Number:
            if not x.kind.is_complex:
                return x if name == "real" else self.t.a.cast(constant(0), x.kind)
            half = Kind(np.dtype(f"f{x.kind.dtype.itemsize // 2}"), x.kind.weak)
            which = "re" if name == "real" else "im"
            text = f"complex.{which} {self.t.a.value(x)} : {x.kind.mlir}"
            return Number(half, ssa=self.t.e.value(text))

        return self.mapped(part, value)

    # -- calls -------------------------------------------------------------------------------------

    def _called(self, node: ast.expr) -> object:
        """The Python object that is called; None for a method of an array."""
        from avial_lab.compiler.frontends.python.translate import Fixed

        value = self.t.expression(node)
        return value.value if isinstance(value, Fixed) else None

    def call(self, node: ast.Call) -> Value:
        from avial_lab.compiler.frontends.python.translate import Fixed, Method

        called = self.t.expression(node.func)
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise self.t.refused("* in a call is not there", "write the arguments out")
        args = [self.t.expression(each) for each in node.args]
        named = {each.arg: self.t.expression(each.value) for each in node.keywords if each.arg}
        if isinstance(called, Method):
            return self._method(called, args, named)
        if not isinstance(called, Fixed):
            raise self.t.refused("this is no function", "", TypeError)
        return self.function(called.value, args, named, node)

    def function(
        self, called: object, args: list[Any], named: Given, node: ast.AST
    ) -> Value:
        from avial_lab.compiler.frontends.python.translate import Fixed

        called = _FUNCTIONS_ALSO.get(_hashed(called), called)
        unary = _UNARY.get(_hashed(called))
        if unary is not None and len(args) == 1:
            return self._unary(called, unary, args[0])
        known = _KNOWN.get(_hashed(called))
        if known is not None:
            try:
                return known(self, *args, **named)
            except TypeError as error:
                if "argument" not in str(error):
                    raise
                words = f"{_told(called)}: {_arguments_words(error)}"
                raise self.t.refused(words, "leave it out", TypeError) from None
        if isinstance(called, type) and issubclass(called, np.generic):
            return self._as_kind(args[0], Kind(np.dtype(called)))
        if isinstance(called, types.FunctionType) or hasattr(called, "py_func"):
            plain: Any = getattr(called, "py_func", called)
            if isinstance(plain, types.FunctionType) and not _is_librarys(plain):
                return self.t.inlined(plain, self._bound(plain, args, named), node)
        if isinstance(called, type) and issubclass(called, Exception):
            raise self.t.refused("an exception is raised", "")
        folded = self._folded(called, args, named)
        if folded is not None:
            return folded
        _ = Fixed
        raise self.t.refused(
            f"{_told(called)} is not there", "write it with loops and arithmetic"
        )

    def _folded(self, called: object, args: list[Any], named: Given) -> Value | None:
        """Of constants, what a function of Python's or NumPy's makes of them."""
        from avial_lab.compiler.frontends.python.translate import Fixed

        module = getattr(called, "__module__", "") or ""
        if not callable(called) or module.partition(".")[0] not in ("math", "builtins", "numpy"):
            return None
        if called in _NEVER:
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
            return self.t.constant(called(*given[:count], **dict(zip(named, given[count:], strict=True))))
        except Exception as error:
            raise self.t.refused(f"{_told(called)}: {error}", "", type(error)) from None

    def _bound(self, function: Any, args: list[Any], named: Given) -> dict[str, Any]:
        try:
            bound = inspect.signature(function).bind(*args, **named)
        except TypeError as error:
            raise self.t.refused(f"{function.__name__}: {error}", "", TypeError) from None
        given = dict(bound.arguments)
        for name, parameter in inspect.signature(function).parameters.items():
            if name not in given and parameter.default is not inspect.Parameter.empty:
                given[name] = self.t.constant(parameter.default)
        return {
            name: self.t.arrays.materialised(value) if isinstance(value, Lazy) else value
            for name, value in given.items()
        }

    # -- element by element ------------------------------------------------------------------------

    def elementwise(
        self, kind: Kind, compute: Callable[..., Number], *operands: Operand
    ) -> Number | Lazy:
        if all(isinstance(each, Number) for each in operands):
            return compute(*operands)
        return self.t.arrays.mapped(Kind(kind.dtype), compute, *operands)

    def mapped(self, compute: Callable[..., Number], *operands: Operand) -> Number | Lazy:
        given = [self._scalar(each) for each in operands]
        if all(isinstance(each, Number) for each in given):
            return compute(*given)
        return self.elementwise(self.t.result_kind(compute, *given), compute, *given)

    def _scalar(self, value: Any) -> Operand:
        value = self.t.operand(value)
        if isinstance(value, Array) and not value.shape:
            return self.t.arrays.load(value, [])
        return value

    def _unary(self, called: object, name: str, x: Any) -> Value:
        """A function of one number: Python's give Python's floats, NumPy's NumPy's."""
        x = self._scalar(x)
        is_python = getattr(called, "__module__", "") == "math"
        if isinstance(x, Number) and x.known is not None:
            return self._folded(called, [x], {}) or x
        if is_python:
            kind = FLOAT
        elif x.kind.is_complex:
            kind = Kind(x.kind.dtype)
        else:
            given: Any = {"i": int, "f": float, "b": np.dtype(bool)}[x.kind.dtype.kind] if x.kind.weak else x.kind.dtype
            kind = Kind(called.resolve_dtypes((given, None))[-1])  # type: ignore[attr-defined]

        def compute(value: Number) -> Number:
            ssa = self.t.a.value(value, kind)
            if is_python:
                self._check_domain(name, ssa)
            dialect = "complex" if kind.is_complex else "math"
            return Number(kind, ssa=self.t.e.value(f"{dialect}.{name} {ssa} : {kind.mlir}"))

        return self.elementwise(kind, compute, x)

    def _check_domain(self, name: str, ssa: str) -> None:
        """math.sqrt(-1) raises, where np.sqrt(-1) is nan."""
        relation = {"sqrt": "oge", "log": "ogt", "log2": "ogt", "log10": "ogt"}.get(name)
        if relation is None:
            return
        zero = self.t.e.value("arith.constant 0.0 : f64")
        below = self.t.e.value(f"arith.cmpf {relation}, {ssa}, {zero} : f64")
        nan = self.t.e.value(f"arith.cmpf uno, {ssa}, {ssa} : f64")
        ok = self.t.e.value(f"arith.ori {below}, {nan} : i1")
        self.t.a.raise_unless(ok, "ValueError", "math domain error")

    def _as_kind(self, x: Any, kind: Kind) -> Value:
        x = self._scalar(x)
        if isinstance(x, Number):
            return self.t.a.cast(x, kind)
        return self.t.arrays.mapped(Kind(kind.dtype), lambda v: self.t.a.cast(v, kind), x)

    def floor(self, name: str, x: Any) -> Value:
        """np.floor and its like: integers stay as they are."""

        def compute(value: Number) -> Number:
            if not value.kind.is_float:
                return value
            kind = Kind(value.kind.dtype)
            ssa = self.t.a.value(value, kind)
            return Number(kind, ssa=self.t.e.value(f"math.{name} {ssa} : {kind.mlir}"))

        return self.mapped(compute, x)

    def absolute(self, x: Any) -> Value:
        def compute(value: Number) -> Number:
            if value.known is not None:
                return constant(abs(value.known)) if value.kind.weak else self.t.a.cast(constant(abs(value.known)), value.kind)
            kind = value.kind
            if kind.is_complex:
                half = Kind(np.dtype(f"f{kind.dtype.itemsize // 2}"), kind.weak)
                return Number(half, ssa=self.t.e.value(f"complex.abs {self.t.a.value(value)} : {kind.mlir}"))
            if kind.is_unsigned:
                return self.t.a.cast(value, INT) if kind == BOOL else value
            name = "absf" if kind.is_float else "absi"
            return Number(kind, ssa=self.t.e.value(f"math.{name} {self.t.a.value(value)} : {kind.mlir}"))

        return self.mapped(compute, x)

    def extreme(self, name: str, x: Any, y: Any) -> Value:
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

    def chosen(self, larger: bool, *values: Any) -> Value:
        """Python's max and min: the first of equals, as comparisons go."""
        if len(values) == 1 and isinstance(values[0], tuple):
            values = values[0]
        if len(values) == 1:
            return self.reduce("max" if larger else "min", values[0])
        op = ast.Gt() if larger else ast.Lt()
        found = self.t.number(values[0], ast.Pass())
        for each in values[1:]:
            value = self.t.number(each, ast.Pass())
            found = self.t.a.select(self.t.a.compared(op, value, found), value, found)
        return found

    def where(self, condition: Any, x: Any = None, y: Any = None) -> Value:
        if x is None or y is None:
            raise self.t.refused("np.where takes three arguments here", "write a loop")

        def compute(c: Number, a: Number, b: Number) -> Number:
            test = self.t.a.truth(c)
            found = self.t.a.select(test, a, b)
            kind = promoted(a.kind, b.kind)
            return self.t.a.cast(found, Kind(kind.dtype))

        return self.mapped(compute, condition, x, y)

    def power(self, x: Any, y: Any) -> Value:
        return self.t.binary(ast.Pow(), self.t.operand(x), self.t.operand(y))

    def logical(self, name: str, x: Any, y: Any) -> Value:
        def compute(a: Number, b: Number) -> Number:
            left, right = (self.t.a.value(self.t.a.truth(each), BOOL) for each in (a, b))
            text = f"arith.{name} {left}, {right} : i1"
            return Number(NP_BOOL, ssa=self.t.e.value(text))

        return self.mapped(compute, x, y)

    def two(self, name: str, x: Any, y: Any) -> Value:
        """A function of MLIR's math of two floats."""

        def compute(a: Number, b: Number) -> Number:
            kind = promoted(a.kind, b.kind)
            if not kind.is_float:
                kind = FLOAT64
            left, right = self.t.a.value(a, kind), self.t.a.value(b, kind)
            return Number(kind, ssa=self.t.e.value(f"math.{name} {left}, {right} : {kind.mlir}"))

        return self.mapped(compute, x, y)

    def tested(self, name: str, x: Any) -> Value:
        def compute(value: Number) -> Number:
            if not value.kind.is_float:
                return Number(NP_BOOL, constant=name == "isfinite")
            t, v = value.kind.mlir, self.t.a.value(value)
            if name == "isnan":
                return Number(NP_BOOL, ssa=self.t.e.value(f"arith.cmpf uno, {v}, {v} : {t}"))
            size = self.t.e.value(f"math.absf {v} : {t}")
            most = self.t.a.value(self.t.a.cast(constant(float("inf")), Kind(value.kind.dtype)))
            relation = "oeq" if name == "isinf" else "olt"
            return Number(NP_BOOL, ssa=self.t.e.value(f"arith.cmpf {relation}, {size}, {most} : {t}"))

        return self.mapped(compute, x)

    def sign(self, x: Any) -> Value:
        def compute(value: Number) -> Number:
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

    # -- reductions --------------------------------------------------------------------------------

    def reduce(
        self, name: str, x: Any, axis: Any = None, keepdims: Any = None, dtype: Any = None
    ) -> Value:
        x = self._scalar(x)
        if isinstance(x, Number):
            return x
        axes = self._axes(axis, len(x.shape))
        keep = bool(keepdims is not None and getattr(keepdims, "known", False))
        if x.kind.is_complex and name in ("max", "min"):
            raise self.t.refused("complex numbers have no order here", "reduce their abs()")
        if name in ("max", "min"):
            if any(x.shape[d].known == 0 for d in axes):
                raise self.t.refused(
                    f"zero-size array to reduction operation {name}imum which has no identity",
                    "",
                    ValueError,
                )
            source = x if isinstance(x, Array) or x.cost < 4 else self.t.arrays.materialised(x)
            lazy = self.t.arrays.lazy(source)
            word = "max" if name == "max" else "min"
            return self.t.arrays.reduced(
                source,
                x.kind,
                lambda at: lazy.element(at),
                lambda a, b: self._number(self.extreme(word, a, b)),
                axes=axes,
                keep=keep,
            )
        if name == "mean":
            return self._mean(x, axes, keep)
        kind = NP_BOOL if name in ("any", "all") else sum_kind(x.kind)
        if dtype is not None:
            kind = self.dtype(dtype)
        first = {"sum": 0, "prod": 1, "any": False, "all": True}[name]
        steps: Mapping[str, Callable[[Number, Number], Number]] = {
            "sum": lambda a, b: self.t.a.binary(ast.Add(), a, b),
            "prod": lambda a, b: self.t.a.binary(ast.Mult(), a, b),
            "any": lambda a, b: self.t.a.binary(ast.BitOr(), a, b),
            "all": lambda a, b: self.t.a.binary(ast.BitAnd(), a, b),
        }
        return self.t.arrays.reduced(
            x, kind, lambda _: self.t.a.cast(constant(first), kind), steps[name], axes=axes, keep=keep
        )

    def _number(self, value: Value) -> Number:
        assert isinstance(value, Number)
        return value

    def _mean(self, x: Array | Lazy, axes: Sequence[int], keep: bool) -> Value:
        kind = x.kind if x.kind.is_float or x.kind.is_complex else FLOAT64
        total = self.t.arrays.reduced(
            x,
            Kind(kind.dtype),
            lambda _: self.t.a.cast(constant(0), kind),
            lambda a, b: self.t.a.binary(ast.Add(), a, b),
            axes=axes,
            keep=keep,
        )
        count = affine(number(1))
        for d in axes:
            count = self.t.a.binary(ast.Mult(), count, affine(x.shape[d]))
        by = self.t.a.cast(self.t.a.cast(count, FLOAT), Kind(kind.dtype))
        return self.t.binary(ast.Div(), total, by)

    def variance(self, x: Any, axis: Any = None, ddof: Any = None, keepdims: Any = None) -> Value:
        x = self.t.arrays.in_memory(self._array(x))
        axes = self._axes(axis, len(x.shape))
        mean = self._mean(x, axes, keep=True)
        apart = self.t.binary(ast.Sub(), x, mean if len(axes) < len(x.shape) else mean)
        square = self.t.binary(ast.Mult(), apart, apart)
        keep = bool(keepdims is not None and getattr(keepdims, "known", False))
        total = self.reduce("sum", square, self._as_axes(axes), constant(keep))
        count = affine(number(1))
        for d in axes:
            count = self.t.a.binary(ast.Mult(), count, affine(x.shape[d]))
        if ddof is not None:
            count = self.t.a.binary(ast.Sub(), count, ddof)
        return self.t.binary(ast.Div(), total, self.t.a.cast(count, FLOAT))

    def deviation(self, x: Any, **named: Any) -> Value:
        return self._unary(np.sqrt, "sqrt", self.variance(x, **named))

    def _as_axes(self, axes: Sequence[int]) -> Value:
        return tuple(constant(d) for d in axes)

    def _array(self, value: Any) -> Array | Lazy:
        found = self.t.operand(value)
        if isinstance(found, Number):
            raise self.t.refused("an array is wanted, not a number", "", TypeError)
        return found

    def _axes(self, axis: Any, rank: int) -> list[int]:
        from avial_lab.compiler.frontends.python.translate import Fixed

        if axis is None or (isinstance(axis, Fixed) and axis.value is None):
            return list(range(rank))
        given = axis if isinstance(axis, tuple) else (axis,)
        found: list[int] = []
        for each in given:
            known = each.known if isinstance(each, Number) else None
            if not isinstance(known, int):
                raise self.t.refused("an axis is a number that is known here", "")
            if not -rank <= known < rank:
                raise self.t.refused(
                    f"axis {known} is out of bounds for array of dimension {rank}",
                    "",
                    np.exceptions.AxisError if False else ValueError,
                )
            found.append(known % rank)
        return sorted(found)

    def position(self, larger: bool, x: Any, axis: Any = None) -> Value:
        """argmax and argmin of one dimension: the first of equals."""
        array = self._array(x)
        axes = self._axes(axis, len(array.shape))
        if len(array.shape) != 1 or axes != [0]:
            raise self.t.refused("argmax and argmin take one dimension here", "write the loop")
        best = self.t.arrays.cell(Kind(array.kind.dtype), self.t.arrays.lazy(array).element([number(0)]))
        where = self.t.arrays.cell(INT64, constant(0))
        lazy = self.t.arrays.lazy(array)
        op = ast.Gt() if larger else ast.Lt()
        with self.t.arrays.nest(array.shape) as at:
            value = lazy.element(at)
            better = self.t.a.compared(op, value, self.t.arrays.load(best, []))
            with self.t.e.block(f"scf.if {better.ssa} {{"):
                self.t.arrays.store(value, best, [])
                self.t.arrays.store(affine(at[0]), where, [])
        return self.t.arrays.load(where, [])

    # -- new arrays --------------------------------------------------------------------------------

    def shape(self, value: Any) -> tuple[Linear, ...]:
        given = value if isinstance(value, tuple) else (value,)
        return tuple(self.index(self.t.number(each, ast.Pass())) for each in given)

    def dtype(self, value: Any, default: Kind = FLOAT64) -> Kind:
        from avial_lab.compiler.frontends.python.translate import Fixed

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

    def filled(self, shape: Any, fill: Number | None, kind: Kind) -> Array:
        made = self.t.arrays.fresh(kind, self.shape(shape))
        self.t.arrays.assign(made, fill if fill is not None else constant(0))
        return made

    def zeros(self, shape: Any, dtype: Any = None, order: Any = None) -> Value:
        return self.filled(shape, constant(0), self.dtype(dtype))

    def empty(self, shape: Any, dtype: Any = None, order: Any = None) -> Value:
        return self.t.arrays.fresh(self.dtype(dtype), self.shape(shape))

    def ones(self, shape: Any, dtype: Any = None, order: Any = None) -> Value:
        return self.filled(shape, constant(1), self.dtype(dtype))

    def full(self, shape: Any, fill_value: Any, dtype: Any = None) -> Value:
        fill = self.t.number(fill_value, ast.Pass())
        return self.filled(shape, fill, self.dtype(dtype, fill.kind))

    def _like(self, x: Any) -> tuple[Value, Kind]:
        array = self._array(x)
        return tuple(affine(extent) for extent in array.shape), array.kind

    def zeros_like(self, a: Any, dtype: Any = None) -> Value:
        shape, kind = self._like(a)
        return self.filled(shape, constant(0), self.dtype(dtype, kind))

    def ones_like(self, a: Any, dtype: Any = None) -> Value:
        shape, kind = self._like(a)
        return self.filled(shape, constant(1), self.dtype(dtype, kind))

    def empty_like(self, a: Any, dtype: Any = None) -> Value:
        shape, kind = self._like(a)
        return self.t.arrays.fresh(self.dtype(dtype, kind), self.shape(shape))

    def full_like(self, a: Any, fill_value: Any, dtype: Any = None) -> Value:
        shape, kind = self._like(a)
        fill = self.t.number(fill_value, ast.Pass())
        return self.filled(shape, fill, self.dtype(dtype, kind))

    def eye(self, N: Any, M: Any = None, k: Any = None, dtype: Any = None) -> Value:
        if k is not None:
            raise self.t.refused("np.eye with k is not there", "fill the diagonal in a loop")
        rows = self.shape(N)[0]
        columns = rows if M is None else self.shape(M)[0]
        made = self.filled((affine(rows), affine(columns)), constant(0), self.dtype(dtype))
        with self.t.arrays.nest((rows,)) as (at,):
            self.t.arrays.store(constant(1), made, [at, at])
        return made

    def arange(self, *ends: Any, dtype: Any = None) -> Value:
        numbers = [self.t.number(each, ast.Pass()) for each in ends]
        low = numbers[0] if len(numbers) > 1 else constant(0)
        high = numbers[1] if len(numbers) > 1 else numbers[0]
        step = numbers[2] if len(numbers) > 2 else constant(1)
        kind = promoted(promoted(low.kind, high.kind), step.kind)
        if kind.is_int and low.linear is not None and high.linear is not None:
            if step.known == 1:
                count = high.linear - low.linear
            elif all(isinstance(each.known, int) for each in (low, high, step)):
                count = number(len(range(low.known, high.known, step.known)))  # type: ignore[arg-type]
            else:
                raise self.t.refused("the ends of np.arange are known here", "")
        elif all(each.known is not None for each in (low, high, step)):
            made = np.arange(low.known, high.known, step.known)  # type: ignore[arg-type]
            count = number(len(made))
        else:
            raise self.t.refused("the ends of np.arange are known here", "use np.linspace")
        kind = self.dtype(dtype, kind)

        def element(at: Sequence[Linear]) -> Number:
            k = affine(at[0])
            # As NumPy: the first, and the difference of the first two, times k.
            if low.kind.is_float or step.kind.is_float:
                begin = self.t.a.cast(low, FLOAT)
                second = self.t.a.binary(ast.Add(), begin, self.t.a.cast(step, FLOAT))
                by = self.t.a.binary(ast.Sub(), second, begin)
                product = self.t.a.binary(ast.Mult(), self.t.a.cast(k, FLOAT), by)
                return self.t.a.cast(self.t.a.binary(ast.Add(), begin, product), kind)
            product = self.t.a.binary(ast.Mult(), k, step)
            return self.t.a.cast(self.t.a.binary(ast.Add(), low, product), kind)

        return Lazy(kind, (count,), element, (), 2)

    def linspace(self, start: Any, stop: Any, num: Any = None, dtype: Any = None) -> Value:
        first, last = (self.t.a.cast(self.t.number(each, ast.Pass()), FLOAT) for each in (start, stop))
        count = self.index(num) if num is not None else number(50)
        kind = self.dtype(dtype)
        if count.known is None:
            raise self.t.refused("np.linspace has a number of points that is known here", "")
        div = count.known - 1

        def element(at: Sequence[Linear]) -> Number:
            k = self.t.a.cast(affine(at[0]), FLOAT)
            delta = self.t.a.binary(ast.Sub(), last, first)
            step = self.t.a.binary(ast.Div(), delta, constant(float(max(div, 1))))
            value = self.t.a.binary(ast.Add(), self.t.a.binary(ast.Mult(), k, step), first)
            if count.known and count.known > 1:
                at_end = self.t.a.compared(ast.Eq(), affine(at[0]), constant(div))
                value = self.t.a.select(at_end, last, value)
            return self.t.a.cast(value, kind)

        return Lazy(kind, (count,), element, (), 4)

    def copy(self, a: Any, order: Any = None) -> Value:
        return self.t.arrays.materialised(self._array(a))

    def array_of(self, value: tuple[Any, ...]) -> Array:
        """A tuple or a list of numbers, or of such, as an array."""
        parts = [
            self.array_of(each) if isinstance(each, tuple) else self.t.operand(each)
            for each in value
        ]
        if not parts:
            raise self.t.refused("an empty list has no kind of numbers", "np.zeros(0)")
        kind = parts[0].kind
        for part in parts[1:]:
            kind = promoted(kind, part.kind)
        inner = () if isinstance(parts[0], Number) else parts[0].shape
        made = self.t.arrays.fresh(Kind(kind.dtype), (number(len(parts)), *inner))
        for k, part in enumerate(parts):
            target = self.t.arrays.view(made, [affine(number(k))])
            self.t.arrays.assign(target, part)
        return made

    def as_array(self, a: Any, dtype: Any = None) -> Value:
        found = self.array_of(a) if isinstance(a, tuple) else self.t.operand(a)
        if dtype is not None:
            found = self.t.operand(self._as_kind(found, self.dtype(dtype)))
        return found if isinstance(found, Number) else self.t.arrays.materialised(found)

    def dot(self, a: Any, b: Any) -> Value:
        left, right = self.t.operand(a), self.t.operand(b)
        if isinstance(left, Number) or isinstance(right, Number):
            return self.t.binary(ast.Mult(), left, right)
        return self.t.arrays.product(left, right)

    def outer(self, a: Any, b: Any) -> Value:
        left = self.t.arrays.in_memory(self._array(a))
        right = self.t.arrays.in_memory(self._array(b))
        column = self.t.arrays.view(left, [slice(None), None])
        return self.t.binary(ast.Mult(), column, right)

    def transpose(self, a: Any, axes: Any = None) -> Value:
        array = self.t.arrays.in_memory(self._array(a))
        order = range(len(array.shape))[::-1]
        if isinstance(axes, tuple):
            order = [int(each.known) for each in axes]  # type: ignore[arg-type]
        return self.t.arrays.transposed(array, order)

    def flip(self, a: Any, axis: Any = None) -> Value:
        array = self.t.arrays.in_memory(self._array(a))
        axes = self._axes(axis, len(array.shape))
        back = slice(None, None, constant(-1))
        return self.t.arrays.view(
            array, [back if d in axes else slice(None) for d in range(len(array.shape))]
        )

    def reshape(self, a: Any, *shape: Any) -> Value:
        array = self._array(a)
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        wanted = [self.t.number(each, ast.Pass()).known for each in given]
        old = [extent.known for extent in array.shape]
        if None in wanted or None in old:
            raise self.t.refused("reshape takes sizes that are known here", "")
        total = math.prod(each or 0 for each in old)
        sizes = [int(each.real) for each in wanted if each is not None]
        if -1 in sizes:
            rest = math.prod(each for each in sizes if each != -1)
            sizes[sizes.index(-1)] = total // rest if rest else 0
        if math.prod(sizes) != total:
            raise self.t.refused(
                f"cannot reshape array of size {total} into shape {tuple(sizes)}", "", ValueError
            )
        source = self.t.arrays.in_memory(array)
        flat = self.t.arrays.fresh(array.kind, tuple(number(each) for each in sizes))
        strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
        with self.t.arrays.nest(flat.shape) as at:
            place = number(0)
            for index, stride in zip(at, strides, strict=True):
                place = place + index.scaled(stride)
            where: list[Linear] = []
            for d in range(len(old)):
                inner = math.prod(each or 0 for each in old[d + 1 :])
                part = self.t.a.binary(ast.FloorDiv(), affine(place), constant(max(inner, 1)))
                if d:
                    part = self.t.a.binary(ast.Mod(), part, constant(max(old[d] or 1, 1)))
                where.append(self.index(part))
            self.t.arrays.store(self.t.arrays.load(source, where), flat, at)
        return flat

    def length(self, x: Any) -> Value:
        if isinstance(x, tuple):
            return constant(len(x))
        array = self._array(x)
        if not array.shape:
            raise self.t.refused("len() of unsized object", "", TypeError)
        return affine(array.shape[0])

    def as_int(self, x: Any = None) -> Value:
        value = self.t.number(x, ast.Pass())
        if value.known is not None:
            return constant(int(value.known.real))
        return value if value.kind == INT else self.t.a.cast(value, INT)

    def as_float(self, x: Any = None) -> Value:
        return self.t.a.cast(self.t.number(x, ast.Pass()), FLOAT)

    def as_complex(self, x: Any, y: Any = None) -> Value:
        real = self.t.a.cast(self.t.number(x, ast.Pass()), FLOAT)
        if y is None:
            return self.t.a.cast(self.t.number(x, ast.Pass()), COMPLEX)
        imaginary = self.t.a.cast(self.t.number(y, ast.Pass()), FLOAT)
        r, i = self.t.a.value(real), self.t.a.value(imaginary)
        return Number(COMPLEX, ssa=self.t.e.value(f"complex.create {r}, {i} : complex<f64>"))

    def as_bool(self, x: Any = None) -> Value:
        return self.t.a.truth(self.t.number(x, ast.Pass()))

    def total(self, x: Any, start: Any = None) -> Value:
        """Python's sum."""
        parts = x if isinstance(x, tuple) else None
        if parts is None:
            return self.reduce("sum", x)
        found = start if start is not None else constant(0)
        for each in parts:
            found = self.t.binary(ast.Add(), found, each)
        return found

    def nothing(self, *args: Any, **named: Any) -> Value:
        raise self.t.refused("print is not there yet", "return the numbers, and print them outside")

    # -- methods -----------------------------------------------------------------------------------

    def _method(self, method: Any, args: list[Any], named: Given) -> Value:
        if method.name in _DIRECT:
            return _DIRECT[method.name](self, method.of, *args, **named)
        return self.function(_METHODS[method.name], [method.of, *args], named, ast.Pass())

    def astype(self, x: Any, dtype: Any, copy: Any = None) -> Value:
        found = self.t.operand(self._as_kind(x, self.dtype(dtype)))
        return found if isinstance(found, Number) else self.t.arrays.materialised(found)

    def fill(self, x: Any, value: Any) -> Value:
        from avial_lab.compiler.frontends.python.translate import Fixed

        self.t.arrays.assign(self.t.arrays.in_memory(self._array(x)), self.t.number(value, ast.Pass()))
        return Fixed(None)

    def item(self, x: Any) -> Value:
        value = self.t.number(x, ast.Pass())
        return replace(value, kind=_PYTHONS[value.kind.dtype.kind])

    def flat(self, x: Any, *_: Any) -> Value:
        array = self._array(x)
        if len(array.shape) == 1:
            return self.t.arrays.materialised(array)
        return self.reshape(array, constant(-1))

    def conjugate(self, x: Any) -> Value:
        def compute(value: Number) -> Number:
            if not value.kind.is_complex:
                return value
            ssa = self.t.e.value(f"complex.conj {self.t.a.value(value)} : {value.kind.mlir}")
            return Number(value.kind, ssa=ssa)

        return self.mapped(compute, x)

    def round(self, x: Any, decimals: Any = None) -> Value:
        if decimals is not None:
            raise self.t.refused("rounding takes no number of digits here", "scale before and after")
        value = self.t.operand(x)
        if isinstance(value, Number) and value.kind == FLOAT:
            rounded = self.t.e.value(f"math.roundeven {self.t.a.value(value)} : f64")
            return self.t.a.cast(Number(FLOAT, ssa=rounded), INT)
        return self.floor("roundeven", value)

    def floored(self, name: str, x: Any) -> Value:
        """math.floor and math.ceil: integers."""
        value = self.t.number(x, ast.Pass())
        if value.kind.is_int:
            return value
        ssa = self.t.e.value(f"math.{name} {self.t.a.value(value, FLOAT)} : f64")
        return self.t.a.cast(Number(FLOAT, ssa=ssa), INT)


# -- tables ----------------------------------------------------------------------------------------

_PYTHONS = {"b": BOOL, "i": INT, "u": INT, "f": FLOAT, "c": COMPLEX}


def _hashed(called: object) -> object:
    try:
        hash(called)
    except TypeError:
        return None
    return called


_UNARY: dict[object, str] = {}
for _name in (
    "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos",
    "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt",
):  # fmt: skip
    for _module in (math, np):
        for _spelling in (_name, _name.replace("a", "arc", 1) if _name.startswith("a") else _name):
            if hasattr(_module, _spelling):
                _UNARY[getattr(_module, _spelling)] = _name
if hasattr(math, "erf"):
    _UNARY[math.erf] = "erf"


def _method_of(name: str) -> Callable[..., Any]:
    return getattr(Calls, name)


def _partial(name: str, *first: Any) -> Callable[..., Any]:
    method = _method_of(name)
    return lambda calls, *args, **named: method(calls, *first, *args, **named)


def _operator(op: ast.operator) -> Callable[..., Any]:
    return lambda calls, x, y: calls.t.binary(op, calls.t.operand(x), calls.t.operand(y))


def _comparison(op: ast.cmpop) -> Callable[..., Any]:
    return lambda calls, x, y: calls.t._compared(op, x, y)


_KNOWN: dict[object, Callable[..., Any]] = {
    builtins.abs: _method_of("absolute"),
    builtins.max: _partial("chosen", True),
    builtins.min: _partial("chosen", False),
    builtins.sum: _method_of("total"),
    builtins.len: _method_of("length"),
    builtins.int: _method_of("as_int"),
    builtins.float: _method_of("as_float"),
    builtins.complex: _method_of("as_complex"),
    builtins.bool: _method_of("as_bool"),
    builtins.round: _method_of("round"),
    builtins.pow: _method_of("power"),
    builtins.print: _method_of("nothing"),
    math.floor: _partial("floored", "floor"),
    math.ceil: _partial("floored", "ceil"),
    math.fabs: lambda calls, x: calls.absolute(calls.as_float(x)),
    math.pow: lambda calls, x, y: calls.power(calls.as_float(x), calls.as_float(y)),
    math.atan2: _partial("two", "atan2"),
    math.copysign: _partial("two", "copysign"),
    math.isnan: _partial("tested", "isnan"),
    math.isinf: _partial("tested", "isinf"),
    math.isfinite: _partial("tested", "isfinite"),
    np.abs: _method_of("absolute"),
    np.fabs: _method_of("absolute"),
    np.maximum: _partial("extreme", "max"),
    np.minimum: _partial("extreme", "min"),
    np.where: _method_of("where"),
    np.power: _method_of("power"),
    np.arctan2: _partial("two", "atan2"),
    np.copysign: _partial("two", "copysign"),
    np.isnan: _partial("tested", "isnan"),
    np.isinf: _partial("tested", "isinf"),
    np.isfinite: _partial("tested", "isfinite"),
    np.sign: _method_of("sign"),
    np.floor: _partial("floor", "floor"),
    np.ceil: _partial("floor", "ceil"),
    np.trunc: _partial("floor", "trunc"),
    np.rint: _partial("floor", "roundeven"),
    np.round: _method_of("round"),
    np.square: lambda calls, x: calls.power(x, constant(2)),
    np.logical_and: _partial("logical", "andi"),
    np.logical_or: _partial("logical", "ori"),
    np.logical_xor: _partial("logical", "xori"),
    np.logical_not: lambda calls, x: calls.mapped(
        lambda v: replace(calls.t.a.negation(calls.t.a.truth(v)), kind=NP_BOOL), x
    ),
    np.add: _operator(ast.Add()),
    np.subtract: _operator(ast.Sub()),
    np.multiply: _operator(ast.Mult()),
    np.divide: _operator(ast.Div()),
    np.floor_divide: _operator(ast.FloorDiv()),
    np.mod: _operator(ast.Mod()),
    np.matmul: _operator(ast.MatMult()),
    np.greater: _comparison(ast.Gt()),
    np.greater_equal: _comparison(ast.GtE()),
    np.less: _comparison(ast.Lt()),
    np.less_equal: _comparison(ast.LtE()),
    np.equal: _comparison(ast.Eq()),
    np.not_equal: _comparison(ast.NotEq()),
    np.sum: _partial("reduce", "sum"),
    np.prod: _partial("reduce", "prod"),
    np.max: _partial("reduce", "max"),
    np.min: _partial("reduce", "min"),
    np.any: _partial("reduce", "any"),
    np.all: _partial("reduce", "all"),
    np.mean: _partial("reduce", "mean"),
    np.var: _method_of("variance"),
    np.std: _method_of("deviation"),
    np.argmax: _partial("position", True),
    np.argmin: _partial("position", False),
    np.zeros: _method_of("zeros"),
    np.empty: _method_of("empty"),
    np.ones: _method_of("ones"),
    np.full: _method_of("full"),
    np.zeros_like: _method_of("zeros_like"),
    np.ones_like: _method_of("ones_like"),
    np.empty_like: _method_of("empty_like"),
    np.full_like: _method_of("full_like"),
    np.eye: _method_of("eye"),
    np.arange: _method_of("arange"),
    np.linspace: _method_of("linspace"),
    np.copy: _method_of("copy"),
    np.array: _method_of("as_array"),
    np.asarray: _method_of("as_array"),
    np.dot: _method_of("dot"),
    np.outer: _method_of("outer"),
    np.transpose: _method_of("transpose"),
    np.flip: _method_of("flip"),
    np.reshape: _method_of("reshape"),
    np.ravel: _method_of("flat"),
    np.conj: _method_of("conjugate"),
    np.real: lambda calls, x: calls._part(calls.t.operand(x), "real"),
    np.imag: lambda calls, x: calls._part(calls.t.operand(x), "imag"),
}
"""By the Python object that is called."""

_FUNCTIONS_ALSO: dict[object, object] = {np.negative: np.negative}
_KNOWN[np.negative] = lambda calls, x: calls.t._unary(ast.USub(), x, ast.Pass())

_METHODS: dict[str, object] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all,
    "mean": np.mean, "var": np.var, "std": np.std, "argmax": np.argmax, "argmin": np.argmin,
    "dot": np.dot, "transpose": np.transpose, "copy": np.copy, "reshape": np.reshape,
    "conj": np.conj, "conjugate": np.conj, "round": np.round,
}  # fmt: skip
_DIRECT: dict[str, Callable[..., Any]] = {
    "astype": _method_of("astype"),
    "fill": _method_of("fill"),
    "item": _method_of("item"),
    "flatten": _method_of("flat"),
    "ravel": _method_of("flat"),
}
_NEVER = (builtins.print, builtins.open, builtins.input, builtins.eval, builtins.exec)


def _is_prange(called: object) -> bool:
    """Numba's, too."""
    return getattr(called, "__name__", "") == "prange"


def _is_librarys(function: types.FunctionType) -> bool:
    return function.__module__.partition(".")[0] in ("numpy", "scipy", "math", "builtins")


def _told(called: object) -> str:
    name = getattr(called, "__name__", None) or f"{called!r:.40}"
    module = getattr(called, "__module__", "") or ""
    return f"{'np' if module.startswith('numpy') else module}.{name}" if module not in ("", "builtins") else name


def _arguments_words(error: TypeError) -> str:
    words = str(error)
    return words.partition(") ")[2] if ") " in words else words.partition("() ")[2] or words

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from avial_lab.compiler.frontends.python import library
from avial_lab.compiler.frontends.python.arithmetic import affine, constant
from avial_lab.compiler.frontends.python.creation import Creation
from avial_lab.compiler.frontends.python.elementwise import Given, as_float, told
from avial_lab.compiler.frontends.python.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NP_BOOL,
    Kind,
    promoted,
)
from avial_lab.compiler.frontends.python.linear import Linear, number
from avial_lab.compiler.frontends.python.values import (
    Array,
    Closure,
    Fixed,
    Lazy,
    Listed,
    Method,
    Number,
    Operand,
    Value,
)


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


def prange(*args: int) -> range:
    """`range`, for a loop whose iterations the person knows to be independent."""
    return range(*args)


class Calls(Creation):
    """The calls of one translation."""

    # -- loops ---

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
                if called is builtins.map and len(node.args) > 1:
                    return self._mapped(node)
                if called in (np.ndindex, np.ndenumerate):
                    raise self.t.refused(
                        f"{told(called)} is not supported", "write a loop for each dimension"
                    )
            value = self.t.expression(node)
            if isinstance(value, tuple):
                return Sequenced(number(0), number(0), number(1), lambda _: None, value)
            if isinstance(value, Listed):
                return Sequenced(
                    number(0),
                    value.array.shape[0],
                    number(1),
                    lambda at: self.t.list_item(value, [affine(at)]),
                )
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

    def is_sequence(self, node: ast.expr) -> bool:
        """Whether a call of that is what a loop goes over."""
        called = self._called(node)
        return called in (builtins.range, builtins.map, builtins.zip, builtins.enumerate) or (
            called is builtins.reversed
        )

    def _mapped(self, node: ast.Call) -> Sequenced:
        function = self.t.expression(node.args[0])
        parts = [self.iterated(each) for each in node.args[1:]]
        if len(parts) > 1:
            of = self._zipped(parts)
            element = of.element
        else:
            of = parts[0]
            element = lambda at: (of.element(at),)  # noqa: E731
        if of.items is not None:
            found = tuple(self.apply(function, [each], {}, node) for each in of.items)
            return replace(of, items=found)
        return replace(of, element=lambda at: self.apply(function, [*element(at)], {}, node))

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
                f"an integer is wanted, not {value.kind}",
                "convert it: int(…)",
                TypeError,
                node=node,
            )
        return self.index(value)

    def _reversed(self, of: Sequenced) -> Sequenced:
        if of.items is not None:
            return replace(of, items=tuple(reversed(of.items)))
        if of.step.known not in (1, -1):
            of = self.counted(of)
        step = -of.step
        last = of.high + step
        return Sequenced(last, of.low + step, step, of.element)

    def counted(self, of: Sequenced) -> Sequenced:
        """The same from 0 by 1."""
        step = of.step.known
        if step is None:
            raise self.t.refused("the step of such a range is a number here", "use an index")
        turns = of.high - of.low if step > 0 else of.low - of.high
        if abs(step) != 1:
            turns = self.t.rounded_up(turns, abs(step))
        return Sequenced(
            number(0), turns, number(1), lambda at: of.element(of.low + at.scaled(step))
        )

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
            of = self.counted(of)
        return replace(of, element=lambda at: (affine(at - of.low + number(start)), of.element(at)))

    def _zipped(self, parts: Sequence[Sequenced]) -> Sequenced:
        if any(part.items is not None for part in parts):
            return self._zipped_items(parts)
        parts = [part if part.step.known == 1 else self.counted(part) for part in parts]
        lengths = {str(part.high - part.low) for part in parts}
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

    def _zipped_items(self, parts: Sequence[Sequenced]) -> Sequenced:
        """With a tuple among them: as many as its items, or less where the rest is shorter."""
        rows: list[Sequence[Any]] = []
        fewest = min(len(part.items) for part in parts if part.items is not None)
        for part in parts:
            if part.items is not None:
                rows.append(part.items)
                continue
            part = part if part.step.known == 1 else self.counted(part)
            length = (part.high - part.low).known
            if length is None:
                raise self.t.refused("how long an array in this zip is, is not known here", "")
            turns = range(min(length, fewest))
            rows.append([part.element(part.low + number(k)) for k in turns])
        return Sequenced(
            number(0), number(0), number(1), lambda _: None, [*zip(*rows, strict=False)]
        )

    # -- attributes ---

    def attribute(self, value: Value, name: str) -> Value:
        if isinstance(value, Lazy) and value.mask is not None and name in _OF_SHAPES:
            value = self.t.arrays.materialised(value)
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
            case Array() | Lazy() if name == "itemsize":
                return constant(value.kind.dtype.itemsize)
            case Array() | Lazy() if name == "nbytes":
                by = constant(value.kind.dtype.itemsize)
                return self.t.a.binary(ast.Mult(), self._size(value), by)
            case Array() | Lazy() if name == "T":
                array = self.t.arrays.in_memory(value)
                return self.t.arrays.transposed(array, range(len(array.shape))[::-1])
            case Array() | Lazy() if name == "flat":
                return self.ravelled(value)
            case Array() | Lazy() | Number() if name == "dtype":
                return Fixed(value.kind.dtype)
            case Array() | Lazy() | Number() if name in ("real", "imag"):
                return self._part(value, name)
            case Array() | Lazy() | Number():
                if name in _METHODS or name in _DIRECT:
                    return Method(value, name)
            case _ if name in ("append", "extend", "insert", "pop"):
                raise self.t.refused(
                    "a list that grows is not supported", "make an array, np.empty(…), and count"
                )
            case _:
                pass
        raise self.t.refused(f"'.{name}' is not supported", "write it with loops, or with np.…")

    def _size(self, value: Array | Lazy) -> Number:
        total = affine(number(1))
        for extent in value.shape:
            total = self.t.a.binary(ast.Mult(), total, affine(extent))
        return total

    # -- calls ---

    def _called(self, node: ast.expr) -> object:
        """The Python object that is called; None for a method of an array."""
        value = self.t.expression(node)
        return value.value if isinstance(value, Fixed) else None

    def call(self, node: ast.Call) -> Value:
        called = self.t.expression(node.func)
        if isinstance(called, Fixed) and called.value is builtins.print:
            self.t.prints.write(node)
            return Fixed(None)
        if isinstance(called, Fixed):
            reduced = self.t.closures.reduced(called.value, node)
            if reduced is not None:
                return reduced
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise self.t.refused("* in a call is not supported", "write the arguments out")
        args = [self.t.expression(each) for each in node.args]
        named = {each.arg: self.t.expression(each.value) for each in node.keywords if each.arg}
        return self.apply(called, args, named, node)

    def apply(self, called: Value, args: list[Any], named: Given, node: ast.AST) -> Value:
        if isinstance(called, Method):
            return self._method(called, args, named, node)
        if isinstance(called, Closure):
            return self.t.closures.called(called, args, named, node)
        if not isinstance(called, Fixed):
            raise self.t.refused("this is no function", "", TypeError)
        return self.function(called.value, args, named, node)

    def function(self, called: object, args: list[Any], named: Given, node: ast.AST) -> Value:
        self.node = node
        if "where" in named and isinstance(called, np.ufunc):
            raise self.t.refused("where= is not supported", "use np.where(…)")
        places = called.nin if isinstance(called, np.ufunc) else len(args)
        if _hashed(called) in _WITH_OUT and ("out" in named or len(args) > places):
            return self._into(called, args[:places], args[places:], named, node)
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
                words = f"{told(called)}: {_arguments_words(error)}"
                raise self.t.refused(words, "leave it out", TypeError) from None
        if isinstance(called, type) and issubclass(called, np.generic):
            return self._as_kind(args[0], Kind(np.dtype(called)))
        if isinstance(called, types.FunctionType) or hasattr(called, "py_func"):
            plain: Any = getattr(called, "py_func", called)
            if getattr(plain, "__module__", "").startswith(library.__name__):
                return self.t.written(plain, self._bound(plain, args, named), node)
            if isinstance(plain, types.FunctionType) and not _is_librarys(plain):
                return self.t.inlined(plain, self._bound(plain, args, named), node)
        if isinstance(called, type) and issubclass(called, Exception):
            raise self.t.refused("an exception is raised", "")
        folded = self.folded(called, args, named)
        if folded is not None:
            return folded
        way_out = _WAYS_OUT.get(_hashed(called), "write it with loops and arithmetic")
        raise self.t.refused(f"{told(called)} is not supported", way_out)

    def _into(
        self,
        called: object,
        args: list[Any],
        places: list[Any],
        named: Given,
        node: ast.AST,
    ) -> Value:
        """np.add(a, b, out=c), or np.add(a, b, c): the elements of `c` become the result's."""
        named = dict(named)
        given = [*places, *([named.pop("out")] if "out" in named else [])]
        out = given[0][0] if isinstance(given[0], tuple) and len(given[0]) == 1 else given[0]
        result = self.function(called, args, named, node)
        if out == Fixed(None):
            return result
        if len(given) > 1 or not isinstance(out, Array):
            raise self.t.refused(
                f"{told(called)}: out is one array", "name it before: c = np.empty(…)", TypeError
            )
        made = self.t.operand(result)
        if not np.can_cast(made.kind.dtype, out.kind.dtype, "same_kind"):
            raise self.t.refused(
                f"{told(called)}: an array of {out.kind} cannot take {made.kind}",
                "out=… of a kind that can",
                TypeError,
            )
        if called is np.dot and made.kind.dtype != out.kind.dtype:
            raise self.t.refused(
                f"np.dot: out is an array of {made.kind}", "np.empty(…) of that", ValueError
            )
        self.t.arrays.assign(out, made)
        return out

    def _bound(self, function: types.FunctionType, args: list[Any], named: Given) -> dict[str, Any]:
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

    def told_of(self, name: str, x: Value) -> Value:
        """np.shape, np.ndim and np.size; a number has no dimensions."""
        found = self.t.operand(x)
        if isinstance(found, Number):
            return {"shape": (), "ndim": constant(0), "size": constant(1)}[name]
        return self.attribute(found, name)

    def scaled(self, by: float, x: Value) -> Value:
        return self.t.binary(ast.Mult(), self.as_floating(x), constant(by))

    def as_floating(self, x: Value) -> Value:
        """Integers as floats."""
        found = self.t.operand(x)
        kind = as_float(found.kind)
        return found if kind == found.kind else self._as_kind(found, kind)

    def fmod(self, x: Value, y: Value) -> Value:
        """np.fmod: the sign of the dividend."""

        def compute(a: Number, b: Number) -> Number:
            kind = promoted(a.kind, b.kind)
            if kind.is_bool or kind.is_complex:
                raise self.t.refused("np.fmod takes integers and floats", "convert them")
            if kind.is_int:
                return self.t.a.remainder(a, b, kind)
            left, right = self.t.a.value(a, kind), self.t.a.value(b, kind)
            return Number(kind, ssa=self.t.e.value(f"arith.remf {left}, {right} : {kind.mlir}"))

        return self.mapped(compute, x, y)

    def pythons_fmod(self, x: Number, y: Number) -> Value:
        """math.fmod, which has no remainder of a division by 0."""
        zero = self.t.a.value(constant(0.0), FLOAT)
        ok = self.t.e.value(f"arith.cmpf une, {self.t.a.value(y, FLOAT)}, {zero} : f64")
        self.t.a.raise_unless(ok, "ValueError", "math domain error")
        return self.fmod(x, y)

    # -- methods ---

    def _method(self, method: Method, args: list[Any], named: Given, node: ast.AST) -> Value:
        if method.name in _DIRECT:
            return _DIRECT[method.name](self, method.of, *args, **named)
        return self.function(_METHODS[method.name], [method.of, *args], named, node)

    def astype(self, x: Value, dtype: Value, copy: Value | None = None) -> Value:
        if copy is not None and getattr(copy, "known", None) is False:
            return self.same_array(x, dtype)
        found = self.t.operand(self._as_kind(x, self.dtype(dtype)))
        return found if isinstance(found, Number) else self.t.arrays.materialised(found)

    def fill(self, x: Value, value: Value) -> Value:
        self.t.arrays.assign(
            self.t.arrays.in_memory(self._array(x)), self.t.number(value, ast.Pass())
        )
        return Fixed(None)

    def item(self, x: Value) -> Value:
        value = self.t.number(x, ast.Pass())
        return replace(value, kind=_PYTHONS[value.kind.dtype.kind])

    def conjugate(self, x: Value) -> Value:
        def compute(value: Number) -> Number:
            if not value.kind.is_complex:
                return value
            ssa = self.t.e.value(f"complex.conj {self.t.a.value(value)} : {value.kind.mlir}")
            return Number(value.kind, ssa=ssa)

        return self.mapped(compute, x)

    def round(self, x: Value, decimals: Value | None = None) -> Value:
        value = self.t.operand(x)
        digits = 0 if decimals is None else self.t.number(decimals, ast.Pass()).known
        if not isinstance(digits, int):
            raise self.t.refused("the number of digits is known here", "scale before and after")
        return self._rounded_to(value, digits) if digits else self.floor("roundeven", value)

    def pythons_round(self, number: Value, ndigits: Value | None = None) -> Value:
        """An integer of Python's where no number of digits is given."""
        value = self.t.number(number, ast.Pass())
        if ndigits is None:
            if value.kind.is_bool and not value.kind.weak:
                raise self.t.refused("NumPy's bools are not rounded", "int(…)", TypeError)
            if not value.kind.is_float:
                return self.t.a.cast(value, INT)
            rounded = self.t.e.value(f"math.roundeven {self.t.a.value(value, FLOAT)} : f64")
            return self.t.a.cast(Number(FLOAT, ssa=rounded), INT)
        if value.kind == FLOAT:
            raise self.t.refused("Python's floats are not rounded to digits here", "np.round(x, 2)")
        return self.round(value, ndigits)

    def _rounded_to(self, value: Operand, digits: int) -> Value:
        """As NumPy: scaled, rounded, and scaled back."""
        if not value.kind.is_float:
            if digits > 0 and value.kind.is_int:
                return value
            raise self.t.refused("floats are rounded to digits here", "convert them")
        by = self.t.a.cast(constant(10.0 ** abs(digits)), Kind(value.kind.dtype))
        ops = (ast.Mult(), ast.Div()) if digits > 0 else (ast.Div(), ast.Mult())
        rounded = self.floor("roundeven", self.t.binary(ops[0], value, by))
        return self.t.binary(ops[1], rounded, by)

    def floored(self, name: str, x: Value) -> Value:
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


def _partial(name: str, *first: object) -> Callable[..., Any]:
    method = _method_of(name)
    return lambda calls, *args, **named: method(calls, *first, *args, **named)


def _of_pythons_floats(name: str, *first: object) -> Callable[..., Any]:
    """A function of `math`, whose result is Python's, too."""
    method = _method_of(name)

    def called(calls: Calls, *args: Value) -> Value:
        found = method(calls, *first, *map(calls.as_float, args))
        return calls.as_bool(found) if found.kind.is_bool else found

    return called


def _operator(op: ast.operator) -> Callable[..., Any]:
    return lambda calls, x, y: calls.t.binary(op, calls.t.operand(x), calls.t.operand(y))


def _comparison(op: ast.cmpop) -> Callable[..., Any]:
    return lambda calls, x, y: calls.t._compared(op, x, y)


def _along_first(name: str) -> Callable[..., Any]:
    """A ufunc's reduce, which goes along the first axis where nothing is said."""
    first = constant(0)
    return lambda calls, x, axis=first: calls.reduce(name, x, axis)


def _inlined(function: types.FunctionType) -> Callable[..., Any]:
    """A function of NumPy's, written in Python here."""
    return lambda calls, *args, **named: calls.t.written(
        function, calls._bound(function, list(args), named), calls.node
    )


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
    builtins.round: _method_of("pythons_round"),
    builtins.pow: _method_of("power"),
    math.floor: _partial("floored", "floor"),
    math.ceil: _partial("floored", "ceil"),
    math.fabs: lambda calls, x: calls.absolute(calls.as_float(x)),
    math.pow: lambda calls, x, y: calls.power(calls.as_float(x), calls.as_float(y)),
    math.atan2: _of_pythons_floats("two", "atan2"),
    math.copysign: _of_pythons_floats("two", "copysign"),
    math.isnan: _of_pythons_floats("tested", "isnan"),
    math.isinf: _of_pythons_floats("tested", "isinf"),
    math.isfinite: _of_pythons_floats("tested", "isfinite"),
    np.abs: _method_of("absolute"),
    np.fabs: lambda calls, x: calls.absolute(calls.as_floating(x)),
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
    np.rint: lambda calls, x: calls.floor("roundeven", calls.as_floating(x)),
    np.round: _method_of("round"),
    np.square: _method_of("squared"),
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
    np.amax: _partial("reduce", "max"),
    np.amin: _partial("reduce", "min"),
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
    np.asarray: _method_of("same_array"),
    np.ascontiguousarray: _method_of("contiguous"),
    np.dot: _method_of("dot"),
    np.outer: _method_of("outer"),
    np.ndarray: _method_of("empty"),
    np.clip: _method_of("clip"),
    np.tril: _partial("triangle", True),
    np.triu: _partial("triangle", False),
    np.concatenate: _method_of("joined"),
    np.hstack: _method_of("beside"),
    np.repeat: _method_of("repeated"),
    np.add.outer: _partial("all_pairs", ast.Add()),
    np.subtract.outer: _partial("all_pairs", ast.Sub()),
    np.multiply.outer: _partial("all_pairs", ast.Mult()),
    np.stack: _method_of("stacked"),
    np.squeeze: _method_of("squeezed"),
    np.shape: _partial("told_of", "shape"),
    np.ndim: _partial("told_of", "ndim"),
    np.size: _partial("told_of", "size"),
    np.bitwise_and: _operator(ast.BitAnd()),
    np.bitwise_or: _operator(ast.BitOr()),
    np.bitwise_xor: _operator(ast.BitXor()),
    np.left_shift: _operator(ast.LShift()),
    np.right_shift: _operator(ast.RShift()),
    np.invert: lambda calls, x: calls.t._unary(ast.Invert(), x, ast.Pass()),
    np.radians: _partial("scaled", math.pi / 180),
    np.degrees: _partial("scaled", 180 / math.pi),
    np.fmod: _method_of("fmod"),
    math.radians: lambda calls, x: calls.scaled(math.pi / 180, calls.as_float(x)),
    math.degrees: lambda calls, x: calls.scaled(180 / math.pi, calls.as_float(x)),
    math.trunc: lambda calls, x: calls.as_int(x),
    math.fmod: lambda calls, x, y: calls.pythons_fmod(calls.as_float(x), calls.as_float(y)),
    np.diagonal: _method_of("diagonal"),
    np.true_divide: _operator(ast.Div()),
    np.remainder: _operator(ast.Mod()),
    np.exp2: lambda calls, x: calls.t.binary(ast.Pow(), constant(2.0), calls.as_floating(x)),
    np.moveaxis: _method_of("axis_moved"),
    np.split: _method_of("split"),
    math.prod: lambda calls, x: calls.product_of(x),
    np.add.reduce: _along_first("sum"),
    np.multiply.reduce: _along_first("prod"),
    np.maximum.reduce: _along_first("max"),
    np.minimum.reduce: _along_first("min"),
    np.transpose: _method_of("transpose"),
    np.flip: _method_of("flip"),
    np.reshape: _method_of("reshape"),
    np.ravel: _method_of("ravelled"),
    np.conj: _method_of("conjugate"),
    np.real: lambda calls, x: calls._part(calls.t.operand(x), "real"),
    np.imag: lambda calls, x: calls._part(calls.t.operand(x), "imag"),
}
"""By the Python object that is called."""

_KNOWN[np.negative] = lambda calls, x: calls.t._unary(ast.USub(), x, ast.Pass())
_KNOWN[np.positive] = lambda calls, x: calls.t._unary(ast.UAdd(), x, ast.Pass())
_KNOWN[np.deg2rad] = _KNOWN[np.radians]
_KNOWN[np.rad2deg] = _KNOWN[np.degrees]
_KNOWN |= {called: _inlined(written) for called, written in library.WRITTEN.items()}

_METHODS: dict[str, object] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all,
    "mean": np.mean, "var": np.var, "std": np.std, "argmax": np.argmax, "argmin": np.argmin,
    "dot": np.dot, "transpose": np.transpose, "copy": np.copy, "reshape": np.reshape,
    "conj": np.conj, "conjugate": np.conj, "round": np.round,
}  # fmt: skip
_METHODS |= library.METHODS
_DIRECT: dict[str, Callable[..., Any]] = {
    "astype": _method_of("astype"),
    "fill": _method_of("fill"),
    "item": _method_of("item"),
    "flatten": _method_of("flat"),
    "ravel": _method_of("ravelled"),
}


_WITH_OUT = frozenset(
    [np.clip, np.dot, *(each for each in _KNOWN | _UNARY if isinstance(each, np.ufunc))]
)
"""That take the array for their result."""

_WAYS_OUT: dict[object, str] = {
    np.bincount: "counts = np.zeros(k, np.int64), and counts[v] += 1 in a loop",
    np.ndindex: "write a loop for each dimension",
    np.ndenumerate: "write a loop for each dimension",
    np.random.rand: "make the random numbers outside, and hand them over",
    np.random.random: "make the random numbers outside, and hand them over",
    np.random.randn: "make the random numbers outside, and hand them over",
    np.random.normal: "make the random numbers outside, and hand them over",
    np.random.randint: "make the random numbers outside, and hand them over",
    np.random.seed: "make the random numbers outside, and hand them over",
    np.fft.fft: "avial_lab.ptensor has it; or call it outside",
    np.linalg.eig: "call it outside of the function",
    np.linalg.eigh: "call it outside of the function",
    np.linalg.svd: "call it outside of the function",
    np.linalg.qr: "call it outside of the function",
    np.linalg.lstsq: "np.linalg.solve(a.T @ a, a.T @ b) is there; or call it outside",
    builtins.list: "make an array: np.array([… for …]), np.empty(…)",
    builtins.dict: "use arrays",
    builtins.set: "np.unique is there",
    builtins.sorted: "np.sort is there",
    builtins.isinstance: "write a function for each kind",
}

_OF_SHAPES = ("shape", "ndim", "size", "T", "nbytes")


def _is_prange(called: object) -> bool:
    """Numba's, too."""
    return getattr(called, "__name__", "") == "prange"


def _is_librarys(function: types.FunctionType) -> bool:
    return function.__module__.partition(".")[0] in ("numpy", "scipy", "math", "builtins")


def _arguments_words(error: TypeError) -> str:
    words = str(error)
    return words.partition(") ")[2] if ") " in words else words.partition("() ")[2] or words

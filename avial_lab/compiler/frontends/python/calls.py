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
from avial_lab.compiler.frontends.python.elementwise import Given, told
from avial_lab.compiler.frontends.python.kinds import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NP_BOOL,
    Kind,
)
from avial_lab.compiler.frontends.python.linear import Linear, number
from avial_lab.compiler.frontends.python.values import (
    Array,
    Fixed,
    Lazy,
    Method,
    Number,
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
            of = self._counted(of)
        step = -of.step
        last = of.high + step
        return Sequenced(last, of.low + step, step, of.element)

    def _counted(self, of: Sequenced) -> Sequenced:
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
            of = self._counted(of)
        return replace(of, element=lambda at: (affine(at - of.low + number(start)), of.element(at)))

    def _zipped(self, parts: Sequence[Sequenced]) -> Sequenced:
        if any(part.items is not None for part in parts):
            raise self.t.refused("zip takes arrays and ranges here", "use an index")
        parts = [part if part.step.known == 1 else self._counted(part) for part in parts]
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

    # -- attributes ---

    def attribute(self, value: Value, name: str) -> Value:
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
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise self.t.refused("* in a call is not there", "write the arguments out")
        args = [self.t.expression(each) for each in node.args]
        named = {each.arg: self.t.expression(each.value) for each in node.keywords if each.arg}
        if isinstance(called, Method):
            return self._method(called, args, named)
        if not isinstance(called, Fixed):
            raise self.t.refused("this is no function", "", TypeError)
        return self.function(called.value, args, named, node)

    def function(self, called: object, args: list[Any], named: Given, node: ast.AST) -> Value:
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
            if isinstance(plain, types.FunctionType) and not _is_librarys(plain):
                return self.t.inlined(plain, self._bound(plain, args, named), node)
        if isinstance(called, type) and issubclass(called, Exception):
            raise self.t.refused("an exception is raised", "")
        folded = self.folded(called, args, named)
        if folded is not None:
            return folded
        raise self.t.refused(f"{told(called)} is not there", "write it with loops and arithmetic")

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

    # -- methods ---

    def _method(self, method: Value, args: list[Any], named: Given) -> Value:
        if method.name in _DIRECT:
            return _DIRECT[method.name](self, method.of, *args, **named)
        return self.function(_METHODS[method.name], [method.of, *args], named, ast.Pass())

    def astype(self, x: Value, dtype: Value, copy: Value | None = None) -> Value:
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
        if decimals is not None:
            raise self.t.refused(
                "rounding takes no number of digits here", "scale before and after"
            )
        value = self.t.operand(x)
        if isinstance(value, Number) and value.kind == FLOAT:
            rounded = self.t.e.value(f"math.roundeven {self.t.a.value(value)} : f64")
            return self.t.a.cast(Number(FLOAT, ssa=rounded), INT)
        return self.floor("roundeven", value)

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


def _operator(op: ast.operator) -> Callable[..., Any]:
    return lambda calls, x, y: calls.t.binary(op, calls.t.operand(x), calls.t.operand(y))


def _comparison(op: ast.cmpop) -> Callable[..., Any]:
    return lambda calls, x, y: calls.t._compared(op, x, y)


def _inlined(function: types.FunctionType) -> Callable[..., Any]:
    """A function of NumPy's, written in Python here."""
    return lambda calls, *args, **named: calls.t.inlined(
        function, calls._bound(function, list(args), named), ast.Pass()
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
    builtins.round: _method_of("round"),
    builtins.pow: _method_of("power"),
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
    np.linalg.cholesky: _inlined(library.cholesky),
    np.linalg.solve: _inlined(library.solve),
    np.linalg.inv: _inlined(library.inv),
    np.cov: _inlined(library.cov),
    np.histogram: _inlined(library.histogram),
    np.transpose: _method_of("transpose"),
    np.flip: _method_of("flip"),
    np.reshape: _method_of("reshape"),
    np.ravel: _method_of("flat"),
    np.conj: _method_of("conjugate"),
    np.real: lambda calls, x: calls._part(calls.t.operand(x), "real"),
    np.imag: lambda calls, x: calls._part(calls.t.operand(x), "imag"),
}
"""By the Python object that is called."""

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


def _is_prange(called: object) -> bool:
    """Numba's, too."""
    return getattr(called, "__name__", "") == "prange"


def _is_librarys(function: types.FunctionType) -> bool:
    return function.__module__.partition(".")[0] in ("numpy", "scipy", "math", "builtins")


def _arguments_words(error: TypeError) -> str:
    words = str(error)
    return words.partition(") ")[2] if ") " in words else words.partition("() ")[2] or words

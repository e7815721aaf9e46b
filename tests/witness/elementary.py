"""math: what is exact (absf, floor, sqrt, fma, …) exactly; elementary functions as NumPy has them,
in double precision and then rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from tests.witness.floats import fused, rounded
from tests.witness.machine import RULES, Op, Step, rule
from tests.witness.values import Float, Integer, Number, Undefined

_FLOATS: dict[str, Callable[..., Number]] = {
    "absf": np.abs, "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "sqrt": np.sqrt,
    "roundeven": np.rint, "copysign": np.copysign,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "atan2": np.arctan2, "powf": np.power, "cbrt": np.cbrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + (0.5 if np.abs(x) < 2**52 else 0)), x)
    if np.abs(x) != 0.49999999999999994 else np.copysign(np.float64(0), x),
    "erf": lambda x: np.float64(math.erf(x)),
    "erfc": lambda x: np.float64(math.erfc(x)),
}  # fmt: skip


def _float_function(name: str, op: Op) -> Step:
    """A float's square root in double precision, rounded, is that of its own precision."""
    kind, compute = op.element(), _FLOATS[name]
    assert isinstance(kind, Float)
    return op.elementwise(lambda *xs: rounded(compute(*map(np.float64, xs)), kind))


for _name in _FLOATS:
    RULES[f"math.{_name}"] = partial(_float_function, _name)


@rule("math.fma")
def _fma(op: Op) -> Step:
    kind = op.element()
    assert isinstance(kind, Float)
    return op.elementwise(lambda x, y, z: fused(x, y, z, kind))


@rule("math.fpowi")
def _power_of_integer(op: Op) -> Step:
    kind, exponent = op.element(), op.integer(1)
    assert isinstance(kind, Float)
    return op.elementwise(lambda x, n: rounded(np.power(np.float64(x), exponent.signed(n)), kind))


_TESTS: dict[str, Callable[[np.float64], object]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isnormal": lambda x: np.isfinite(x) and np.abs(x) >= np.finfo(x.dtype).tiny,
}


def _test(name: str, op: Op) -> Step:
    return op.elementwise(lambda x: int(bool(_TESTS[name](x))))


for _name in _TESTS:
    RULES[f"math.{_name}"] = partial(_test, _name)


# -- integers --------------------------------------------------------------------------------------


def _leading_zeros(kind: Integer, x: int) -> int:
    return kind.width - x.bit_length()


def _trailing_zeros(kind: Integer, x: int) -> int:
    return (x & -x).bit_length() - 1 if x else kind.width


def _power(kind: Integer, x: int, n: int) -> int:
    """As MLIR's page: a negative exponent gives what integer division of 1 leaves."""
    base, exponent = kind.signed(x), kind.signed(n)
    if exponent >= 0:
        return pow(base, exponent, kind.mask + 1)
    if base == 0:
        raise Undefined("zero to a negative power")
    return {1: 1, -1: kind.mask if exponent % 2 else 1}.get(base, 0)


_INTEGERS: dict[str, Callable[..., int]] = {
    "absi": lambda kind, x: abs(kind.signed(x)) & kind.mask,
    "ctlz": _leading_zeros,
    "cttz": _trailing_zeros,
    "ctpop": lambda kind, x: x.bit_count(),
    "ipowi": _power,
}


def _integer_function(name: str, op: Op) -> Step:
    return op.elementwise(partial(_INTEGERS[name], op.integer()))


for _name in _INTEGERS:
    RULES[f"math.{_name}"] = partial(_integer_function, _name)

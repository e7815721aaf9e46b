"""How two values become one: the kinds of `affine.parallel`, `memref.atomic_rmw` and vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mlir.dialects import arith

from tests.witness.floats import greatest, least
from tests.witness.values import Element, Float, Integer, Number, Unsupported


@dataclass(frozen=True)
class Combine:
    """`compute` of two numbers' values (of integers signed where `sign`); `start` is neutral."""

    compute: Callable[[Number, Number], Number]
    start: Callable[[Element], float]
    sign: bool = True

    def neutral(self, kind: Element) -> Number:
        return kind.read(self.start(kind))

    def of(self, kind: Element) -> Callable[[Number, Number], Number]:
        """For numbers of that element."""
        if not isinstance(kind, Integer):
            return self.compute
        view = kind.signed if self.sign else int
        return lambda x, y: self.compute(view(x), view(y)) & kind.mask


def _lowest(kind: Element) -> float:
    return kind.least if isinstance(kind, Integer) else -math.inf


def _highest(kind: Element) -> float:
    return -kind.least - 1 if isinstance(kind, Integer) else math.inf


def _ones(kind: Element) -> float:
    assert isinstance(kind, Integer)
    return kind.mask


def _zero(kind: Element) -> float:
    """Of floats -0, which changes no number."""
    return -0.0 if isinstance(kind, Float) else 0


_ADD = Combine(lambda x, y: x + y, _zero)
_MUL = Combine(lambda x, y: x * y, lambda kind: 1)
_MAX, _MIN = Combine(max, _lowest), Combine(min, _highest)
_MAXU, _MINU = Combine(max, lambda kind: 0, sign=False), Combine(min, _ones, sign=False)
_MAXIMUM = Combine(partial(greatest, number=False), _lowest)
_MINIMUM = Combine(partial(least, number=False), _highest)
_MAXNUM = Combine(partial(greatest, number=True), _lowest)
_MINNUM = Combine(partial(least, number=True), _highest)
_AND = Combine(lambda x, y: x & y, _ones, sign=False)
_OR = Combine(lambda x, y: x | y, lambda kind: 0, sign=False)
_XOR = Combine(lambda x, y: x ^ y, lambda kind: 0, sign=False)
_ASSIGN = Combine(lambda x, y: y, lambda kind: 0)

_ATOMIC = {
    "addf": _ADD, "addi": _ADD, "mulf": _MUL, "muli": _MUL, "assign": _ASSIGN,
    "maxs": _MAX, "mins": _MIN, "maxu": _MAXU, "minu": _MINU, "maximumf": _MAXIMUM,
    "minimumf": _MINIMUM, "maxnumf": _MAXNUM, "minnumf": _MINNUM, "andi": _AND, "ori": _OR,
    "xori": _XOR,
}  # fmt: skip
_VECTOR = {
    "add": _ADD, "mul": _MUL, "minui": _MINU, "minsi": _MIN, "maxui": _MAXU, "maxsi": _MAX,
    "and": _AND, "or": _OR, "xor": _XOR, "minnumf": _MINNUM, "maxnumf": _MAXNUM,
    "minimumf": _MINIMUM, "maximumf": _MAXIMUM,
}  # fmt: skip


def atomic_kind(number: int) -> Combine:
    return _ATOMIC[arith.AtomicRMWKind(number).name]


def vector_kind(text: str) -> Combine:
    """`#vector.kind<add>`."""
    name = text.partition("<")[2].rstrip(">")
    if name not in _VECTOR:
        raise Unsupported(f"a vector's {text}")
    return _VECTOR[name]

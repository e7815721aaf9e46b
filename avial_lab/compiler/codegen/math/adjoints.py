"""Derivatives of scalar operations, in reverse: what an operation hands back to its operands.

Operation, the derivative of its result -> for each operand its share of it, written at the current
insertion point; None where it has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith
from mlir.dialects import math as math_ops

Shares = tuple[ir.Value | None, ...]


def number(value: float, like: ir.Value) -> ir.Value:
    return arith.constant(like.type, ir.FloatAttr.get(like.type, value))


def _minus(x: ir.Value) -> ir.Value:
    return arith.negf(x)


def _mul(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.mulf(a, b)


def _division(op: ir.Operation, g: ir.Value) -> Shares:
    a, b = op.operands
    first = arith.divf(g, b)
    return first, _minus(arith.divf(_mul(first, a), b))


def _choice(predicate: arith.CmpFPredicate) -> Callable[[ir.Operation, ir.Value], Shares]:
    """Of equal ones the first is taken for the result."""

    def shares(op: ir.Operation, g: ir.Value) -> Shares:
        first = arith.cmpf(predicate, op.operands[0], op.operands[1])
        zero = number(0.0, g)
        return arith.select(first, g, zero), arith.select(first, zero, g)

    return shares


def _select(op: ir.Operation, g: ir.Value) -> Shares:
    zero, on = number(0.0, g), op.operands[0]
    return None, arith.select(on, g, zero), arith.select(on, zero, g)


def _tanh(op: ir.Operation, g: ir.Value) -> Shares:
    y = op.results[0]
    return (_mul(g, arith.subf(number(1.0, g), _mul(y, y))),)


def _erf(op: ir.Operation, g: ir.Value) -> Shares:
    x = op.operands[0]
    bell = math_ops.exp(_minus(_mul(x, x)))
    return (_mul(g, _mul(number(2 / math.sqrt(math.pi), g), bell)),)


def _absolute(op: ir.Operation, g: ir.Value) -> Shares:
    x = op.operands[0]
    negative = arith.cmpf(arith.CmpFPredicate.OLT, x, number(0.0, x))
    return (arith.select(negative, _minus(g), g),)


def _rsqrt(op: ir.Operation, g: ir.Value) -> Shares:
    y = op.results[0]
    return (_mul(_mul(g, number(-0.5, g)), _mul(y, _mul(y, y))),)


def _fma(op: ir.Operation, g: ir.Value) -> Shares:
    return _mul(g, op.operands[1]), _mul(g, op.operands[0]), g


RULES: dict[str, Callable[[ir.Operation, ir.Value], Shares]] = {
    "arith.addf": lambda op, g: (g, g),
    "arith.subf": lambda op, g: (g, _minus(g)),
    "arith.mulf": lambda op, g: (_mul(g, op.operands[1]), _mul(g, op.operands[0])),
    "arith.divf": _division,
    "arith.negf": lambda op, g: (_minus(g),),
    "arith.maximumf": _choice(arith.CmpFPredicate.OGE),
    "arith.maxnumf": _choice(arith.CmpFPredicate.OGE),
    "arith.minimumf": _choice(arith.CmpFPredicate.OLE),
    "arith.minnumf": _choice(arith.CmpFPredicate.OLE),
    "arith.select": _select,
    "math.absf": _absolute,
    "math.cos": lambda op, g: (_minus(_mul(g, math_ops.sin(op.operands[0]))),),
    "math.erf": _erf,
    "math.exp": lambda op, g: (_mul(g, op.results[0]),),
    "math.fma": _fma,
    "math.log": lambda op, g: (arith.divf(g, op.operands[0]),),
    "math.rsqrt": _rsqrt,
    "math.sin": lambda op, g: (_mul(g, math_ops.cos(op.operands[0])),),
    "math.sqrt": lambda op, g: (arith.divf(_mul(g, number(0.5, g)), op.results[0]),),
    "math.tanh": _tanh,
}
"""By the operation's name."""

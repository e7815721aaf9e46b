"""Operations on numbers as ONNX's elementwise operators, on tensors of such numbers.

Operation of arith or math, names of its operands (which broadcast) -> the name of what it makes.
Integers of MLIR have no sign, those of ONNX have: what reads them as unsigned is cast around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from avial_lab.compiler.backends.onnx.graph import Graph, dtype_of, refused

Dtype = np.dtype[Any]
Make = Callable[[Graph, ir.Operation, Sequence[str]], str]


def scalar(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    """PassError for an operation that ONNX has no operators for."""
    if op.name in _PLAIN:
        return _in_wide(graph, op, operands, _PLAIN[op.name])
    if op.name not in _RULES:
        raise refused(op)
    return _RULES[op.name](graph, op, operands)


def constant_number(graph: Graph, op: ir.Operation) -> str:
    """An arith.constant that is a number."""
    value = op.attributes["value"]
    return graph.constant(value.value, dtype_of(op, op.results[0].type))


_PLAIN = {
    "arith.addf": "Add", "arith.subf": "Sub", "arith.mulf": "Mul", "arith.divf": "Div",
    "arith.negf": "Neg", "arith.maximumf": "Max", "arith.minimumf": "Min",
    "arith.addi": "Add", "arith.subi": "Sub", "arith.muli": "Mul",
    "arith.maxsi": "Max", "arith.minsi": "Min",
    "math.absf": "Abs", "math.absi": "Abs", "math.exp": "Exp", "math.log": "Log",
    "math.sqrt": "Sqrt", "math.tanh": "Tanh", "math.erf": "Erf", "math.sin": "Sin",
    "math.cos": "Cos", "math.tan": "Tan", "math.asin": "Asin", "math.acos": "Acos",
    "math.atan": "Atan", "math.sinh": "Sinh", "math.cosh": "Cosh", "math.asinh": "Asinh",
    "math.acosh": "Acosh", "math.atanh": "Atanh", "math.floor": "Floor", "math.ceil": "Ceil",
    "math.roundeven": "Round", "math.powf": "Pow",
}  # fmt: skip

_ON_BOOLS = {"And": ("Mul", "Min"), "Or": ("Max",), "Xor": ("Add", "Sub")}


def _in_wide(graph: Graph, op: ir.Operation, operands: Sequence[str], kind: str) -> str:
    """Integers of 8 and 16 bits in 32: few operators are implemented for them; modulo 2 to their
    number of bits the result is the same.
    """
    dtype = dtype_of(op, op.results[0].type)
    if dtype.kind == "b":
        logical = next((name for name, kinds in _ON_BOOLS.items() if kind in kinds), None)
        if logical is None:
            raise refused(op, "of truth values has no operator in ONNX here")
        return graph.node(logical, *operands)
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        return graph.node(kind, *operands)
    wide = [graph.cast(each, "int32") for each in operands]
    return graph.cast(graph.node(kind, *wide), dtype)


def _kind(op: ir.Operation) -> Dtype:
    return dtype_of(op, op.operands[0].type)


def _unsigned(graph: Graph, name: str, dtype: Dtype) -> str:
    """The number that its bits are, in int64; of 64 bits, less 2^63, in the same order."""
    if dtype.kind == "b":
        return graph.cast(name, "int64")
    if dtype.itemsize == 8:
        return graph.node("Add", name, graph.constant(-(1 << 63)))
    if dtype.kind == "i":
        name = graph.cast(name, f"uint{8 * dtype.itemsize}")
    return graph.cast(name, "int64")


# Comparisons --------------------------------------------------------------------------------------

_ORDERED = {
    1: "Equal", 2: "Greater", 3: "GreaterOrEqual", 4: "Less", 5: "LessOrEqual",
}  # fmt: skip
"""By the number of arith's predicate: oeq, ogt, oge, olt, ole."""

_OPPOSITE = {8: 6, 9: 5, 10: 4, 11: 3, 12: 2, 13: 1}
"""ueq, ugt, uge, ult, ule, une: what holds where they do not."""


def _cmpf(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    return _compared(graph, ir.IntegerAttr(op.attributes["predicate"]).value, *operands)


def _compared(graph: Graph, predicate: int, a: str, b: str) -> str:
    if predicate in _ORDERED:
        return graph.node(_ORDERED[predicate], a, b)
    if predicate == 6:  # one
        return graph.node("Or", graph.node("Less", a, b), graph.node("Greater", a, b))
    if predicate in _OPPOSITE:
        return graph.node("Not", _compared(graph, _OPPOSITE[predicate], a, b))
    if predicate in (7, 14):  # ord, uno
        real = graph.node("And", graph.node("Equal", a, a), graph.node("Equal", b, b))
        return real if predicate == 7 else graph.node("Not", real)
    return graph.constant(predicate == 15, "bool")


_INTEGERS = ("Equal", "", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def _cmpi(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    predicate, dtype = ir.IntegerAttr(op.attributes["predicate"]).value, _kind(op)
    a, b = operands
    if dtype.kind == "b" and predicate in (2, 3, 4, 5):  # true is -1
        a, b = (graph.node("Neg", graph.cast(each, "int32")) for each in (a, b))
    elif predicate >= 6:
        a, b = (_unsigned(graph, each, dtype) for each in (a, b))
        predicate -= 4
    elif dtype.kind in "iu" and dtype.itemsize < 4:
        a, b = (graph.cast(each, "int32") for each in (a, b))
    if predicate == 1:
        return graph.node("Not", graph.node("Equal", a, b))
    return graph.node(_INTEGERS[predicate], a, b)


def _select(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    dtype = dtype_of(op, op.results[0].type)
    condition, yes, no = operands
    if dtype.kind != "b":
        return graph.node("Where", condition, yes, no)
    yes = graph.node("And", condition, yes)
    return graph.node("Or", yes, graph.node("And", graph.node("Not", condition), no))


def _number(kind: str) -> Make:
    """maxnumf, minnumf: NaN is none."""

    def make(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
        a, b = operands
        of = graph.node(kind, a, b)
        without_b = graph.node("Where", graph.node("IsNaN", b), a, of)
        return graph.node("Where", graph.node("IsNaN", a), b, without_b)

    return make


# Integers -----------------------------------------------------------------------------------------


def _divsi(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    """Towards zero, whatever an implementation takes Div of negative numbers for."""
    a, b = operands
    rest = graph.node("Mod", a, b, fmod=1)
    return graph.node("Div", graph.node("Sub", a, rest), b)


def _floordivsi(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    a, b = operands
    return graph.node("Div", graph.node("Sub", a, graph.node("Mod", a, b)), b)


def _without_sign(kind: str, **attributes: str) -> Make:
    """In unsigned integers, of the width that there is."""

    def make(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
        dtype = _kind(op)
        if dtype.kind == "b":
            raise refused(op, "of truth values has no operator in ONNX here")
        unsigned = f"uint{8 * dtype.itemsize}"
        bits = [graph.cast(each, unsigned) for each in operands]
        return graph.cast(graph.node(kind, *bits, **attributes), dtype)

    return make


def _extreme_unsigned(greater: bool) -> Make:
    def make(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
        a, b = operands
        x, y = (_unsigned(graph, each, _kind(op)) for each in operands)
        first = graph.node("Greater" if greater else "Less", x, y)
        if _kind(op).kind == "b":
            return graph.node("Or" if greater else "And", a, b)
        return graph.node("Where", first, a, b)

    return make


def _bits(of_bools: str, of_integers: str) -> Make:
    def make(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
        return graph.node(of_bools if _kind(op).kind == "b" else of_integers, *operands)

    return make


# Casts --------------------------------------------------------------------------------------------


def _cast(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    return graph.cast(operands[0], dtype_of(op, op.results[0].type))


def _signed_cast(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    made = _cast(graph, op, operands)
    return graph.node("Neg", made) if _kind(op).kind == "b" else made


def _unsigned_cast(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    dtype, name = _kind(op), operands[0]
    if dtype.kind == "i":
        name = graph.cast(name, f"uint{8 * dtype.itemsize}")
    return graph.cast(name, dtype_of(op, op.results[0].type))


def _truncated(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    dtype = dtype_of(op, op.results[0].type)
    if dtype.kind != "b":
        return graph.cast(operands[0], dtype)
    two = graph.constant(2, _kind(op))
    return graph.cast(graph.node("Mod", operands[0], two), dtype)


def _to_unsigned(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    dtype = dtype_of(op, op.results[0].type)
    if dtype.kind == "i":
        return graph.cast(graph.cast(operands[0], f"uint{8 * dtype.itemsize}"), dtype)
    return graph.cast(operands[0], dtype)


# Functions ----------------------------------------------------------------------------------------


def _one(graph: Graph, op: ir.Operation, value: float) -> str:
    return graph.constant(value, dtype_of(op, op.results[0].type))


def _rsqrt(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    return graph.node("Div", _one(graph, op, 1.0), graph.node("Sqrt", operands[0]))


def _fma(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    return graph.node("Add", graph.node("Mul", operands[0], operands[1]), operands[2])


def _expm1(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    """2 sinh(x/2) exp(x/2), which loses nothing near 0."""
    half = graph.node("Mul", operands[0], _one(graph, op, 0.5))
    twice = graph.node("Mul", _one(graph, op, 2.0), graph.node("Sinh", half))
    return graph.node("Mul", twice, graph.node("Exp", half))


def _log1p(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    """Kahan: log(u) x / (u - 1) with u = 1 + x, which is x where u is 1."""
    (x,), one = operands, _one(graph, op, 1.0)
    u = graph.node("Add", one, x)
    is_one = graph.node("Equal", u, one)
    below = graph.node("Where", is_one, one, graph.node("Sub", u, one))
    there = graph.node("Div", graph.node("Mul", graph.node("Log", u), x), below)
    return graph.node("Where", is_one, x, there)


def _exp2(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    return graph.node("Pow", _one(graph, op, 2.0), operands[0])


def _log_of(base: float) -> Make:
    def make(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
        return graph.node("Div", graph.node("Log", operands[0]), _one(graph, op, np.log(base)))

    return make


def _trunc(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    zero = graph.node("Less", operands[0], _one(graph, op, 0.0))
    down, up = (graph.node(kind, operands[0]) for kind in ("Floor", "Ceil"))
    return graph.node("Where", zero, up, down)


def _powi(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    dtype = dtype_of(op, op.results[0].type)
    return graph.node("Pow", operands[0], graph.cast(operands[1], dtype))


def _remf(graph: Graph, op: ir.Operation, operands: Sequence[str]) -> str:
    return graph.node("Mod", *operands, fmod=1)


_RULES: dict[str, Make] = {
    "arith.cmpf": _cmpf, "arith.cmpi": _cmpi, "arith.select": _select,
    "arith.maxnumf": _number("Max"), "arith.minnumf": _number("Min"),
    "arith.divsi": _divsi, "arith.floordivsi": _floordivsi, "arith.remsi": _remf,
    "arith.divui": _without_sign("Div"), "arith.remui": _without_sign("Mod"),
    "arith.maxui": _extreme_unsigned(True), "arith.minui": _extreme_unsigned(False),
    "arith.shli": _without_sign("BitShift", direction="LEFT"),
    "arith.shrui": _without_sign("BitShift", direction="RIGHT"),
    "arith.andi": _bits("And", "BitwiseAnd"), "arith.ori": _bits("Or", "BitwiseOr"),
    "arith.xori": _bits("Xor", "BitwiseXor"), "arith.remf": _remf,
    "arith.extf": _cast, "arith.truncf": _cast, "arith.fptosi": _cast,
    "arith.fptoui": _to_unsigned, "arith.sitofp": _signed_cast, "arith.uitofp": _unsigned_cast,
    "arith.extsi": _signed_cast, "arith.extui": _unsigned_cast, "arith.trunci": _truncated,
    "arith.index_cast": _signed_cast, "arith.index_castui": _unsigned_cast,
    "math.rsqrt": _rsqrt, "math.fma": _fma, "math.expm1": _expm1, "math.log1p": _log1p,
    "math.exp2": _exp2, "math.log2": _log_of(2.0), "math.log10": _log_of(10.0),
    "math.trunc": _trunc, "math.fpowi": _powi, "math.ipowi": _powi,
}  # fmt: skip

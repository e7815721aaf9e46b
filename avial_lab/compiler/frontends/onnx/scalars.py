"""The body of a loop on tensors: scalar operations by the type of what they work on.

ONNX's arithmetic -> arith and math, as text. Elementary functions of f16 and bf16 are computed in
f32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from avial_lab.compiler.frontends.onnx.values import (
    BOOL,
    F32,
    Dtype,
    NotCovered,
    Number,
    Operand,
    element,
    is_float,
    is_small_float,
    number_text,
)

INDEX = "index"


@dataclass(frozen=True)
class Scalar:
    """`dtype` None: of type index."""

    name: str
    dtype: Dtype | None

    @property
    def type(self) -> str:
        return INDEX if self.dtype is None else element(self.dtype)


_COMPARED = {
    "eq": ("oeq", "eq", "eq"), "ne": ("une", "ne", "ne"), "lt": ("olt", "slt", "ult"),
    "le": ("ole", "sle", "ule"), "gt": ("ogt", "sgt", "ugt"), "ge": ("oge", "sge", "uge"),
}  # fmt: skip


@dataclass
class Body:
    """`loops`: which of the loops around it those are that what is written calls 0, 1, …."""

    names: Iterator[int] = field(default_factory=count)
    lines: list[str] = field(default_factory=list)
    loops: Sequence[int] | None = None

    def within(self, loops: Sequence[int]) -> Body:
        return Body(self.names, self.lines, loops)

    def make(self, text: str, dtype: Dtype | None) -> Scalar:
        name = f"%s{next(self.names)}"
        self.lines.append(f"{name} = {text}")
        return Scalar(name, dtype)

    def number(self, value: Number, dtype: Dtype) -> Scalar:
        kind = element(dtype)
        text = number_text(value, dtype)
        return self.make(f"arith.constant {text}" + ("" if kind == "i1" else f" : {kind}"), dtype)

    def like(self, value: Number, other: Scalar) -> Scalar:
        assert other.dtype is not None
        return self.number(value, other.dtype)

    def index(self, loop: int) -> Scalar:
        around = loop if self.loops is None else self.loops[loop]
        return self.make(f"linalg.index {around} : index", None)

    def index_number(self, value: int) -> Scalar:
        return self.make(f"arith.constant {value} : index", None)

    def as_index(self, a: Scalar) -> Scalar:
        unsigned = a.dtype is not None and a.dtype.kind == "u"
        return self.make(f"arith.index_cast{'ui' if unsigned else ''} {a.name} : {a.type} to index",
                         None)  # fmt: skip

    def of_index(self, a: Scalar, dtype: Dtype) -> Scalar:
        """An index as a number."""
        whole = np.dtype("int64")
        found = self.make(f"arith.index_cast {a.name} : index to i64", whole)
        return self.cast(found, dtype)

    def extract(self, source: Operand, at: Sequence[Scalar]) -> Scalar:
        where = ", ".join(each.name for each in at)
        return self.make(f"tensor.extract {source.name}[{where}] : {source.type}", source.dtype)

    # Arithmetic -----------------------------------------------------------------------------------

    def two(self, floating: str, whole: str, a: Scalar, b: Scalar) -> Scalar:
        floats = a.dtype is not None and is_float(a.dtype)
        op = floating if floats else whole
        if not op:
            raise NotCovered(f"the operation is not covered for elements of type {a.type}")
        return self.make(f"{op} {a.name}, {b.name} : {a.type}", a.dtype)

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("arith.addf", "arith.addi", a, b)

    def sub(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("arith.subf", "arith.subi", a, b)

    def mul(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("arith.mulf", "arith.muli", a, b)

    def div(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("arith.divf", "arith.divui" if _unsigned(a) else "arith.divsi", a, b)

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("arith.maximumf", "arith.maxui" if _unsigned(a) else "arith.maxsi", a, b)

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("arith.minimumf", "arith.minui" if _unsigned(a) else "arith.minsi", a, b)

    def both(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("", "arith.andi", a, b)

    def either(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("", "arith.ori", a, b)

    def differ(self, a: Scalar, b: Scalar) -> Scalar:
        return self.two("", "arith.xori", a, b)

    def inverse(self, a: Scalar) -> Scalar:
        """Not, of a bool."""
        return self.differ(a, self.number(True, BOOL))

    def negate(self, a: Scalar) -> Scalar:
        if a.dtype is not None and is_float(a.dtype):
            return self.make(f"arith.negf {a.name} : {a.type}", a.dtype)
        return self.sub(self.like(0, a), a)

    def absolute(self, a: Scalar) -> Scalar:
        if _unsigned(a):
            return a
        floats = a.dtype is not None and is_float(a.dtype)
        return self.make(f"math.{'absf' if floats else 'absi'} {a.name} : {a.type}", a.dtype)

    def compare(self, how: str, a: Scalar, b: Scalar) -> Scalar:
        """eq, ne, lt, le, gt or ge."""
        floating, signed, unsigned = _COMPARED[how]
        if a.dtype is not None and is_float(a.dtype):
            return self.make(f"arith.cmpf {floating}, {a.name}, {b.name} : {a.type}", BOOL)
        predicate = unsigned if _unsigned(a) else signed
        return self.make(f"arith.cmpi {predicate}, {a.name}, {b.name} : {a.type}", BOOL)

    def select(self, on: Scalar, a: Scalar, b: Scalar) -> Scalar:
        return self.make(f"arith.select {on.name}, {a.name}, {b.name} : {a.type}", a.dtype)

    def math(self, op: str, *operands: Scalar) -> Scalar:
        """exp, log, powf …, of floating-point numbers."""
        dtype = operands[0].dtype
        if dtype is None or not is_float(dtype):
            raise NotCovered(f"math.{op} of elements of type {operands[0].type}")
        values = [self.cast(a, F32) if is_small_float(dtype) else a for a in operands]
        text = f"math.{op} {', '.join(a.name for a in values)} : {values[0].type}"
        return self.cast(self.make(text, values[0].dtype), dtype)

    def cast(self, a: Scalar, to: Dtype) -> Scalar:
        source = a.dtype
        assert source is not None
        if source == to or (element(source) == element(to) and not is_float(source)):
            return Scalar(a.name, to)
        if to.kind == "b":
            return self.compare("ne", a, self.number(0, source))
        return (
            self.make(f"arith.{_cast(source, to)} {a.name} : {a.type} to {element(to)}", to)
            if (_cast(source, to))
            else self.cast(self.cast(a, F32), to)
        )


def _cast(source: Dtype, to: Dtype) -> str:
    """arith's name of it; "" where it needs two steps."""
    unsigned = source.kind in "ub"
    if is_float(source) and is_float(to):
        if source.itemsize == to.itemsize:
            return ""
        return "extf" if source.itemsize < to.itemsize else "truncf"
    if is_float(source):
        return "fptoui" if to.kind == "u" else "fptosi"
    if is_float(to):
        return "uitofp" if unsigned else "sitofp"
    if source.kind == "b" or source.itemsize < to.itemsize:
        return "extui" if unsigned else "extsi"
    return "trunci"


def _unsigned(a: Scalar) -> bool:
    return a.dtype is not None and a.dtype.kind in "ub"

"""What an ONNX graph's names stand for while it is read: tensors of the function that is written,
and constants.

Closed set: an `Operand` has a `name` in the text, or is `known`, or both (a weight).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from avial_lab.core.element_types import element_of_dtype
from avial_lab.core.errors import ParseError

Shape = tuple[int, ...]
Dtype = np.dtype[Any]

Proto: TypeAlias = Any
"""A message of protobuf: what the package onnx makes of a file."""

Number: TypeAlias = float | int | bool | np.generic | np.ndarray
"""One number."""

BOOL, I64, F32 = np.dtype("bool"), np.dtype("int64"), np.dtype("float32")


class NotCovered(ParseError):
    """A node that cannot be imported; the importer collects them all before it says so."""


_DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "half", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip


def dtype_of(number: int) -> Dtype:
    """NumPy's dtype for an element type by ONNX's number (`TensorProto.DataType`)."""
    if number not in _DTYPES:
        raise NotCovered(f"elements of ONNX's type {number} are not covered")
    if _DTYPES[number] == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(_DTYPES[number])


@dataclass(frozen=True, eq=False)
class Deferred:
    """An elementwise loop that is not written yet: what reads it alone computes it in its own.

    ins: what it reads, and along which of its loops the dimensions of each lie. `weight`: of how
    many such loops it is made.
    """

    ins: tuple[tuple[Operand, tuple[int, ...]], ...]
    body: Callable[..., Any]
    weight: int


@dataclass(frozen=True, eq=False)
class Operand:
    """One tensor. `name`: its SSA name with the %, "" for a constant that nothing has used yet, and
    for what is `deferred`. `known`: its value, where it is one; of a weight, what it has at first.
    """

    shape: Shape
    dtype: Dtype
    name: str = ""
    known: np.ndarray | None = None
    called: str = ""
    """What ONNX calls it."""
    deferred: Deferred | None = None

    @property
    def is_constant(self) -> bool:
        return not self.name and self.deferred is None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def type(self) -> str:
        return tensor_type(self.shape, self.dtype)

    @property
    def element(self) -> str:
        return element(self.dtype)


def constant(value: object, dtype: Dtype | None = None) -> Operand:
    array = np.asarray(value, dtype)
    return Operand(array.shape, array.dtype, known=array)


def element(dtype: Dtype) -> str:
    found = element_of_dtype(dtype)
    if found is None or dtype.kind == "c":
        raise NotCovered(f"elements of type {dtype} are not covered")
    return found.name


def tensor_type(shape: Shape, dtype: Dtype) -> str:
    return f"tensor<{'x'.join([*map(str, shape), element(dtype)])}>"


def is_float(dtype: Dtype) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def is_small_float(dtype: Dtype) -> bool:
    """f16 and bf16, in which neither sums nor elementary functions are computed."""
    return is_float(dtype) and dtype.itemsize == 2


def wide(dtype: Dtype) -> Dtype:
    return F32 if is_small_float(dtype) else dtype


def number_text(value: Number, dtype: Dtype) -> str:
    """A number as MLIR reads it back, bit for bit.

    >>> number_text(0.1, np.dtype("float32")), number_text(float("inf"), np.dtype("half"))
    ('0.10000000149011612', '0x7C00')
    """
    if dtype.kind == "b":
        return "true" if value else "false"
    if not is_float(dtype):
        number = int(value)
        return str(number - (1 << 8 * dtype.itemsize) if _is_high(number, dtype) else number)
    exact = np.asarray(value, dtype)
    number = float(exact)
    if not math.isfinite(number):
        bits = int(exact.view(f"u{dtype.itemsize}"))
        return f"0x{bits:0{2 * dtype.itemsize}X}"
    text = repr(number)
    if "e" in text:
        digits, _, exponent = text.partition("e")
        return f"{digits if '.' in digits else digits + '.0'}e{exponent}"
    return text


def _is_high(number: int, dtype: Dtype) -> bool:
    return dtype.kind == "u" and number >> (8 * dtype.itemsize - 1) == 1


def broadcast(*shapes: Shape) -> Shape:
    try:
        return tuple(np.broadcast_shapes(*shapes))
    except ValueError:
        told = " and ".join("x".join(map(str, s)) or "a number" for s in shapes)
        raise NotCovered(f"shapes {told} do not broadcast") from None


def axis_of(axis: int, rank: int) -> int:
    """A dimension, counted from the end where it is negative."""
    if not -rank <= axis < max(rank, 1):
        raise NotCovered(f"there is no axis {axis} in a tensor of rank {rank}")
    return axis + rank if axis < 0 else axis

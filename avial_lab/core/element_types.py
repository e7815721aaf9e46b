"""Element types: one row for each type that arrays of a program can have, and all that is known of
it by name. Whoever asks what an element type is, asks here.

MLIR's name, or a NumPy dtype -> `ElementType`. Operation and element type -> the number by which
the ownership runtime (`native/ownership`) combines partial results.

A type that is only stored, copied and sent needs one row; one that is also computed with, combined
or handed to C has more of its columns filled in.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from avial_lab.core.runtime_constants import ELEMENT_BITS, ElementCode, Reduction
from avial_lab.core.words import brief, format_bytes


class ElementKind(Enum):
    """Which operations take it: `arith.addi`, `arith.addf` or `complex.add`."""

    BOOL = "bool"
    INTEGER = "integer"
    INDEX = "index"
    FLOAT = "float"
    COMPLEX = "complex"


@dataclass(frozen=True)
class ElementType:
    """One row.

    name: MLIR's. Its integers carry no sign: the operation decides.
    nbytes: of one element in memory.
    dtypes: names of the NumPy dtypes (or ml_dtypes') whose arrays hold it. New arrays have the
    first; for `index` there is only that, since only the text distinguishes it from `i64`.
    computed: whether LLVM has arithmetic on it; otherwise it is stored, copied and sent.
    runtime_code: its number in the ownership runtime; None where that only moves it.
    combined: whether the runtime can combine partial results of it (needs a `runtime_code`).
    c_type, mpi_type: its names in C and MPI, for the race's peers; empty where they have none.
    ctype: how a number of it is handed to a compiled program when it runs; None for a type whose
    numbers are always constants in the code.
    """

    name: str
    kind: ElementKind
    nbytes: int
    dtypes: tuple[str, ...]
    computed: bool = True
    runtime_code: ElementCode | None = None
    combined: bool = False
    c_type: str = ""
    mpi_type: str = ""
    ctype: Any = None

    @property
    def is_inexact(self) -> bool:
        """Whether arithmetic on it rounds."""
        return self.kind in (ElementKind.FLOAT, ElementKind.COMPLEX)

    @property
    def dtype(self) -> np.dtype[Any]:
        return _dtype(self.dtypes[0])

    def __repr__(self) -> str:
        held = f"{format_bytes(self.nbytes)} each, in arrays of {' or '.join(self.dtypes)}"
        return brief(self, f"{self.name}: {self.kind.value}, {held}")


_B, _I, _X, _F, _C = ElementKind
_ROWS = (
    ElementType("index", _X, 8, ("int64",), runtime_code=ElementCode.I64, combined=True,
                c_type="int64_t", mpi_type="MPI_INT64_T", ctype=ctypes.c_int64),
    ElementType("i1", _B, 1, ("bool",), runtime_code=ElementCode.I1, combined=True),
    ElementType("i8", _I, 1, ("int8", "uint8"), runtime_code=ElementCode.I8, combined=True,
                c_type="int8_t", mpi_type="MPI_INT8_T"),
    ElementType("i16", _I, 2, ("int16", "uint16"), runtime_code=ElementCode.I16, combined=True,
                c_type="int16_t", mpi_type="MPI_INT16_T"),
    ElementType("i32", _I, 4, ("int32", "uint32"), runtime_code=ElementCode.I32, combined=True,
                c_type="int32_t", mpi_type="MPI_INT32_T", ctype=ctypes.c_int32),
    ElementType("i64", _I, 8, ("int64", "uint64"), runtime_code=ElementCode.I64, combined=True,
                c_type="int64_t", mpi_type="MPI_INT64_T", ctype=ctypes.c_int64),
    ElementType("f16", _F, 2, ("float16",), runtime_code=ElementCode.F16),
    ElementType("bf16", _F, 2, ("bfloat16",), runtime_code=ElementCode.BF16),
    ElementType("f32", _F, 4, ("float32",), runtime_code=ElementCode.F32, combined=True,
                c_type="float", mpi_type="MPI_FLOAT", ctype=ctypes.c_float),
    ElementType("f64", _F, 8, ("float64",), runtime_code=ElementCode.F64, combined=True,
                c_type="double", mpi_type="MPI_DOUBLE", ctype=ctypes.c_double),
    ElementType("complex<f32>", _C, 8, ("complex64",)),
    ElementType("complex<f64>", _C, 16, ("complex128",)),
)  # fmt: skip

ELEMENT_TYPES = {row.name: row for row in _ROWS}
"""By MLIR's name."""

ELEMENT_OF_DTYPE = {
    row.dtypes[k]: row.name
    for kind in (_B, _I, _F, _C)
    for k in range(max(len(row.dtypes) for row in _ROWS))
    for row in _ROWS
    if row.kind is kind and k < len(row.dtypes)
}
"""MLIR's element type for a NumPy dtype, by its name: of integers the signed ones first."""

ITEMSIZE = {row.name: row.nbytes for row in _ROWS}
"""Bytes of one element in memory, by MLIR's name of the type."""

HANDED = tuple(row.name for row in _ROWS if row.ctype is not None)
"""Types of numbers that a program can be handed when it runs; others are constants in its code."""

FLOATS = tuple(row.name for row in _ROWS if row.kind is ElementKind.FLOAT)


@cache
def _dtype(name: str) -> np.dtype[Any]:
    if not is_numpys(name):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def is_numpys(dtype: str) -> bool:
    """Whether NumPy itself has the dtype of that name; the others come from ml_dtypes.

    >>> is_numpys("float16"), is_numpys("bfloat16")
    (True, False)
    """
    return hasattr(np, dtype)


def dtype_of_element(element: str) -> np.dtype[Any]:
    """The NumPy dtype that holds elements of that MLIR type; integers come back signed.

    >>> dtype_of_element("complex<f32>")
    dtype('complex64')
    """
    return ELEMENT_TYPES[element].dtype


def element_of_dtype(dtype: np.dtype[Any]) -> ElementType | None:
    """The type of the elements of arrays of that dtype; None where MLIR has none.

    >>> element_of_dtype(np.dtype("uint8")).name
    'i8'
    """
    name = ELEMENT_OF_DTYPE.get(dtype.name)
    return None if name is None else ELEMENT_TYPES[name]


def element_in_untyped(nbytes: int) -> ElementType | None:
    """The type whose elements NumPy saves as so many untyped bytes, as it does with each dtype that
    is not its own; None where there is none, or more than one.

    >>> element_in_untyped(2).name, element_in_untyped(4)
    ('bf16', None)
    """
    found = [row for row in _ROWS if row.nbytes == nbytes and not is_numpys(row.dtypes[0])]
    return found[0] if len(found) == 1 else None


# -- partial results -------------------------------------------------------------------------------


REDUCTION_OF = {
    "addf": Reduction.SUM, "addi": Reduction.SUM, "subf": Reduction.SUM,
    "subi": Reduction.SUM, "fma": Reduction.SUM,
    "mulf": Reduction.PRODUCT, "muli": Reduction.PRODUCT,
    "minsi": Reduction.MINIMUM, "minimumf": Reduction.MINIMUM,
    "maxsi": Reduction.MAXIMUM, "maximumf": Reduction.MAXIMUM,
    "andi": Reduction.AND, "ori": Reduction.OR, "xori": Reduction.XOR,
    "minui": Reduction.UNSIGNED_MINIMUM, "maxui": Reduction.UNSIGNED_MAXIMUM,
    "minnumf": Reduction.MINIMUM_NUMBER, "maxnumf": Reduction.MAXIMUM_NUMBER,
    "argmin": Reduction.ARGMIN, "argmax": Reduction.ARGMAX,
    "argminui": Reduction.UNSIGNED_ARGMIN, "argmaxui": Reduction.UNSIGNED_ARGMAX,
}  # fmt: skip
"""By the name of the operation that updates, without its dialect."""

COMPANION_CODE = Reduction.PAYLOAD << ELEMENT_BITS
"""Of elements of any type: they are moved as they are."""


def operation_code(operation: str, element: str) -> int:
    """The runtime's number for `arith.addf` on elements of that type: `Reduction` << ELEMENT_BITS
    | `ElementCode`.

    KeyError where it has none (see `combines`).

    >>> operation_code("arith.addf", "f64"), operation_code("arith.minsi", "index")
    (8, 36)
    """
    code = ELEMENT_TYPES[element].runtime_code
    if code is None:
        raise KeyError(element)
    return REDUCTION_OF[operation.partition(".")[2]] << ELEMENT_BITS | code


def combines(operation: str, element: str) -> bool:
    """Whether the runtime can combine elements of that type by that operation (`can_combine`).

    >>> combines("arith.addf", "f32"), combines("arith.addf", "f16"), combines("avial.argmin", "i1")
    (True, False, False)
    """
    how, row = REDUCTION_OF.get(operation.partition(".")[2]), ELEMENT_TYPES.get(element)
    if how is None or row is None or not row.combined:
        return False
    return row.kind is not ElementKind.BOOL or how < Reduction.ARGMIN

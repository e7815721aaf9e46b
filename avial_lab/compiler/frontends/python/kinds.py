"""Types of numbers as Python and NumPy have them.

Two kinds and an operator -> the kind of the result. A kind is a NumPy dtype, and whether it is
weak: Python's own bool, int, float or complex, which take the type of a NumPy number that they
meet (NumPy 2's promotion, NEP 50).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from avial_lab.core.element_types import ELEMENT_OF_DTYPE

_WEAK = {"b": False, "i": 0, "f": 0.0, "c": 0j}
_ORDER = "biufc"


@dataclass(frozen=True)
class Kind:
    """A dtype, and whether it is Python's own."""

    dtype: np.dtype
    weak: bool = False

    @property
    def mlir(self) -> str:
        return ELEMENT_OF_DTYPE[self.dtype.name]

    @property
    def is_bool(self) -> bool:
        return self.dtype.kind == "b"

    @property
    def is_int(self) -> bool:
        return self.dtype.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self.dtype.kind in "ub"

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    def __str__(self) -> str:
        names = {"b": "bool", "i": "int", "f": "float", "c": "complex"}
        return names[self.dtype.kind] if self.weak else str(self.dtype)


BOOL = Kind(np.dtype(np.bool_), weak=True)
INT = Kind(np.dtype(np.int64), weak=True)
FLOAT = Kind(np.dtype(np.float64), weak=True)
COMPLEX = Kind(np.dtype(np.complex128), weak=True)
NP_BOOL = Kind(np.dtype(np.bool_))
INT64 = Kind(np.dtype(np.int64))
FLOAT64 = Kind(np.dtype(np.float64))


def kind_of_number(number: object) -> Kind | None:
    """Of a Python or NumPy number; None for anything else.

    >>> str(kind_of_number(2)), str(kind_of_number(np.float32(2))), kind_of_number("2")
    ('int', 'float32', None)
    """
    if isinstance(number, np.generic):
        known = number.dtype.name in ELEMENT_OF_DTYPE
        return Kind(number.dtype) if known else None
    for python, kind in ((bool, BOOL), (int, INT), (float, FLOAT), (complex, COMPLEX)):
        if type(number) is python:
            return kind
    return None


def promoted(x: Kind, y: Kind) -> Kind:
    """The kind in which both are computed.

    >>> str(promoted(Kind(np.dtype("float32")), FLOAT)), str(promoted(INT, FLOAT))
    ('float32', 'float')
    >>> str(promoted(Kind(np.dtype("int8")), FLOAT)), str(promoted(NP_BOOL, INT))
    ('float64', 'int64')
    """
    if x.weak and y.weak:
        return max(x, y, key=lambda kind: _ORDER.index(kind.dtype.kind))
    dtypes = [_WEAK[kind.dtype.kind] if kind.weak else kind.dtype for kind in (x, y)]
    return Kind(np.result_type(*dtypes))


def joined(x: Kind, y: Kind) -> Kind:
    """The kind of a variable that gets both, one after the other: a Python number that is added to
    NumPy's becomes NumPy's.
    """
    return x if x == y else promoted(x, y)


def divided(x: Kind, y: Kind) -> Kind:
    """Of `x / y`."""
    kind = promoted(x, y)
    if kind.is_float or kind.is_complex:
        return kind
    return Kind(np.dtype(np.float64), weak=kind.weak)

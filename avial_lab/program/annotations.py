"""What a Python function's annotations say of its arguments, so that it is compiled before a call.

    def heat(u: "f64[n, m]", v: "f64[n, m]", steps: int): …     u: "f32[:, 3]"   s: "f64"

A size is a number, a name (those of one name are equal), or `:` for any. Function -> Declared.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from avial_lab.compiler.frontends.python.kinds import kind_of_number
from avial_lab.compiler.frontends.python.signature import MOST_FIXED
from avial_lab.core.element_types import ELEMENT_OF_DTYPE, ELEMENT_TYPES
from avial_lab.program.function_calls import Shapes

_ARRAY = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)
_SIZE = re.compile(r":|\d+|[A-Za-z_]\w*")
_PYTHONS: Mapping[str, type] = {"int": int, "float": float, "complex": complex, "bool": bool}
_DTYPES: Mapping[str, str] = {
    **{name: name for name in ELEMENT_OF_DTYPE if name != "bfloat16"},
    **{row.name: row.dtypes[0] for row in ELEMENT_TYPES.values() if row.name[0] in "if"},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "c64": "complex64",
    "c128": "complex128",
}
"""NumPy's names of element types, MLIR's, and short ones."""
_SAMPLE = 24
"""What an open size is while nobody has called: any above `MOST_FIXED`."""


@dataclass(frozen=True)
class Declared:
    """Of each parameter: an array's dtype and sizes, or a number of the kind that it has."""

    arrays: Mapping[str, tuple[np.dtype, tuple[int | str, ...]]]
    numbers: Mapping[str, object]

    def sample(self) -> dict[str, object]:
        """Arguments of that kind."""
        words = dict.fromkeys(n for _, shape in self.arrays.values() for n in shape)
        sizes = {n: n if isinstance(n, int) else _SAMPLE + k for k, n in enumerate(words)}
        arrays = {
            name: np.zeros([sizes[n] for n in shape], dtype)
            for name, (dtype, shape) in self.arrays.items()
        }
        return arrays | dict(self.numbers)

    def shapes_of(self, given: Mapping[str, object]) -> Shapes | None:
        """The declared ones, where the arguments are what was declared."""
        found: dict[str, int] = {}
        for name, (dtype, shape) in self.arrays.items():
            if not isinstance(given[name], np.ndarray):
                return None
            array = cast("np.ndarray[Any, Any]", given[name])
            if array.dtype != dtype or array.ndim != len(shape):
                return None
            for declared, size in zip(shape, array.shape, strict=True):
                if isinstance(declared, int):
                    if size != declared:
                        return None
                elif size <= MOST_FIXED or found.setdefault(declared, size) != size:
                    return None
        kinds = [(kind_of_number(given[n]), kind_of_number(v)) for n, v in self.numbers.items()]
        if any(one != other for one, other in kinds):
            return None
        return {name: shape for name, (_, shape) in self.arrays.items()}


def declared(function: Callable[..., object]) -> Declared | None:
    """None where not every parameter is an array or a number as above, or none is an array.

    >>> def f(u: "f64[n, 3]", v: "f32[:]", k: int): ...
    >>> declared(f).arrays
    {'u': (dtype('float64'), ('n', 3)), 'v': (dtype('float32'), (':2',))}
    """
    arrays: dict[str, tuple[np.dtype, tuple[int | str, ...]]] = {}
    numbers: dict[str, object] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        words = _words(parameter.annotation)
        array = None if words is None else _ARRAY.fullmatch(words)
        if words is None:
            return None
        if array is None:
            number = _number(words)
            if number is None:
                return None
            numbers[name] = number
            continue
        sizes = [size.strip() for size in array[2].split(",")]
        dtype = _DTYPES.get(array[1])
        if dtype is None or not all(map(_SIZE.fullmatch, sizes)):
            return None
        shape: list[int | str] = []
        for size in sizes:
            any_size = f":{sum(len(s) for _, s in arrays.values()) + len(shape)}"
            shape.append(int(size) if size.isdigit() else any_size if size == ":" else size)
        arrays[name] = np.dtype(dtype), tuple(shape)
    return Declared(arrays, numbers) if arrays else None


def _words(annotation: object) -> str | None:
    """An annotation as text; a text within one (annotations may be texts themselves) unquoted."""
    if isinstance(annotation, type):
        return annotation.__name__
    if not isinstance(annotation, str):
        return None
    if annotation[:1] in ("'", '"'):
        try:
            return str(ast.literal_eval(annotation))
        except (SyntaxError, ValueError):
            return None
    return annotation


def _number(words: str) -> object:
    if words in _PYTHONS:
        return _PYTHONS[words](1)
    return np.dtype(_DTYPES[words]).type(1) if words in _DTYPES else None

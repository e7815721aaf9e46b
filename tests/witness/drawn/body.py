"""A body, and the arrays that it works on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

ELEMENT = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float32": "f32",
           "float64": "f64", "bool": "i1"}  # fmt: skip


@dataclass
class Body:
    """Statements over `arrays`; those of `index` have elements of that type, those of `tensors` are
    tensors. `results`: the values that a function returns behind it, with their types.
    """

    lines: list[str]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    index: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    results: tuple[tuple[str, str], ...] = ()

    def type_of(self, name: str) -> str:
        kind = "tensor" if name in self.tensors else "memref"
        return type_of(self.arrays[name], kind, "index" if name in self.index else None)


def type_of(array: np.ndarray, kind: str = "memref", element: str | None = None) -> str:
    extents = "".join(f"{n}x" for n in array.shape)
    return f"{kind}<{extents}{element or ELEMENT[array.dtype.name]}>"

"""A body, and the arrays that it works on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

ELEMENT = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float32": "f32",
           "float64": "f64", "bool": "i1"}  # fmt: skip


@dataclass
class Body:
    """Statements over `arrays`; those of `index` have elements of that type, those of `tensors` are
    tensors. `results`: the values that a function returns behind it, with their types. `opened`:
    which extents the type of an array leaves out; none of the others.
    """

    lines: list[str]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    index: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    opened: dict[str, tuple[bool, ...]] = field(default_factory=dict)

    def element(self, name: str) -> str:
        return "index" if name in self.index else ELEMENT[self.arrays[name].dtype.name]

    def type_of(self, name: str) -> str:
        shape = self.arrays[name].shape
        opened = self.opened.get(name, (False,) * len(shape))
        extents = "".join(f"{'?' if o else n}x" for n, o in zip(shape, opened, strict=True))
        kind = "tensor" if name in self.tensors else "memref"
        return f"{kind}<{extents}{self.element(name)}>"

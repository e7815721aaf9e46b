"""The ONNX graph that is written: nodes, constants, and the types of what they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from mlir import ir
from numpy.typing import ArrayLike
from onnx import helper, numpy_helper

from avial_lab.compiler.ir.locations import span_of
from avial_lab.core.element_types import ELEMENT_TYPES
from avial_lab.core.errors import PassError

OPSET = 18
"""The first whose reductions all take their axes as an input, and that has bitwise operators."""

IR_VERSION = 8

I64 = np.dtype("int64")


def refused(op: ir.Operation, why: str = "") -> PassError:
    return PassError(
        f"{op.name} {why or 'has no operator in ONNX here'}",
        span=span_of(op.location),
        hint="exported is what linalg, tensor, arith and math say of tensors of known sizes",
    )


def dtype_of(op: ir.Operation, type_: ir.Type) -> np.dtype[Any]:
    """NumPy's type of a number, or of a tensor's elements; index is int64, as in ONNX."""
    element = getattr(type_, "element_type", type_)
    if isinstance(element, ir.IndexType):
        return I64
    found = ELEMENT_TYPES.get(str(element))
    if found is None or found.dtype.kind == "c":
        raise refused(op, f"is of {element}, which ONNX has no elements of")
    return found.dtype


def onnx_type(dtype: np.dtype[Any]) -> int:
    return helper.np_dtype_to_tensor_dtype(dtype)


@dataclass
class Graph:
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    values: dict[str, np.ndarray] = field(default_factory=dict)
    """Of constants."""
    named: dict[tuple[object, ...], str] = field(default_factory=dict)
    """Constants, and what has been made already, by what makes it."""
    taken: set[str] = field(default_factory=set)

    def name(self, begin: str = "v") -> str:
        number = len(self.taken)
        while (name := f"{begin}{number}") in self.taken:
            number += 1
        self.taken.add(name)
        return name

    def node(self, kind: str, *inputs: str, **attributes: int | str | list[int]) -> str:
        """A node's only result; the same one again for the same inputs."""
        key = (kind, inputs, tuple(sorted((k, str(v)) for k, v in attributes.items())))
        if key not in self.named:
            name, given = self.name(), dict[str, Any](attributes)
            self.nodes.append(helper.make_node(kind, list(inputs), [name], **given))
            self.named[key] = name
        return self.named[key]

    def constant(self, value: ArrayLike, dtype: np.dtype[Any] | str = I64) -> str:
        array = np.ascontiguousarray(np.asarray(value, dtype)).reshape(np.shape(value))
        key = ("constant", array.dtype.name, array.shape, array.tobytes())
        if key not in self.named:
            name = self.name("c")
            self.constants.append(numpy_helper.from_array(array, name))
            self.values[name] = array
            self.named[key] = name
        return self.named[key]

    def cast(self, name: str, dtype: np.dtype[Any] | str) -> str:
        return self.node("Cast", name, to=onnx_type(np.dtype(dtype)))

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """(0 means none here, and would be copied else.)"""
        return self.node("Reshape", name, self.constant(list(shape)), allowzero=1)

    def expanded(self, name: str, shape: Sequence[int]) -> str:
        return self.node("Expand", name, self.constant(list(shape)))

    def transposed(self, name: str, order: Sequence[int]) -> str:
        if list(order) == sorted(order):
            return name
        return self.node("Transpose", name, perm=list(order))

"""A node of an ONNX graph as its rule sees it: operands, attributes, its operator's version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from avial_lab.compiler.frontends.onnx.values import NotCovered, Operand
from avial_lab.compiler.frontends.onnx.writer import Writer

Made = Operand | Sequence[Operand | None]
Rule = Callable[["Node", Writer], Made]
"""Node -> its results, None for one that it does not make."""

T = TypeVar("T")


class NeedsValue(NotCovered):
    """A node needs the value of one of its inputs while it is imported."""


@dataclass(frozen=True)
class Node:
    """`version`: the opset by which it is read. `inputs`: None for those left out."""

    kind: str
    name: str
    domain: str
    version: int
    inputs: tuple[Operand | None, ...]
    outputs: tuple[str, ...]
    """"" for those that nobody wants."""
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def has(self, k: int) -> bool:
        return k < len(self.inputs) and self.inputs[k] is not None

    def input(self, k: int) -> Operand:
        found = self.inputs[k] if k < len(self.inputs) else None
        if found is None:
            raise NotCovered(f"input {k} is missing")
        return found

    def maybe(self, k: int) -> Operand | None:
        return self.inputs[k] if k < len(self.inputs) else None

    def wants(self, k: int) -> bool:
        """Whether somebody reads output k."""
        return k < len(self.outputs) and bool(self.outputs[k])

    def attribute(self, name: str, default: T) -> T:
        """An attribute, of the same kind as the default."""
        value = self.attributes.get(name)
        if value is None:
            return default
        if default is not None and not _fits(value, default):
            raise NotCovered(f"attribute {name} is {type(value).__name__}")
        return value

    def numbers(self, name: str, k: int | None = None) -> list[int] | None:
        """Integers of the attribute, or of the input that later versions have in its place."""
        if name in self.attributes:
            value = self.attributes[name]
            if isinstance(value, int):
                return [value]
            if not isinstance(value, list | tuple) or not all(isinstance(v, int) for v in value):
                raise NotCovered(f"attribute {name} holds no integers")
            return list(value)
        if k is None or not self.has(k):
            return None
        value = self.value(k)
        if value.dtype.kind not in "iu":
            raise NotCovered(f"input {k} holds no integers")
        return [int(each) for each in value.reshape(-1)]

    def value(self, k: int) -> np.ndarray:
        """What input k holds; NeedsValue where only a run knows."""
        operand = self.input(k)
        if operand.known is None:
            told = f"'{operand.called}'" if operand.called else f"input {k}"
            raise NeedsValue(
                f"it needs the value of {told} when it is imported",
                hint=f"give it: values={{'{operand.called}': …}}, --in {operand.called}=FILE.npy"
                if operand.called
                else None,
            )
        return operand.known


def _fits(value: object, default: object) -> bool:
    if isinstance(default, float):
        return isinstance(value, float | int)
    return isinstance(value, type(default))

"""What a step asks of the machine: operations and bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """Operations on floats, and bytes of the elements that are read and written, each once;
    `element` is the floats' type, the widest. loaded_bytes: of all loads, however often of the same
    elements, but for those that a loop around does not change.
    """

    flops: int
    nbytes: int
    element: str = "f64"
    loaded_bytes: int = 0

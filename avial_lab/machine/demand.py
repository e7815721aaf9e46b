"""What a step asks of the machine: operations and bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """Operations on floats, and bytes of the elements that are read and written, each once;
    `element` is the floats' type, the widest.
    """

    flops: int
    nbytes: int
    element: str = "f64"

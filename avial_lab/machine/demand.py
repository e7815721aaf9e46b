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


@dataclass(frozen=True)
class CoreTime:
    """How long loops keep a core busy, in its cycles, where nothing waits for caches or memory; by
    several threads until the last of them is done. teams: how often threads begin together.
    """

    cycles: float = 0.0
    teams: float = 0.0

    def __add__(self, other: CoreTime) -> CoreTime:
        return CoreTime(self.cycles + other.cycles, self.teams + other.teams)

    def times(self, count: float) -> CoreTime:
        return CoreTime(self.cycles * count, self.teams * count)

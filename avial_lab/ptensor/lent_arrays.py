"""Arrays in programs that were not recorded: texts, cells and functions run on them where they lie.

Program, arrays by its names -> the arrays, changed in place; a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from avial_lab.core.errors import BindError
from avial_lab.core.regions import Box
from avial_lab.core.stand_ins import OnRanks
from avial_lab.core.words import listed
from avial_lab.ptensor.recording import Memory, refuse_lost

if TYPE_CHECKING:
    from avial_lab.program.program import Program
    from avial_lab.ptensor.arrays import Array
    from avial_lab.ptensor.connection import Connection
    from avial_lab.trace import Trace


@dataclass(frozen=True)
class LentArray:
    """As `core.stand_ins.Lent`."""

    owner: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.owner.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.owner.dtype

    @property
    def nbytes(self) -> int:
        return self.owner.nbytes

    @property
    def read_only(self) -> bool:
        return not self.owner.flags.writeable

    @property
    def connection(self) -> Connection:
        return self.owner._xp.connection

    @property
    def ranks(self) -> int:
        return self.connection.ranks

    def __repr__(self) -> str:
        extents = "x".join(map(str, self.shape))
        return f"{extents or 'one'} of {self.dtype} {self.connection.place}"

    def lies_on(self, place: object) -> bool:
        return place is self.connection.cluster

    def values(self) -> np.ndarray:
        return np.array(self.owner)

    def run(self, program: Program, arrays: Mapping[str, np.ndarray]) -> Trace:
        """An array that is a part of another, or whose elements another one has, too, is a copy
        meanwhile, as NumPy's arrays are; what the program writes of it is written back.
        """
        if program.schedule.topology.ranks != self.ranks:
            ranks = program.schedule.topology.ranks
            raise BindError(
                f"the program is for {ranks} ranks, and its arrays lie on {self.ranks}",
                hint="leave ranks out",
            )
        written = {piece.storage for piece in program.binary.manifest.results}
        memories: dict[str, Memory] = {}
        back: dict[str, Any] = {}
        for name, array in arrays.items():
            memory = self._memory_of(name, array)
            if memory is None:
                back[name] = array.given.owner if isinstance(array, OnRanks) else array
                memory = self.connection.put(np.array(back[name]))
            memories[name] = memory
        _refuse_shared(memories)
        trace = self.connection.run_on(program, memories, written)
        for name in written & back.keys():
            back[name][...] = self.connection.take(memories[name], Box.whole(arrays[name].shape))
        return trace

    def _memory_of(self, name: str, array: np.ndarray) -> Memory | None:
        """That of an array which is all of it; None for a copy."""
        if not isinstance(array, OnRanks):
            return None
        owner: Array = array.given.owner  # pyright: ignore[reportAssignmentType]
        if owner._xp.connection is not self.connection:
            raise BindError(
                f"array '{name}' lies elsewhere than others of the program",
                hint=f"pass numpy.asarray({name})",
            )
        memory = owner._memory
        refuse_lost(memory)
        alone = owner._is_whole() and not memory.aliases and memory.looks_at is None
        return memory if alone and memory.strides is None else None


def _refuse_shared(memories: Mapping[str, Memory]) -> None:
    by_memory: dict[int, list[str]] = {}
    for name, memory in memories.items():
        by_memory.setdefault(id(memory), []).append(f"'{name}'")
    for names in by_memory.values():
        if len(names) > 1:
            raise BindError(
                f"{listed(names)} are the same array on the ranks", hint="pass a copy: x.copy()"
            )

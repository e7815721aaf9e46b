"""Arrays in programs that were not recorded: texts, cells and functions run on them where they lie.

Program, arrays by its names -> the arrays, changed in place; a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
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

    def run(self, program: Program, arrays: Mapping[str, np.ndarray], **how: Any) -> Trace:
        """An array that is a part of another, or whose elements another one has, too, is a copy
        meanwhile, as NumPy's arrays are; what the program writes of it is written back. So are all
        where the only rank is this process, which a program that fails would end.
        """
        if program.schedule.topology.ranks != self.ranks:
            ranks = program.schedule.topology.ranks
            raise BindError(
                f"the program is for {ranks} ranks, and its arrays lie on {self.ranks}",
                hint="leave ranks out",
            )
        written = {piece.storage for piece in program.binary.manifest.results}
        _refuse_shared(arrays, written)
        memories: dict[str, Memory | None] = {}
        for name, array in arrays.items():
            memory = self._memory_of(name, array)
            taken = any(memory is each for each in memories.values())
            memories[name] = None if taken else memory
        if self.connection.is_this_process:
            return _run_beside(program, arrays, written, **how)
        copied = [name for name, memory in memories.items() if memory is None]
        lying = {
            name: memory or self.connection.put(_values(arrays[name]))
            for name, memory in memories.items()
        }
        trace = self.connection.run_on(program, lying, written, **how)
        for name in written.intersection(copied):
            whole = Box.whole(arrays[name].shape)
            _write_back(arrays[name], self.connection.take(lying[name], whole))
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
        looked_at = any(each.source() and each.made() for each in memory.aliases)
        return memory if owner._is_whole() and not looked_at else None


def _run_beside(
    program: Program, arrays: Mapping[str, np.ndarray], written: Set[str], **how: Any
) -> Trace:
    """In another process, on copies."""
    from avial_lab.runtime.launch.one_rank import one_rank  # not where mpiexec starts the ranks

    copies = {name: _values(array) for name, array in arrays.items()}
    trace = one_rank().run(program.binary, copies, **how)
    for name in written:
        _write_back(arrays[name], copies[name])
    return trace


def _values(array: np.ndarray) -> np.ndarray:
    return array.given.values() if isinstance(array, OnRanks) else array.copy()


def _write_back(array: np.ndarray, values: np.ndarray) -> None:
    target: Any = array.given.owner if isinstance(array, OnRanks) else array
    target[...] = values


def _refuse_shared(arrays: Mapping[str, np.ndarray], written: Set[str]) -> None:
    """Arrays with elements in common, or parts of one array, of which the program writes one."""
    names: dict[int, str] = {}
    for name, array in arrays.items():
        if not isinstance(array, OnRanks):
            continue
        owner: Array = array.given.owner  # pyright: ignore[reportAssignmentType]
        linked = _linked(owner._memory)
        others = {names[each] for each in linked if each in names}
        if others and written & {name, *others}:
            both = listed([f"'{each}'" for each in (*sorted(others), name)])
            raise BindError(
                f"{both} are the same array on the ranks, or parts of it, and one is written",
                hint="pass a copy: x.copy()",
            )
        names |= dict.fromkeys(linked, name)


def _linked(memory: Memory) -> dict[int, Memory]:
    """By `id`, it and all that look at the same elements."""
    found: dict[int, Memory] = {}
    todo: list[Memory | None] = [memory]
    while todo:
        each = todo.pop()
        if each is not None and id(each) not in found:
            found[id(each)] = each
            todo += [end() for alias in each.aliases for end in (alias.source, alias.made)]
    return found

"""Elementary functions of small arrays, as compiled code computes them: to the last bit.

A program that computes one function of a block of numbers, compiled once for all arrays -> the
function of an array of any shape. NumPy's own have other last bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.core.regions import Box
from avial_lab.planning.schedule import Piece
from avial_lab.runtime.native.loader import LoadedProgram, digest
from avial_lab.runtime.rank.engine import load, run_here
from avial_lab.runtime.rank.parcels import aligned_empty
from avial_lab.runtime.rank.shards import Peers, Shard

BLOCK = 4096
"""Numbers that such a program takes."""

Name = tuple[str, str]
"""Of the function, and of the type of its numbers."""


class MissingFunctions(Exception):
    """That this process has not been taught yet."""

    def __init__(self, names: tuple[Name, ...]) -> None:
        super().__init__(names)
        self.names = names


@dataclass(frozen=True)
class Blockwise:
    """A loaded program: its argument and its result, each in memory of its own."""

    program: LoadedProgram
    binary: Binary
    memory: dict[str, np.ndarray]
    kind: np.dtype

    def __call__(self, x: np.ndarray) -> np.ndarray:
        manifest = self.binary.manifest
        source, target = (self.memory[s.name].view(self.kind) for s in manifest.storages)
        given = (Piece(0, manifest.storages[0].name, Box((0,), (BLOCK,))),)
        flat, made = np.ravel(x), np.empty(x.size, self.kind)
        for low in range(0, x.size, BLOCK):
            part = flat[low : low + BLOCK]
            source[: len(part)] = part
            run_here(self.program, manifest, self.memory, given)
            made[low : low + len(part)] = target[: len(part)]
        return made.reshape(x.shape)


_KNOWN: dict[Name, Blockwise] = {}


def known(name: Name) -> Blockwise | None:
    """The function, where it has been taught."""
    return _KNOWN.get(name)


def learn(
    operands: Sequence[Shard], peers: Peers, *, binaries: Mapping[Name, Binary]
) -> list[Shard]:
    """From now on this process has these functions."""
    del operands, peers
    for (function, kind), binary in binaries.items():
        program = load(binary.shared_object, digest(binary.shared_object), binary.manifest)
        memory = {s.name: aligned_empty(s.nbytes) for s in binary.manifest.storages}
        for each in memory.values():
            each.view(kind)[:] = 1
        _KNOWN[function, kind] = Blockwise(program, binary, memory, np.dtype(kind))
    return []

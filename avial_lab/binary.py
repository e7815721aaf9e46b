"""The artifact: a shared object, its PTX and a manifest that says how to run it.

LLVM IR -> Binary, content-addressed. Needs no MLIR: engines import the types from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.arrays import Buffer, Storage
from avial_lab.schedule import Piece, Step, Transfer


@dataclass(frozen=True)
class Manifest:
    """What an engine has to know to run the shared object.

    `buffers` are in the order of the entry's arguments. `programs[r]` names the steps of rank r; step k of it writes
    its start and end to slot k of the trace. `devices[task]` is the device's name.
    """

    entry: str
    ranks: int
    buffers: tuple[Buffer, ...]
    storages: tuple[Storage, ...]
    programs: tuple[tuple[Step, ...], ...]
    transfers: tuple[Transfer, ...]
    inputs: tuple[Piece, ...]
    results: tuple[Piece, ...]
    devices: dict[str, str]
    uses_mpi: bool = True


@dataclass(frozen=True)
class Binary:
    """`key` is the SHA-256 of everything the artifact was made from."""

    key: str
    shared_object: bytes
    ptx: dict[str, str]
    manifest: Manifest

"""A loaded program of one rank, run in this process: one call of C, without anybody to ask.

Manifest, shared object -> RunHere; addresses of the caller's arrays -> how the run ended. What the
code may do to this process has been made sure of before (`Translated.apart`): nothing here does.
It has as many threads as a rank that is alone on its machine. An assertion ends the run, and so
does Ctrl-C, where the system lets it.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from avial_lab.artifact.binary import Binary
from avial_lab.artifact.manifest import DerivedMessages
from avial_lab.core.buffers import Storage
from avial_lab.core.runtime_constants import HERE_ARRAYS, HereResult, HereUse
from avial_lab.core.words import brief, listed
from avial_lab.machine.constants import LINE_BYTES
from avial_lab.machine.cpu import check_instruction_sets
from avial_lab.runtime.native.loader import LoadedProgram, descriptor, digest, load_program
from avial_lab.runtime.rank.interrupts import INTERRUPTS
from avial_lab.runtime.rank.threads import threads_here

MOST_BYTES = 1 << 30
"""Of a program's arrays; of those that it writes there is a second copy as long as it is kept."""


class _HereCall(ctypes.Structure):
    """`HereCall` of ownership.h."""

    _fields_ = (
        ("entry", ctypes.c_void_p),
        ("arrays", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("ndims", "dims", "itemsizes", "bytes", "uses")),
        *((name, ctypes.c_void_p) for name in ("memory", "descriptors", "given")),
        *((name, ctypes.c_int64) for name in ("in_place", "bell")),
    )


@dataclass(repr=False)
class RunHere:
    """`arrays`: where the program works, by the names of its arrays; those without one of the
    caller's are read and written there. `place`: the number of each. One run at a time: whoever has
    `lock`. stops: whether Ctrl-C can end a run; is_whole: none was.
    """

    arrays: Mapping[str, np.ndarray]
    place: Mapping[str, int]
    given: ctypes.Array[ctypes.c_void_p]
    lock: threading.Lock
    stops: bool
    threads: int
    _program: LoadedProgram
    _call: _HereCall
    _kept: tuple[object, ...]
    is_whole: bool = True

    def __repr__(self) -> str:
        return brief(self, f"on {listed(list(self.arrays))}")

    @property
    def nbytes(self) -> int:
        """Of memory that it keeps."""
        return sum(array.nbytes for array in self.arrays.values())

    def __call__(self, *, in_place: bool = False, threads: int = 0) -> HereResult:
        """With the addresses in `given`, on so many of the threads (0: all). in_place: what is
        written is written in the caller's arrays, and Ctrl-C waits. After a run that it has ended
        there must be no other.
        """
        library, call = self._program.library, self._call
        if self.threads > 1:
            self._program.set_globals({"avial_threads": threads or self.threads})
        call.in_place = in_place
        call.bell = -1
        if self.stops and not in_place:
            call.bell = INTERRUPTS.bell_for(library.avial_stop_here)
        try:
            ended = library.avial_run_here(ctypes.byref(call))
        except KeyboardInterrupt:  # as soon as it is back, whether it was stopped or had ended
            self.is_whole = False
            raise
        self.is_whole = ended != HereResult.STOPPED
        return ended

    def failure(self) -> str:
        """What a run that failed said; what it had taken is given back."""
        text = ctypes.c_char_p.in_dll(self._program.library, "avial_failed").value
        if self._program.exports("avial_reclaim"):
            self._program.library.avial_reclaim()
        return (text or b"").decode(errors="replace")


def may_run_here(binary: Binary) -> bool:
    """Whether the program is of the form that can: each array a memory of its own, no devices, no
    library of others, nothing that is not handed over as an array.
    """
    manifest = binary.manifest
    return (
        isinstance(manifest, DerivedMessages)
        and manifest.ranks == 1
        and not (manifest.drivers or manifest.numbers or manifest.uses_mpi or binary.ptx)
        and len(manifest.storages) <= HERE_ARRAYS
        and sum(storage.nbytes for storage in manifest.storages) <= MOST_BYTES
        and len(manifest.buffers) == len(manifest.storages)
        and not any(storage.shared for storage in manifest.storages)
    )


def run_here(
    binary: Binary, written: Collection[str], fresh: Collection[str] = ()
) -> RunHere | None:
    """Loaded into this process; `written` are the storages that it writes, `fresh` those that are
    made for each run. None where the program calls a BLAS, which would have to be set up for each.
    """
    manifest = binary.manifest
    check_instruction_sets(manifest.instruction_sets)
    shared = binary.shared_object
    program = load_program(shared, digest(shared), entry=manifest.entry)
    if program.exports("avial_blas_bits") or not program.exports("avial_run_here"):
        return None
    threads = threads_here(program)
    storages = manifest.storages
    arrays = {storage.buffers[0]: _memory(storage) for storage in storages}
    temporary = {buffer.storage for buffer in manifest.buffers if buffer.temporary}
    uses = [
        HereUse.WRITTEN * (storage.name in written)
        + HereUse.TEMPORARY * (storage.name in temporary)
        + HereUse.FRESH * (storage.name in fresh)
        for storage in storages
    ]
    addresses = [array.ctypes.data for array in arrays.values()]
    descriptors = [
        descriptor(address, storage.shape)
        for address, storage in zip(addresses, storages, strict=True)
    ]
    given = (ctypes.c_void_p * len(storages))()
    tables = (
        _words([len(storage.shape) for storage in storages]),
        _words([size for storage in storages for size in storage.shape]),
        _words([storage.itemsize for storage in storages]),
        _words([storage.nbytes for storage in storages]),
        _words(uses),
        (ctypes.c_void_p * len(storages))(*addresses),
        (ctypes.c_void_p * len(storages))(*map(ctypes.addressof, descriptors)),
        given,
    )
    entry = ctypes.cast(program.library[f"_mlir_ciface_{program.entry}"], ctypes.c_void_p)
    call = _HereCall(entry.value, len(storages), *map(ctypes.addressof, tables))
    library = program.library
    library.avial_run_here.restype = library.avial_stop_here.restype = ctypes.c_int64
    place = {name: k for k, name in enumerate(arrays)}
    kept = (*tables, *descriptors)
    stops = bool(program.get_global("avial_stops_here"))
    return RunHere(arrays, place, given, threading.Lock(), stops, threads, program, call, kept)


def _memory(storage: Storage) -> np.ndarray:
    """Opaque elements, aligned as compiled code has it."""
    room = np.zeros(storage.nbytes + LINE_BYTES, np.uint8)
    skip = -room.ctypes.data % LINE_BYTES
    flat = room[skip : skip + storage.nbytes]
    return flat.view(np.dtype((np.void, storage.itemsize))).reshape(storage.shape)


def _words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values))(*values)

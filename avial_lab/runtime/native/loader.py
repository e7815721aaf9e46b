"""The compiled program in this process: loaded, its globals set, its entry called.

Bytes of a shared object -> LoadedProgram; storages' memory -> the program's effects in it. The
calling convention (globals `avial_*`, one MLIR memref descriptor for each storage) is the whole of
what engines know of compiled code.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from avial_lab.core.buffers import Number, Storage, row_major
from avial_lab.core.element_types import ELEMENT_TYPES
from avial_lab.core.errors import ClusterError, InternalError
from avial_lab.core.files import cache_folder


@dataclass(frozen=True)
class LoadedProgram:
    """A shared object in this process; `entry` is the name of the function that runs the rank's
    steps. `held`: what its globals point to.
    """

    library: ctypes.CDLL
    entry: str
    held: list[object] = field(
        default_factory=list[object], repr=False, compare=False, kw_only=True
    )

    def set_globals(self, values: Mapping[str, int]) -> None:
        """Store each value in the exported 64-bit global of that name."""
        for name, value in values.items():
            try:
                ctypes.c_int64.in_dll(self.library, name).value = _signed(value)
            except ValueError:
                raise InternalError(f"the shared object exports no global '{name}'") from None

    def get_global(self, name: str) -> int:
        return ctypes.c_int64.in_dll(self.library, name).value

    def exports(self, name: str) -> bool:
        """Whether it has a symbol of that name."""
        return hasattr(self.library, name)

    def drop_memory(self) -> None:
        """Give back to the system what the program keeps for its next run
        (`runtime/native/memory.c`), and what it has on devices (`devices/places.c`).
        """
        for name in ("avial_drop", "avial_places_drop"):
            if self.exports(name):
                getattr(self.library, name)()

    def call(
        self,
        storages: Sequence[Storage],
        memory: Sequence[np.ndarray],
        numbers: Sequence[Number] = (),
    ) -> None:
        """Run the entry on `memory`, flat bytes for each of `storages`, and `numbers`."""
        self.prepared(storages, memory, numbers)()

    def prepared(
        self,
        storages: Sequence[Storage],
        memory: Sequence[np.ndarray],
        numbers: Sequence[Number] = (),
    ) -> Callable[[], None]:
        """The same, to be done later: with that the arguments are at hand."""
        return self.prepared_with(
            (
                descriptor(data.ctypes.data, storage.shape)
                for storage, data in zip(storages, memory, strict=True)
            ),
            numbers,
        )

    def prepared_with(
        self, memrefs: Iterable[ctypes.Array[ctypes.c_int64]], numbers: Sequence[Number] = ()
    ) -> Callable[[], None]:
        """A call of the entry on memref descriptors, and numbers behind them; the GIL is free."""
        descriptors = list(memrefs)
        function = self.library[f"_mlir_ciface_{self.entry}"]
        function.restype = None
        kinds = [ELEMENT_TYPES[number.element].ctype for number in numbers]
        function.argtypes = [ctypes.c_void_p] * len(descriptors) + kinds
        given = [*map(ctypes.byref, descriptors), *(number.value for number in numbers)]
        return lambda: function(*given)


def digest(shared_object: bytes) -> str:
    """What both ends of a transport compare."""
    return hashlib.sha256(shared_object).hexdigest()


def load_program(shared_object: bytes, sha256: str, *, entry: str) -> LoadedProgram:
    """The shared object, mapped into this process, if `sha256` is its digest.

    It passes through a private file that is gone again when this returns.
    """
    if digest(shared_object) != sha256:
        raise InternalError("the shared object was damaged on the way to the engine")
    refusals: list[str] = []
    for directory in _directories():
        # mkstemp: 0600 and a fresh name, so nobody else can write what is about to be run.
        handle, path = tempfile.mkstemp(suffix=".so", prefix="avial-", dir=directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(shared_object)
            library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            refusals.append(str(error))
            continue
        finally:
            Path(path).unlink()
        return LoadedProgram(library, entry)
    raise ClusterError(
        "the compiled program could not be loaded: " + "; ".join(refusals),
        hint="it was built for another machine, or TMPDIR is mounted noexec",
    )


def descriptor(address: int, shape: tuple[int, ...]) -> ctypes.Array[ctypes.c_int64]:
    """MLIR's memref descriptor {allocated, aligned, offset, sizes[r], strides[r]} of row-major
    memory.

    >>> list(descriptor(64, (2, 3)))
    [64, 64, 0, 2, 3, 3, 1]
    """
    words = (_signed(address), _signed(address), 0, *shape, *row_major(shape))
    return (ctypes.c_int64 * len(words))(*words)


def mapped_files(like: re.Pattern[str]) -> list[str]:
    """Those that this process has in its memory already; none where that is not known (macOS)."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return []
    paths = dict.fromkeys(line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/" in line)
    return [path for path in paths if like.search(path)]


def _directories() -> list[Path]:
    """Where the file may pass through; the second for a temporary directory mounted noexec."""
    cache = cache_folder()
    places = [Path(tempfile.gettempdir())]
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return places  # a home that cannot be written is no second place
    return [*places, cache]


def _signed(value: int) -> int:
    """The 64 bits of `value` as ctypes takes them."""
    return (value & (1 << 64) - 1) - (1 << 64 if value >> 63 & 1 else 0)

"""The devices of a rank that runs tasks, seen from Python (`native/devices/places.h`).

A loaded program, which rank drives which device -> devices opened, copies counted, what failed. For
programs of loops the ownership runtime does the same.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass

from avial_lab.core.buffers import Storage
from avial_lab.machine.devices import place_name
from avial_lab.planning.schedule import ALL_TASKS
from avial_lab.runtime.native.loader import LoadedProgram
from avial_lab.trace import Copy

DRIVERS = {"apart": 0, "null": 1, "cuda": 2}
"""`enum DriverCode` of `devices/places.h`."""


@dataclass(frozen=True)
class Places:
    """Those of rank `rank` of `ranks`; `drivers` drive the devices."""

    program: LoadedProgram
    ranks: int
    rank: int
    drivers: tuple[int, ...]

    def begin(
        self,
        storages: Sequence[Storage],
        addresses: Sequence[int],
        *,
        driver: str,
        seed: int,
        ran: int,
    ) -> None:
        """Opens the devices for arrays at these addresses. ran: where the times of launches go."""
        code = DRIVERS[driver]
        self.program.set_globals({"avial_driver": code, "avial_seed": seed, "avial_ran": ran})
        library = self.program.library
        library.avial_places(
            ctypes.c_int64(self.ranks),
            ctypes.c_int64(self.rank),
            ctypes.c_int64(len(self.drivers)),
            _words(self.drivers),
        )
        for k, (storage, address) in enumerate(zip(storages, addresses, strict=True)):
            library.avial_place_array(
                ctypes.c_int64(k),
                ctypes.c_int64(len(storage.shape)),
                _words(storage.shape),
                ctypes.c_int64(storage.itemsize),
                ctypes.c_void_p(address),
            )

    def end(self) -> tuple[Copy, ...]:
        """Waits for all, and gives the devices back; what was copied."""
        places = self.ranks + len(self.drivers)
        found: list[Copy] = []
        for source in range(places):
            for dest in range(places):
                nbytes = ctypes.c_int64()
                number = self._copied(source, dest, nbytes)
                if number:
                    ends = place_name(source, self.ranks), place_name(dest, self.ranks)
                    found.append(Copy(ALL_TASKS, *ends, number, nbytes.value))
        self.program.library.avial_places_end()
        return tuple(found)

    def failure(self, storages: Sequence[Storage]) -> str:
        """Why a device failed; empty where none did."""
        if not self.program.get_global("avial_device_failed"):
            return ""
        why = self.program.library.avial_device_why
        why.restype = ctypes.c_char_p
        return named((why() or b"").decode(errors="replace"), storages)

    def _copied(self, source: int, dest: int, nbytes: ctypes.c_int64) -> int:
        copied = self.program.library.avial_copied
        copied.restype = ctypes.c_int64
        return copied(ctypes.c_int64(source), ctypes.c_int64(dest), ctypes.byref(nbytes))


def named(why: str, storages: Sequence[Storage]) -> str:
    """The reason with the names of arrays in place of their numbers.

    >>> named("array 1 takes 80 bytes", [Storage(name, (10,), 8, (name,)) for name in "ab"])
    "array 'b' takes 80 bytes"
    """

    def name(found: re.Match[str]) -> str:
        number = int(found[1])
        return f"array '{storages[number].name}'" if number < len(storages) else found[0]

    return re.sub(r"\barray (\d+)\b", name, why)


def _words(values: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(len(values), 1))(*values)

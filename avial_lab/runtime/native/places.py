"""The devices of a rank that runs tasks, seen from Python (`native/devices/places.h`).

A loaded program, which rank drives which device -> devices opened, copies counted, what failed. For
programs of loops the ownership runtime does the same.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from avial_lab.artifact.device_memory import WAY_OUT, Stay, refuse_too_large
from avial_lab.artifact.kernels import KernelRow
from avial_lab.core.buffers import Storage
from avial_lab.machine.devices import place_name
from avial_lab.machine.devices.cuda import capability, is_exact
from avial_lab.planning.schedule import ALL_TASKS
from avial_lab.runtime.native.loader import LoadedProgram
from avial_lab.trace import Copy

DRIVERS = {"apart": 0, "null": 1, "cuda": 2}
"""`enum DriverCode` of `devices/places.h`."""

NO_MEMORY = 2
"""`DEVICE_NO_MEMORY` there."""


@dataclass(frozen=True)
class Devices:
    """What drives the devices of a run, and how: emulated ones in an order drawn from `seed`; with
    `memory_bytes` each, 0 for as many as there are.
    """

    driver: str = "apart"
    seed: int = 0
    memory_bytes: int = 0


def choose(
    program: LoadedProgram,
    devices: Devices,
    storages: Sequence[Storage],
    ranks: int,
    drivers: Sequence[int],
    stays: Sequence[Stay],
) -> tuple[np.ndarray, ...]:
    """Tells the program of the next run's devices, what they use of arrays, and when they are
    through with them; the arrays that it is told by have to live as long as the run.
    """
    number = {storage.name: k for k, storage in enumerate(storages)}
    last = np.full((max(len(drivers), 1), max(len(storages), 1)), -1, np.int64)
    for stay in stays:
        last[stay.place - ranks, number[stay.storage]] = stay.last
    granules = np.array(
        [
            (stay.place - ranks, number[stay.storage], *run)
            for stay in stays
            for run in stay.granules
        ],
        np.int64,
    )
    program.set_globals(
        {
            "avial_driver": DRIVERS[devices.driver],
            "avial_seed": devices.seed,
            "avial_memory_limit": devices.memory_bytes,
            "avial_last_uses": last.ctypes.data if stays else 0,
            "avial_last_arrays": last.shape[1],
            "avial_granules": granules.ctypes.data if len(granules) else 0,
            "avial_granule_runs": len(granules),
        }
    )
    return last, granules


class _Cubin(ctypes.Structure):
    """`KernelCubin` of `devices/places.h`."""

    _fields_: ClassVar = [
        ("name", ctypes.c_char_p),
        ("cubin", ctypes.c_char_p),
        ("capability", ctypes.c_int64),
        ("exact", ctypes.c_int64),
    ]


def give_cubins(program: LoadedProgram, kernels: Iterable[KernelRow]) -> None:
    """Machine code of the kernels, which a GPU that takes it is given in place of their PTX."""
    found = [
        _Cubin(row.name.encode(), image.cubin, capability(image.chip), is_exact(image.chip))
        for row in kernels
        for image in row.images
        if image.cubin
    ]
    if not found or not program.exports("avial_cubins"):
        return
    rows = (_Cubin * len(found))(*found)
    program.held.append((rows, found))
    program.set_globals({"avial_cubins": ctypes.addressof(rows), "avial_cubin_count": len(rows)})


def check_room(
    program: LoadedProgram, ranks: int, rank: int, drivers: Sequence[int], stays: Sequence[Stay]
) -> None:
    """RunError where this rank's devices, which are open, have not the memory that is needed."""
    room = program.library.avial_room
    room.restype = ctypes.c_int64
    for place, driver in enumerate(drivers, ranks):
        if driver == rank:
            total = ctypes.c_int64()
            free = room(ctypes.c_int64(place), ctypes.byref(total))
            refuse_too_large(stays, ranks, place, free, total.value)


def settle(program: LoadedProgram, *, whole: bool) -> bool:
    """After a run on arrays that the caller has on devices: what it has written there is undone
    unless the caller has the whole of its results. Whether that could be.
    """
    settled = program.library.avial_settle
    settled.restype = ctypes.c_bool
    return settled(ctypes.c_bool(whole))


def taken_bytes(
    program: LoadedProgram, ranks: int, drivers: Sequence[int]
) -> tuple[tuple[str, int], ...]:
    """The most bytes that the last run has taken on each device of this rank."""
    taken = program.library.avial_most_taken
    taken.restype = ctypes.c_int64
    return tuple(
        (place_name(place, ranks), nbytes)
        for place in range(ranks, ranks + len(drivers))
        if (nbytes := taken(ctypes.c_int64(place)))
    )


@dataclass
class Places:
    """Those of rank `rank` of `ranks`; `drivers` drive the devices."""

    program: LoadedProgram
    ranks: int
    rank: int
    drivers: tuple[int, ...]
    _told: tuple[np.ndarray, ...] = field(default=(), repr=False)

    def begin(
        self,
        storages: Sequence[Storage],
        addresses: Sequence[int],
        *,
        devices: Devices,
        stays: Sequence[Stay] = (),
        ran: int = 0,
    ) -> None:
        """Opens the devices for arrays at these addresses. ran: where the times of launches go.

        Raises RunError where they have not the memory that the `stays` need.
        """
        self._told = choose(self.program, devices, storages, self.ranks, self.drivers, stays)
        self.program.set_globals({"avial_ran": ran})
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
        check_room(self.program, self.ranks, self.rank, self.drivers, stays)

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

    @property
    def failed(self) -> bool:
        return bool(self.program.get_global("avial_device_failed"))

    def _copied(self, source: int, dest: int, nbytes: ctypes.c_int64) -> int:
        copied = self.program.library.avial_copied
        copied.restype = ctypes.c_int64
        return copied(ctypes.c_int64(source), ctypes.c_int64(dest), ctypes.byref(nbytes))


def device_failure(
    program: LoadedProgram, storages: Sequence[Storage], ranks: int
) -> tuple[str, str | None, str]:
    """Why a device failed, what may help, and its name (empty where none was at fault)."""
    why = program.library.avial_device_why
    why.restype = ctypes.c_char_p
    words = named((why() or b"").decode(errors="replace"), storages)
    full = program.get_global("avial_device_failed") == NO_MEMORY
    place = program.get_global("avial_device_place")
    hint = WAY_OUT if full else _way_out(words)
    return words, hint, place_name(place, ranks) if place >= 0 else ""


_OLD_DRIVER, _NO_IMAGE = (35, 222, 803), (209, 218)
"""CUDA_ERROR_UNSUPPORTED_PTX_VERSION and its like; …_NO_BINARY_FOR_GPU, …_INVALID_PTX."""


def _way_out(words: str) -> str | None:
    """What may help against an error of NVIDIA's driver.

    >>> _way_out("the device has failed")
    """
    found = re.search(r"\bCUDA error (\d+)", words)
    if found is None:
        return None
    error = int(found[1])
    if error in _OLD_DRIVER:
        return "update the driver, or say --driver apart: an emulated GPU runs the same kernels"
    if error in _NO_IMAGE:
        return 'name the GPU\'s architecture (arch = "sm_80"; `avial-lab doctor` says which it is)'
    return (
        "what was on the GPU is lost, and nothing else; the next run opens it again. With --driver "
        "apart --check the same kernels are emulated, and an access outside an array is named"
    )


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

"""Memory of a GPU, taken and read from Python: the values of arrays there, for who has to look at
them, and arrays that are brought there to stay.

Arrays of the host and of GPUs -> arrays of the host; an array of the host -> one of a GPU. Where
there is no GPU, what is on it is emulated: in this process's memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from avial_lab.core.device_arrays import CPU, CUDA, LEGACY_STREAM, DeviceArray, OnDevice
from avial_lab.core.errors import RunError
from avial_lab.core.stand_ins import OnRanks
from avial_lab.machine.real_gpus import LIBRARY, chips_here


def on_host(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same arrays, those on a GPU or on ranks as copies."""

    def here(array: np.ndarray) -> np.ndarray:
        if isinstance(array, OnRanks):
            return array.given.values()
        return fetched(array.given) if isinstance(array, OnDevice) else array

    return {name: here(array) for name, array in arrays.items()}


def fetched(array: DeviceArray) -> np.ndarray:
    """Once all that the GPU was given is done."""
    values = np.empty(array.shape, array.dtype)
    _copy(array.number, values.ctypes.data, array.address, values.nbytes, "cuMemcpyDtoH_v2")
    return values


def brought(values: np.ndarray, to: DeviceArray) -> None:
    """Into an array of a GPU that has the same elements in a row."""
    values = np.ascontiguousarray(values)
    _copy(to.number, to.address, values.ctypes.data, values.nbytes, "cuMemcpyHtoD_v2")


def copied(array: DeviceArray, to: DeviceArray) -> None:
    """From an array of a GPU to another one there."""
    _copy(to.number, to.address, array.address, array.nbytes, "cuMemcpyDtoD_v2")


def taken(nbytes: int, number: int = 0) -> DeviceArray:
    """So many bytes of a GPU's memory, poisoned where it is emulated; given back when nobody has
    them any more.
    """
    shape, kind = (nbytes,), np.dtype(np.uint8)
    if not chips_here():
        memory = np.full(max(nbytes, 1), _POISON, kind)
        return DeviceArray(memory, shape, kind, memory.ctypes.data, number)
    memory = _Taken(number, max(nbytes, 1))
    return DeviceArray(memory, shape, kind, memory.address, number, LEGACY_STREAM)


_POISON = 0xFF
"""A byte of a NaN, and of -1."""


class _Taken:
    """Memory of a real GPU, in the context that other libraries use, too."""

    def __init__(self, number: int, nbytes: int) -> None:
        address = ctypes.c_uint64()
        _call(number, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        self.number, self.address = number, address.value

    def __del__(self) -> None:
        with suppress(RunError):  # of a context that is gone
            _call(self.number, "cuMemFree_v2", ctypes.c_uint64(self.address))


def finish(array: DeviceArray) -> None:
    """Waits until its GPU has done all that it was given."""
    if chips_here():
        _call(array.number, "cuCtxSynchronize")


def device_of(gpu: int) -> tuple[int, int]:
    """As DLPack has it, that of memory on this GPU; -1: on none."""
    return (CUDA, gpu) if gpu >= 0 and chips_here() else (CPU, 0)


def _copy(number: int, to: int, source: int, nbytes: int, function: str) -> None:
    """Addresses of the host or of that GPU, as the driver's function has them."""
    if not nbytes:
        return
    if not chips_here():
        ctypes.memmove(to, source, nbytes)
        return
    _call(number, "cuCtxSynchronize")
    _call(number, function, *map(ctypes.c_uint64, (to, source)), ctypes.c_size_t(nbytes))


def _call(number: int, function: str, *args: Any) -> None:  # noqa: ANN401 - as the driver takes them
    """A call of the driver in the GPU's own context; RunError where it fails."""
    cuda, before = ctypes.CDLL(LIBRARY), ctypes.c_void_p()
    error = cuda.cuCtxPushCurrent_v2(_context(max(number, 0)))
    if not error:
        error = getattr(cuda, function)(*args)
        cuda.cuCtxPopCurrent_v2(ctypes.byref(before))
    if error:
        raise RunError(f"GPU {max(number, 0)}: {function} failed with CUDA error {error}")


@cache
def _context(number: int) -> ctypes.c_void_p:
    """Kept as long as this process is: with its last holder it would lose all memory."""
    context = ctypes.c_void_p()
    error = ctypes.CDLL(LIBRARY).cuDevicePrimaryCtxRetain(ctypes.byref(context), number)
    if error:
        raise RunError(f"GPU {number} cannot be used: CUDA error {error}")
    return context

"""A device from Python, by the table of calls that C has (`native/devices/driver.h`).

A shared object with the drivers in it -> Device. What C refuses is a DeviceRefusal with its words.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_bool,
    c_char,
    c_char_p,
    c_int,
    c_int64,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy as np

from avial_lab.core.runtime_constants import MAX_DIMS


class DeviceRefusal(Exception):
    """What a driver said where it failed."""


class _BoxCopy(ctypes.Structure):
    _fields_ = (
        ("kind", c_int),
        ("host", c_void_p),
        ("device", c_uint64),
        ("source", c_uint64),
        ("run_bytes", c_int64),
        ("dims", c_int64),
        ("count", c_int64 * MAX_DIMS),
        ("here", c_int64 * MAX_DIMS),
        ("there", c_int64 * MAX_DIMS),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("kernel", c_void_p),
        ("grid", c_int64 * 3),
        ("block", c_int64 * 3),
        ("shared_bytes", c_int64),
        ("data", c_void_p),
        ("bytes", c_int64),
        ("offsets", POINTER(c_int64)),
        ("arguments", c_int64),
        ("tag", c_int64),
    )


class _Limits(ctypes.Structure):
    _fields_ = (
        ("block_threads", c_int64),
        ("block", c_int64 * 3),
        ("grid", c_int64 * 3),
        ("shared_bytes", c_int64),
        ("memory_bytes", c_int64),
        ("free_bytes", c_int64),
        ("capability", c_int64),
        ("name", c_char * 128),
    )


class _Table(ctypes.Structure):
    _fields_ = (
        ("name", c_char_p),
        ("count", CFUNCTYPE(c_int64)),
        ("open", CFUNCTYPE(c_void_p, c_int64)),
        ("close", CFUNCTYPE(None, c_void_p)),
        ("limits", CFUNCTYPE(c_bool, c_void_p, POINTER(_Limits))),
        ("allocate", CFUNCTYPE(c_uint64, c_void_p, c_int64)),
        ("release", CFUNCTYPE(c_bool, c_void_p, c_uint64)),
        ("copy", CFUNCTYPE(c_bool, c_void_p, c_int, POINTER(_BoxCopy))),
        ("load", CFUNCTYPE(c_void_p, c_void_p, c_char_p)),
        ("kernel", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_char_p)),
        ("launch", CFUNCTYPE(c_bool, c_void_p, c_int, POINTER(_Launch))),
        ("record", CFUNCTYPE(c_int64, c_void_p, c_int)),
        ("wait", CFUNCTYPE(c_bool, c_void_p, c_int, c_void_p, c_int64)),
        ("synchronise", CFUNCTYPE(c_bool, c_void_p, c_int64)),
        ("finish", CFUNCTYPE(c_bool, c_void_p)),
        ("why", CFUNCTYPE(c_char_p)),
        ("pin", CFUNCTYPE(c_bool, c_void_p, c_void_p, c_int64)),
        ("unpin", CFUNCTYPE(None, c_void_p, c_void_p)),
    )


_KERNELS = 0
"""The queue of launches."""


class _Kind(IntEnum):
    """Of copies."""

    IN, OUT, WITHIN = range(3)

    @property
    def queue(self) -> int:
        return 0 if self is _Kind.WITHIN else 1 + self.value


@dataclass(frozen=True)
class Facts:
    """What a device says of itself; capability 90 is sm_90, 0 that of an emulated one."""

    name: str
    capability: int
    memory_bytes: int
    free_bytes: int
    block_threads: int
    shared_bytes: int


class Device:
    """One that is open until `close`, or the end of the process."""

    def __init__(self, library: Path, driver: str, number: int = 0) -> None:
        """driver: `cuda`, `apart` or `null`. Raises DeviceRefusal where there is none."""
        self._driver = _Table.in_dll(ctypes.CDLL(str(library)), f"{driver}_driver")
        self._handle = self._made(self._driver.open(number))

    def close(self) -> None:
        self._driver.close(self._handle)

    def facts(self) -> Facts:
        limits = _Limits()
        self._went(self._driver.limits(self._handle, ctypes.byref(limits)))
        return Facts(
            limits.name.decode(errors="replace"),
            limits.capability,
            limits.memory_bytes,
            limits.free_bytes,
            limits.block_threads,
            limits.shared_bytes,
        )

    def allocate(self, nbytes: int) -> int:
        """An address there."""
        return self._made(self._driver.allocate(self._handle, nbytes))

    def release(self, address: int) -> None:
        self._went(self._driver.release(self._handle, address))

    def pin(self, data: np.ndarray) -> None:
        """Keeps the array's pages where they are, so that copies are faster."""
        if not self._driver.pin:
            raise DeviceRefusal("this driver does not pin memory")
        self._went(self._driver.pin(self._handle, data.ctypes.data, data.nbytes))

    def unpin(self, data: np.ndarray) -> None:
        self._driver.unpin(self._handle, data.ctypes.data)

    def copy_in(self, address: int, data: np.ndarray) -> None:
        self._copy(_Kind.IN, data.nbytes, address, host=data.ctypes.data)

    def copy_out(self, address: int, data: np.ndarray) -> None:
        """data: contiguous; there after `finish`."""
        self._copy(_Kind.OUT, data.nbytes, address, host=data.ctypes.data)

    def copy_within(self, source: int, to: int, nbytes: int) -> None:
        self._copy(_Kind.WITHIN, nbytes, to, source=source)

    def kernel(self, image: str, name: str) -> int:
        """Of PTX."""
        module = self._made(self._driver.load(self._handle, image.encode()))
        return self._made(self._driver.kernel(self._handle, module, name.encode()))

    def launch(
        self,
        kernel: int,
        grid: Sequence[int],
        block: Sequence[int],
        words: Sequence[int] = (),
        *,
        shared_bytes: int = 0,
    ) -> None:
        """words: arguments of 64 bits each."""
        data = (c_int64 * max(len(words), 1))(*words)
        offsets = (c_int64 * max(len(words), 1))(*range(0, 8 * len(words), 8))
        launch = _Launch(
            kernel=kernel,
            grid=(c_int64 * 3)(*_three(grid)),
            block=(c_int64 * 3)(*_three(block)),
            shared_bytes=shared_bytes,
            data=ctypes.addressof(data),
            bytes=8 * len(words),
            offsets=offsets,
            arguments=len(words),
            tag=-1,
        )
        self._went(self._driver.launch(self._handle, _KERNELS, ctypes.byref(launch)))

    def finish(self) -> None:
        """Waits for all."""
        self._went(self._driver.finish(self._handle))

    def _copy(
        self, kind: _Kind, nbytes: int, address: int, *, host: int = 0, source: int = 0
    ) -> None:
        copy = _BoxCopy(kind=kind, host=host, device=address, source=source, run_bytes=nbytes)
        self._went(self._driver.copy(self._handle, kind.queue, ctypes.byref(copy)))

    def _made(self, what: int | None) -> int:
        if not what:
            raise DeviceRefusal(self._why())
        return what

    def _went(self, well: bool) -> None:
        if not well:
            raise DeviceRefusal(self._why())

    def _why(self) -> str:
        return (self._driver.why() or b"").decode(errors="replace")


def _three(sizes: Sequence[int]) -> tuple[int, ...]:
    return (*sizes, *(1,) * (3 - len(sizes)))

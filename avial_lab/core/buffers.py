"""The caller's arrays: what the compiler has to know of them, and which of them share memory.

NumPy arrays by name -> `Buffer`s and `Storage`s (plain facts, no data) -> pieces of bytes in and
out.

A **buffer** is an array as the program names it. A **storage** is a stretch of memory that ranks
allocate: usually one buffer's, but arrays that overlap in the caller's memory share one, so that
they overlap on every rank too. Regions (`regions.Box`) are counted in a storage's own index space:
the array's elements where it holds one buffer, bytes of the common stretch where it holds several.

    x[0:10] ──► a ┐                     storage a: 60 bytes, buffers a (offset 0) and b (offset 20)
    x[5:15] ──► b ┘ overlap by 5 × 4 bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from avial_lab.core.aliasing import checked_array, raw_bytes, sharing_memory, span_of
from avial_lab.core.device_arrays import OnDevice, refuse_overlap
from avial_lab.core.element_types import ELEMENT_OF_DTYPE, ITEMSIZE
from avial_lab.core.errors import BindError
from avial_lab.core.regions import Box
from avial_lab.core.words import brief, format_bytes, listed

UNBOUNDED = 2**62
"""Stands for a size that is not known: a dynamic dimension to which no array is bound."""


@dataclass(frozen=True)
class Buffer:
    """One array of the program.

    shape and strides count elements; strides are those on a rank (row-major unless the array shares
    memory). `offset_bytes` is where element 0 lies in the storage. A temporary buffer is the
    program's own: it has no array of the caller behind it and starts undefined. gpu: the number of
    the one that the caller has it on; None: it is in the host's memory.
    """

    name: str
    shape: tuple[int, ...]
    element: str
    storage: str
    strides: tuple[int, ...]
    offset_bytes: int = 0
    writable: bool = True
    temporary: bool = False
    gpu: int | None = None

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.element]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize

    @property
    def contiguous(self) -> bool:
        """Whether it is row-major without gaps; true of every array that shares memory with no
        other.
        """
        return self.strides == row_major(self.shape)

    @property
    def before_first(self) -> int:
        """Elements from the lowest one in memory to element 0, where strides are negative.

        >>> Buffer("reversed", (8,), "f32", "a", (-1,), 28).before_first
        7
        """
        steps = zip(self.shape, self.strides, strict=True)
        return sum((extent - 1) * -step for extent, step in steps if step < 0 < extent)

    @property
    def type(self) -> str:
        """`20x30xf32`, `?xf32` where a size is not known."""
        extents = ("?" if extent == UNBOUNDED else str(extent) for extent in self.shape)
        return "x".join([*extents, self.element])

    def __repr__(self) -> str:
        words = f"{self.name}: {self.type}"
        if self.storage != self.name:
            words += f", from byte {self.offset_bytes:,} of storage {self.storage}"
        words += ", of allocated by the program" if self.temporary else ""
        words += f", on GPU {self.gpu}" if self.gpu is not None else ""
        return brief(self, words if self.writable else f"{words}, read only")


@dataclass(frozen=True)
class Storage:
    """A stretch of memory on each rank; `shape` × `itemsize` bytes, the index space of regions.

    >>> Storage("a", (20, 3), 4, ("a",)).nbytes
    240
    """

    name: str
    shape: tuple[int, ...]
    itemsize: int
    buffers: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.itemsize

    @property
    def shared(self) -> bool:
        """Whether several arrays lie in it; its regions then count bytes."""
        return len(self.buffers) > 1

    def __repr__(self) -> str:
        held = f", shared by {listed(self.buffers)}" if self.shared else ""
        size = "of unknown size" if UNBOUNDED in self.shape else f"of {format_bytes(self.nbytes)}"
        return brief(self, f"{self.name} {size}{held}")


@dataclass(frozen=True)
class Number:
    """An argument that a program is handed when it runs; `element` is in `element_types.HANDED`."""

    name: str
    element: str
    value: int | float


@dataclass(frozen=True)
class Binding:
    """The arrays of one program: `buffers` in the order they were given, every storage once."""

    buffers: tuple[Buffer, ...]
    storages: tuple[Storage, ...]

    def buffer(self, name: str) -> Buffer | None:
        return next((buffer for buffer in self.buffers if buffer.name == name), None)

    def __repr__(self) -> str:
        return brief(self, f"of {listed([f'{each.name}: {each.type}' for each in self.buffers])}")


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a contiguous array of that shape.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def bind_arrays(arrays: Mapping[str, Any]) -> Binding:
    """What the compiler needs to know of `arrays`; arrays that share memory get one storage.

    Raises BindError for what is no array, or an array of a dtype MLIR has no type for.
    """
    checked = {name: checked_array(name, array) for name, array in arrays.items()}
    refuse_overlap({name: a.given for name, a in checked.items() if isinstance(a, OnDevice)})
    buffers: list[Buffer] = []
    storages: list[Storage] = []
    for group in sharing_memory(checked):
        if len(group) == 1:
            (name,) = group
            array = checked[name]
            buffers.append(_buffer(name, array, name, row_major(array.shape), 0))
            storages.append(Storage(name, array.shape, array.itemsize, (name,)))
            continue
        low, high = span_of(checked[name] for name in group)
        for name in group:
            array = checked[name]
            strides = tuple(stride // array.itemsize for stride in array.strides)
            if any(stride % array.itemsize for stride in array.strides):
                raise BindError(
                    f"array '{name}' shares memory with another, with strides between its items",
                    hint=f"pass a copy: {name}.copy()",
                )
            offset = array.__array_interface__["data"][0] - low
            buffers.append(_buffer(name, array, group[0], strides, offset))
        storages.append(Storage(group[0], (high - low,), 1, tuple(group)))
    order = {name: k for k, name in enumerate(checked)}
    return Binding(tuple(sorted(buffers, key=lambda b: order[b.name])), tuple(storages))


def read_box(arrays: Mapping[str, Any], storage: Storage, box: Box) -> np.ndarray:
    """A contiguous copy of the elements of `box` (bytes of them where the storage is shared)."""
    return np.array(_window(arrays, storage)[box.slices], order="C", copy=True)


def write_box(arrays: Mapping[str, Any], storage: Storage, box: Box, data: np.ndarray) -> None:
    """Put `data` where `read_box` would read it, whatever the array's strides."""
    window = _window(arrays, storage)
    window[box.slices] = (
        data.reshape(box.shape)
        if data.dtype == window.dtype
        else (data.view(window.dtype).reshape(box.shape))
    )


def _window(arrays: Mapping[str, Any], storage: Storage) -> np.ndarray:
    """The caller's memory behind `storage`, in the storage's own index space."""
    if not storage.shared:
        return arrays[storage.buffers[0]]
    low, high = span_of(arrays[name] for name in storage.buffers)
    return raw_bytes(low, high - low, [arrays[name] for name in storage.buffers])


def _buffer(
    name: str, array: np.ndarray, storage: str, strides: tuple[int, ...], offset: int
) -> Buffer:
    element = ELEMENT_OF_DTYPE[array.dtype.name]
    gpu = max(array.given.number, 0) if isinstance(array, OnDevice) else None
    writable = array.flags.writeable
    return Buffer(name, array.shape, element, storage, strides, offset, writable, gpu=gpu)

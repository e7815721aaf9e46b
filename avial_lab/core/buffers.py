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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

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
    program's own: it has no array of the caller behind it and starts undefined.
    """

    name: str
    shape: tuple[int, ...]
    element: str
    storage: str
    strides: tuple[int, ...]
    offset_bytes: int = 0
    writable: bool = True
    temporary: bool = False

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
        words += ", of the program's own" if self.temporary else ""
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
    buffers: list[Buffer] = []
    storages: list[Storage] = []
    for group in _sharing(checked):
        if len(group) == 1:
            (name,) = group
            array = checked[name]
            buffers.append(_buffer(name, array, name, row_major(array.shape), 0))
            storages.append(Storage(name, array.shape, array.itemsize, (name,)))
            continue
        low, high = _span(checked[name] for name in group)
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
    low, high = _span(arrays[name] for name in storage.buffers)
    return _raw_bytes(low, high - low, [arrays[name] for name in storage.buffers])


class _Memory:
    """Keeps the arrays alive as long as the view onto their memory lives."""

    def __init__(self, address: int, nbytes: int, owners: list[Any]) -> None:
        self.owners = owners
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (address, False),
        }  # fmt: skip


def _raw_bytes(address: int, nbytes: int, owners: list[Any]) -> np.ndarray:
    return np.asarray(_Memory(address, nbytes, owners))


def checked_array(name: str, array: object) -> np.ndarray:
    """`array`, which a program can work on in place; else BindError."""
    if not isinstance(array, np.ndarray):
        raise BindError(
            f"'{name}' is not a NumPy array, but {_with_article(type(array).__name__)}",
            hint=_way_to_an_array(name, array),
        )
    array = cast("np.ndarray[Any, Any]", array)
    if _is_masked(array):
        raise BindError(
            f"array '{name}' has a mask, which a program would not see",
            hint=f"pass {name}.filled(…), or {name}.data for the values without the mask",
        )
    if not array.dtype.isnative:
        raise BindError(
            f"array '{name}' has dtype {array.dtype}: bytes in the order of another machine",
            hint=f"pass a copy: {name}.astype({name}.dtype.newbyteorder('='))",
        )
    if array.dtype.name not in ELEMENT_OF_DTYPE:
        raise BindError(
            f"array '{name}' has dtype {array.dtype}, which no MLIR element type stands for",
            hint="use one of " + ", ".join(ELEMENT_OF_DTYPE),
        )
    if array.flags.writeable and _overlaps_itself(array):
        raise BindError(
            f"elements of array '{name}' share memory with each other",
            hint=f"pass a copy: {name}.copy()",
        )
    return array


def _is_masked(array: object) -> bool:
    return isinstance(array, np.ma.MaskedArray)


def _with_article(noun: str) -> str:
    """`noun` as a sentence has it.

    >>> _with_article("list"), _with_article("int"), _with_article("NoneType")
    ('a list', 'an int', 'None')
    """
    if noun == "NoneType":
        return "None"
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _way_to_an_array(name: str, value: object) -> str:
    if isinstance(value, int | float | np.number | np.bool_):
        return (
            f"a number is no buffer: pass it as scalars={{'{name}': …}}, and leave it out of tasks"
        )
    if isinstance(value, list | tuple) or hasattr(value, "__array__"):
        return f"make one first, {name} = numpy.array({name}); the results come back in it"
    return "buffers are NumPy arrays: numpy.zeros(20, 'float32'), for example"


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether two indices may be one element; a view of an ordinary array never is that."""
    extent = array.itemsize
    axes = sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1)
    for stride, length in axes:
        if stride < extent:
            return bool(array.size)
        extent += stride * (length - 1)
    return False


def _buffer(
    name: str, array: np.ndarray, storage: str, strides: tuple[int, ...], offset: int
) -> Buffer:
    element = ELEMENT_OF_DTYPE[array.dtype.name]
    return Buffer(
        name, array.shape, element, storage, strides, offset, writable=array.flags.writeable
    )


def _span(arrays: Iterable[np.ndarray]) -> tuple[int, int]:
    """The lowest and one past the highest byte of any of the arrays."""
    bounds = [np.lib.array_utils.byte_bounds(array) for array in arrays]
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _sharing(arrays: Mapping[str, np.ndarray]) -> list[list[str]]:
    """The names in groups that share memory (transitively), each group in the order given.

    A group's memory is one stretch: what lies in its gaps belongs to it too.
    """
    groups: list[list[str]] = []
    for name, array in arrays.items():
        touching = [g for g in groups if any(_overlap(array, arrays[other]) for other in g)]
        merged = [member for g in touching for member in g]
        groups = [g for g in groups if g not in touching]
        groups.append([*merged, name])
    groups = _without_gaps(arrays, groups)
    order = {name: k for k, name in enumerate(arrays)}
    return [sorted(group, key=order.__getitem__) for group in groups]


def _without_gaps(arrays: Mapping[str, np.ndarray], groups: list[list[str]]) -> list[list[str]]:
    """The groups, each of several joined with those between whose arrays it lies.

    >>> base = np.zeros((4, 6))
    >>> columns = {"a": base[:, 0:2], "b": base[:, 1:3], "c": base[:, 4:6]}
    >>> _without_gaps(columns, [["a", "b"], ["c"]]), _without_gaps(columns, [["a"], ["c"]])
    ([['a', 'b', 'c']], [['a'], ['c']])
    """
    if all(len(group) == 1 for group in groups):
        return groups
    result: list[list[str]] = []
    for group in groups:
        joined = group
        apart: list[list[str]] = []
        for other in result:
            near = len(joined) > 1 or len(other) > 1
            if near and _spans_meet(arrays, joined, other):
                joined = [*other, *joined]
            else:
                apart.append(other)
        result = [*apart, joined]
    return result if len(result) == len(groups) else _without_gaps(arrays, result)


def _spans_meet(arrays: Mapping[str, np.ndarray], one: list[str], other: list[str]) -> bool:
    (low, high), (first, last) = (_span(arrays[name] for name in names) for names in (one, other))
    return max(low, first) < min(high, last)


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    if a.size == 0 or b.size == 0 or not np.may_share_memory(a, b):
        return False
    try:
        # Exact, so that interleaved views (every other column) stay apart; hard cases count as
        # sharing.
        return np.shares_memory(a, b, max_work=cast("Any", 10_000))
    except np.exceptions.TooHardError:
        return True

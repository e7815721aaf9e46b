"""Pieces of arrays on their way between processes.

Pieces (flat bytes) -> few messages, and back. Both sides know the sizes from the manifest, so no
header travels. Small pieces share one parcel, each at a multiple of `ALIGNMENT`; a large one
travels alone and uncopied.

    pieces   a 80 B   b 4 MiB   c 12 B        parcels   [a….c…]  [b]
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate

import numpy as np

from avial_lab.machine.constants import LINE_BYTES

ALIGNMENT = LINE_BYTES
_LAZY = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (0x4000 if sys.platform == "linux" else 0)
"""Linux's MAP_NORESERVE: the rank's own part of an array too large for the machine may fit."""

SMALL = 1 << 16
"""Bytes below which a piece shares a parcel with others."""


def as_bytes(array: np.ndarray) -> np.ndarray:
    """The elements in row-major order as flat bytes; a view where the array is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def pack(pieces: Sequence[np.ndarray]) -> list[np.ndarray]:
    """`pieces` (flat bytes) as parcels: the small ones together first, then the large ones in
    order.
    """
    places, total = _places([piece.nbytes for piece in pieces])
    shared = np.zeros(total, np.uint8)
    for k, place in places.items():
        shared[place : place + pieces[k].nbytes] = pieces[k]
    return [shared, *(piece for k, piece in enumerate(pieces) if k not in places)]


def unpack(parcels: Sequence[np.ndarray], sizes: Sequence[int]) -> list[np.ndarray]:
    """The pieces `pack` was given, whose sizes in bytes were `sizes`; views into the parcels."""
    places, _ = _places(sizes)
    large: Iterator[np.ndarray] = iter(parcels[1:])
    return [
        parcels[0][places[k] : places[k] + size] if k in places else next(large)
        for k, size in enumerate(sizes)
    ]


def large_sizes(sizes: Sequence[int]) -> list[int]:
    """Those of pieces that travel alone."""
    places, _ = _places(sizes)
    return [size for k, size in enumerate(sizes) if k not in places]


def aligned_empty(nbytes: int) -> np.ndarray:
    """Flat bytes, undefined, that start at a multiple of `ALIGNMENT`."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    skip = -raw.ctypes.data % ALIGNMENT
    return raw[skip : skip + nbytes]


def aligned_copy(value: np.ndarray) -> np.ndarray:
    """That starts where every vector unit likes it."""
    memory = aligned_empty(value.nbytes).view(value.dtype).reshape(value.shape)
    np.copyto(memory, value)
    return memory


def mapped_bytes(nbytes: int, *, dense: tuple[int, int] = (0, 0)) -> np.ndarray:
    """Flat bytes, zero, of which only the pages that are touched take memory. dense: the first and
    the end of those that are touched one after the other, which get large pages where there are
    such: to read them takes fewer entries of the TLB, and the first touch fewer faults.
    """
    if nbytes == 0:
        return np.empty(0, np.uint8)
    mapped = mmap.mmap(-1, nbytes, flags=_LAZY)
    start = dense[0] - dense[0] % mmap.PAGESIZE
    if dense[1] - start >= _LARGE_PAGES and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            mapped.madvise(mmap.MADV_HUGEPAGE, start, dense[1] - start)
    return np.frombuffer(mapped, np.uint8)


_LARGE_PAGES = 4 << 20
"""Bytes, at least, that are worth large pages."""


def _places(sizes: Sequence[int]) -> tuple[dict[int, int], int]:
    """Where each small piece lies in the shared parcel, and how long that is."""
    small = [k for k, size in enumerate(sizes) if size < SMALL]
    ends = list(accumulate((-(-sizes[k] // ALIGNMENT) * ALIGNMENT for k in small), initial=0))
    return dict(zip(small, ends, strict=False)), ends[-1]

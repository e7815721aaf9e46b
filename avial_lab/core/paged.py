"""The pages of an array's memory that something touches.

Storage, boxes of it -> bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from avial_lab.core.buffers import Storage
from avial_lab.core.regions import Box
from avial_lab.core.runtime_constants import PAGE


def paged_bytes(storage: Storage, boxes: Iterable[Box]) -> int:
    """Of whole pages, the first of which begins with the array; of the last one what is its.

    >>> rows = Storage("a", (4, 1024), 8, ("a",))  # a row is two pages
    >>> paged_bytes(rows, [Box((0, 0), (4, 1)), Box((3, 0), (4, 1024))])
    20480
    """
    pages = -(-storage.nbytes // PAGE)
    edges = np.zeros(pages + 1, np.int64)
    for box in boxes:
        if not box.empty:
            first, last = _rows(storage, box)
            np.add.at(edges, first // PAGE, 1)
            np.add.at(edges, last // PAGE + 1, -1)
    touched = np.cumsum(edges[:-1]) > 0
    rest = pages * PAGE - storage.nbytes
    return int(touched.sum()) * PAGE - (rest if pages and touched[-1] else 0)


def _rows(storage: Storage, box: Box) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last byte of each part of the box whose rows begin no more than a page
    apart.
    """
    first, last = np.zeros(1, np.int64), np.full(1, storage.itemsize - 1)
    stride = storage.itemsize
    for extent, low, high in reversed(list(zip(storage.shape, box.start, box.stop, strict=True))):
        if stride <= PAGE:
            first, last = first + low * stride, last + (high - 1) * stride
        else:
            at = np.arange(low, high)[:, None] * stride
            first, last = (first[None] + at).ravel(), (last[None] + at).ravel()
        stride *= extent
    return first, last

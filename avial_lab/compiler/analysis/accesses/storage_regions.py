"""What a task touches of a buffer, in the index space of the storage it lies in.

Boxes of a buffer -> Access: the buffer's own indices, or bytes where several buffers share memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.regions import Box, Region, union
from avial_lab.planning.task_graph import Access

MOST_BOXES = 32
"""A body that touches more boxes of one buffer than this is taken to touch their hull."""


@dataclass(frozen=True, slots=True)
class TouchedBox:
    """A box of a buffer; `exact` says that each of its elements is touched for sure, `relative` is
    the box counted from the anchor of its access, if it has one.
    """

    box: Box
    exact: bool = True
    relative: Box | None = None


def access(
    buffer: Buffer,
    storages: Mapping[str, Storage],
    parts: Sequence[TouchedBox],
    anchor: tuple[str, ...],
) -> Access:
    """The parts, which all have that anchor, as one access."""
    region, exact = joined([part.box for part in parts])
    exact = exact and all(part.exact for part in parts)
    relative, _ = joined([part.relative for part in parts if part.relative is not None])
    storage = storages[buffer.storage]
    if storage.shared:
        intervals = [_byte_intervals(buffer, box) for box in region]
        exact = exact and all(filled for _, filled in intervals)
        region = union(box for part, _ in intervals for box in part)
    return Access(buffer.name, storage.name, region, exact, anchor, relative)


def joined(boxes: Sequence[Box]) -> tuple[Region, bool]:
    """The elements in any of the boxes, and whether no other is among them."""
    if len(boxes) < 2:
        return tuple(boxes), True
    region = union(boxes) if len(boxes) <= MOST_BOXES else None
    if region is not None and len(region) <= MOST_BOXES:
        return region, True
    hull = boxes[0]
    for box in boxes:
        hull = hull.hull(box)
    return (hull,), region is not None and sum(box.size for box in region) == hull.size


def _byte_intervals(buffer: Buffer, box: Box) -> tuple[Region, bool]:
    """The bytes of `box` in a storage that several buffers share, and whether no byte between them
    is another's.
    """
    dims = sorted(range(len(box.start)), key=lambda d: -abs(buffer.strides[d]))
    outer = dims[0] if dims else None
    whole, filled = _byte_hull(buffer, box)
    if filled or outer is None or box.shape[outer] > MOST_BOXES:
        return (whole,), filled
    rows = []
    for k in range(box.start[outer], box.stop[outer]):
        start, stop = list(box.start), list(box.stop)
        start[outer], stop[outer] = k, k + 1
        rows.append(_byte_hull(buffer, Box(tuple(start), tuple(stop))))
    return tuple(row for row, _ in rows), all(full for _, full in rows)


def _byte_hull(buffer: Buffer, box: Box) -> tuple[Box, bool]:
    low = high = buffer.offset_bytes
    for start, stop, stride in zip(box.start, box.stop, buffer.strides, strict=True):
        ends = (start * stride * buffer.itemsize, (stop - 1) * stride * buffer.itemsize)
        low, high = low + min(ends), high + max(ends)
    high += buffer.itemsize
    return Box((low,), (high,)), box.size * buffer.itemsize == high - low

"""Views and slices, the same for memrefs and tensors: offsets, sizes and strides in elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from tests.witness.values import DYNAMIC, Array, Undefined


def slice_of(
    array: Array, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> Array:
    """As many dimensions as `array` has; every element of it has to be inside."""
    for k, size, stride, extent in zip(offsets, sizes, strides, array.sizes, strict=True):
        last = k + (size - 1) * stride
        if size < 0 or (size and not (0 <= k < extent and 0 <= last < extent)):
            raise Undefined(
                f"the slice {list(offsets)} {list(sizes)} {list(strides)} "
                f"is outside of {list(array.sizes)}"
            )
    offset = array.offset + sum(k * s for k, s in zip(offsets, array.strides, strict=True))
    steps = tuple(a * b for a, b in zip(strides, array.strides, strict=True))
    return Array(array.memory, offset, tuple(sizes), steps)


def without_units(array: Array, static: Sequence[int], shape: Sequence[int]) -> Array:
    """The dimensions that a type of these extents keeps.

    `static` are the operation's own sizes; only a 1 that is written there may go. Where several
    would do the first go; it is the same elements then.
    """
    spare = array.rank - len(shape)
    if not spare:
        return array
    kept = _kept(static, shape)
    if kept is None:
        raise Undefined(f"{list(array.sizes)} has not the extents {list(shape)}")
    return Array(
        array.memory,
        array.offset,
        tuple(array.sizes[k] for k in kept),
        tuple(array.strides[k] for k in kept),
    )


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int] | None:
    """Which of `sizes` make `shape`, `?` where that has it; the others are 1."""
    if not shape:
        return [] if all(size == 1 for size in sizes) else None
    if len(sizes) < len(shape):
        return None
    if sizes[0] == 1 and len(sizes) > len(shape):
        rest = _kept(sizes[1:], shape)
        if rest is not None:
            return [k + 1 for k in rest]
    if shape[0] != sizes[0]:
        return None
    rest = _kept(sizes[1:], shape[1:])
    return None if rest is None else [0, *(k + 1 for k in rest)]


def permuted(array: Array, permutation: Sequence[int]) -> Array:
    """Dimension k of the result is dimension `permutation[k]` of `array`."""
    return Array(
        array.memory,
        array.offset,
        tuple(array.sizes[k] for k in permutation),
        tuple(array.strides[k] for k in permutation),
    )


def collapsed(array: Array, groups: Sequence[Sequence[int]]) -> Array:
    """Each group of dimensions as one; they have to lie behind one another in memory."""
    sizes: list[int] = []
    strides: list[int] = []
    for group in groups:
        inner = [k for k in group if array.sizes[k] != 1]
        for left, right in pairwise(inner):
            if array.strides[left] != array.strides[right] * array.sizes[right]:
                raise Undefined(f"dimensions {left} and {right} do not lie behind one another")
        sizes.append(prod(array.sizes[k] for k in group))
        strides.append(array.strides[inner[-1]] if inner else 1)
    return Array(array.memory, array.offset, tuple(sizes), tuple(strides))


def expanded(array: Array, groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> Array:
    """Each dimension as several, of these sizes."""
    strides = [0] * len(sizes)
    for group, extent, stride in zip(groups, array.sizes, array.strides, strict=True):
        if prod(sizes[k] for k in group) != extent:
            raise Undefined(f"{[sizes[k] for k in group]} do not make {extent}")
        for k in group:
            strides[k] = stride * prod(sizes[j] for j in group if j > k)
    return Array(array.memory, array.offset, tuple(sizes), tuple(strides))


def fitting(array: Array, shape: Sequence[int]) -> Array:
    """`array`, whose sizes have to be those of the type."""
    if array.rank != len(shape) or any(
        extent not in (DYNAMIC, size) for extent, size in zip(shape, array.sizes, strict=False)
    ):
        raise Undefined(f"a cast of {list(array.sizes)} to {list(shape)}")
    return array


def copied(source: Array, target: Array) -> None:
    if source.sizes != target.sizes:
        raise Undefined(f"a copy of {list(source.sizes)} to {list(target.sizes)}")
    target.fill(source.values())

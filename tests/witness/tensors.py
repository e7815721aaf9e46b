"""tensor and bufferization: every result has memory of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from mlir import ir

from tests.witness.machine import INDEX, Frame, Op, Step, rule
from tests.witness.memory import shape_of, sizes_of
from tests.witness.values import Array, Undefined, Value
from tests.witness.views import collapsed, copied, expanded, slice_of, without_units

signed = INDEX.signed
_SLICE = ("static_offsets", "static_sizes", "static_strides")


@rule("tensor.yield")
def _yield(op: Op) -> Step:
    return op.handed_on()


@rule("tensor.insert")
def _insert(op: Op) -> Step:
    def inserted(value: Value, target: Array, *index: int) -> Array:
        result = target.copy()
        result[[signed(k) for k in index]] = value
        return result

    return op.pure(inserted)


@rule("tensor.extract_slice")
def _extract_slice(op: Op) -> Step:
    (source,), *slots = op.segments()
    parts = [op.mixed(n, s) for n, s in zip(_SLICE, slots, strict=True)]
    static, shape, (out,) = op.integers("static_sizes"), shape_of(op.type), op.outs

    def step(frame: Frame) -> None:
        view = slice_of(frame[source], *(part(frame) for part in parts))
        frame[out] = without_units(view, static, shape).copy()

    return step


@rule("tensor.insert_slice", "tensor.parallel_insert_slice")
def _insert_slice(op: Op) -> Step:
    """The parallel one writes into its loop's shared result, which is memory of the loop's own."""
    (source,), (target,), *slots = op.segments()
    parts = [op.mixed(n, s) for n, s in zip(_SLICE, slots, strict=True)]
    static, shape, outs = op.integers("static_sizes"), shape_of(op.operands[0].type), op.outs

    def step(frame: Frame) -> None:
        result: Array = frame[target].copy() if outs else frame[target]
        view = slice_of(result, *(part(frame) for part in parts))
        copied(frame[source], without_units(view, static, shape))
        for out in outs:
            frame[out] = result

    return step


@rule("tensor.collapse_shape")
def _collapse(op: Op) -> Step:
    groups = op.groups("reassociation")
    return op.pure(lambda array: collapsed(array.copy(), groups))


@rule("tensor.expand_shape")
def _expand(op: Op) -> Step:
    source, *dynamic = op.ins
    groups, sizes = op.groups("reassociation"), op.mixed("static_output_shape", dynamic)
    (out,) = op.outs

    def step(frame: Frame) -> None:
        frame[out] = expanded(frame[source].copy(), groups, sizes(frame))

    return step


@rule("tensor.from_elements")
def _from_elements(op: Op) -> Step:
    shape = shape_of(op.type)
    return op.pure(lambda *values: Array.of(shape, values))


@rule("tensor.splat")
def _splat(op: Op) -> Step:
    shape = shape_of(op.type)

    def splat(value: Value, *numbers: int) -> Array:
        result = Array.of(sizes_of(shape, numbers))
        result.fill(value for _ in result.memory)
        return result

    return op.pure(splat)


@rule("tensor.generate")
def _generate(op: Op) -> Step:
    shape, body, ins, (out,) = shape_of(op.type), op.region(), op.ins, op.outs

    def step(frame: Frame) -> None:
        result = Array.of(sizes_of(shape, [frame[k] for k in ins]))
        for index in result.indices():
            (result[index],) = body(frame, *index)
        frame[out] = result

    return step


@rule("tensor.pad")
def _pad(op: Op) -> Step:
    (source,), lows, highs = op.segments()
    low, high = op.mixed("static_low", lows), op.mixed("static_high", highs)
    body, (out,) = op.region(), op.outs

    def step(frame: Frame) -> None:
        array, before = frame[source], low(frame)
        pairs = zip(before, array.sizes, high(frame), strict=True)
        result = Array.of([a + n + b for a, n, b in pairs])
        for index in result.indices():
            inner = [k - a for k, a in zip(index, before, strict=True)]
            inside = all(0 <= k < n for k, n in zip(inner, array.sizes, strict=True))
            result[index] = array[inner] if inside else body(frame, *index)[0]
        frame[out] = result

    return step


@rule("tensor.concat")
def _concat(op: Op) -> Step:
    dim = op.number("dim")

    def concat(*arrays: Array) -> Array:
        sizes = list(arrays[0].sizes)
        sizes[dim] = sum(array.sizes[dim] for array in arrays)
        result, start = Array.of(sizes), 0
        for array in arrays:
            offsets = [start if k == dim else 0 for k in range(array.rank)]
            copied(array, slice_of(result, offsets, array.sizes, [1] * array.rank))
            start += array.sizes[dim]
        return result

    return op.pure(concat)


@rule("tensor.gather")
def _gather(op: Op) -> Step:
    dims, shape = op.integers("gather_dims"), shape_of(op.type)

    def gather(source: Array, places: Array) -> Array:
        *batch, _ = places.sizes
        window = [1 if k in dims else n for k, n in enumerate(source.sizes)]
        found: list[Value] = []
        for index in itertools.product(*map(range, batch)):
            offsets = [0] * source.rank
            for k, dim in enumerate(dims):
                offsets[dim] = signed(places[(*index, k)])
            found += slice_of(source, offsets, window, [1] * source.rank).values()
        kept = [n for k, n in enumerate(window) if k not in dims]
        reduced = len(shape) == len(batch) + len(kept)
        return Array.of([*batch, *(kept if reduced else window)], found)

    return op.pure(gather)


# -- between tensors and memory --------------------------------------------------------------------


@rule("bufferization.to_tensor", "bufferization.clone")
def _read(op: Op) -> Step:
    return op.pure(lambda array: array.copy())


@rule("bufferization.to_buffer")
def _written(op: Op) -> Step:
    """Memory that holds the tensor; nobody may write to it."""
    return op.pure(lambda array: array)


@rule("bufferization.materialize_in_destination")
def _materialize(op: Op) -> Step:
    source, target = op.ins
    tensor, outs = isinstance(op.operands[1].type, ir.RankedTensorType), op.outs

    def step(frame: Frame) -> None:
        result = frame[target].copy() if tensor else frame[target]
        copied(frame[source], result)
        for out in outs:
            frame[out] = result

    return step


@rule("bufferization.dealloc_tensor")
def _dealloc(op: Op) -> Step:
    return lambda frame: None


# -- packing ---------------------------------------------------------------------------------------


def _tiling(op: Op) -> tuple[list[int], list[int], Callable[[Frame], list[int]]]:
    """Which dimensions are tiled, how the outer ones are permuted, how large the tiles are."""
    dims = op.integers("inner_dims_pos")
    groups = op.segments() or [[], [], op.ins[2:]]
    return dims, op.integers("outer_dims_perm"), op.mixed("static_inner_tiles", groups[-1])


def _origins(
    packed: Array, dims: Sequence[int], outer: Sequence[int], tiles: Sequence[int]
) -> list[tuple[tuple[int, ...], list[int]]]:
    """For each element of the packed array the place of the unpacked one; it may be outside."""
    rank = packed.rank - len(dims)
    order = list(outer) or list(range(rank))
    pairs: list[tuple[tuple[int, ...], list[int]]] = []
    for index in packed.indices():
        place = [0] * rank
        for k, dim in enumerate(order):
            place[dim] = index[k]
        for k, (dim, tile) in enumerate(zip(dims, tiles, strict=True)):
            place[dim] = place[dim] * tile + index[rank + k]
        pairs.append((index, place))
    return pairs


@rule("linalg.pack")
def _pack(op: Op) -> Step:
    (source,), (target,), padding, _ = op.segments()
    dims, outer, tiles = _tiling(op)
    (out,) = op.outs

    def step(frame: Frame) -> None:
        array, result = frame[source], Array.of(frame[target].sizes)
        for index, place in _origins(result, dims, outer, tiles(frame)):
            inside = all(k < n for k, n in zip(place, array.sizes, strict=True))
            if not inside and not padding:
                raise Undefined("a tile reaches beyond the array, and there is no padding value")
            result[index] = array[place] if inside else frame[padding[0]]
        frame[out] = result

    return step


@rule("linalg.unpack")
def _unpack(op: Op) -> Step:
    source, target, *_ = op.ins
    dims, outer, tiles = _tiling(op)
    (out,) = op.outs

    def step(frame: Frame) -> None:
        packed, result = frame[source], frame[target].copy()
        for index, place in _origins(packed, dims, outer, tiles(frame)):
            if all(k < n for k, n in zip(place, result.sizes, strict=True)):
                result[place] = packed[index]
        frame[out] = result

    return step

"""vector: arrays of fixed sizes, each in memory of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from tests.witness.combine import vector_kind
from tests.witness.floats import bits_of, from_bits, fused
from tests.witness.machine import INDEX, Frame, Op, Step, over_elements, rule
from tests.witness.maps import affine_map
from tests.witness.memory import shape_of
from tests.witness.values import Array, Float, Number, Value, is_shaped
from tests.witness.views import permuted, slice_of

signed = INDEX.signed


def block_at(array: Array, index: Sequence[int], sizes: Sequence[int]) -> Array:
    """The view of `sizes` in the last dimensions, from `index` on."""
    whole = [1] * (array.rank - len(sizes)) + list(sizes)
    view = slice_of(array, index, whole, [1] * array.rank)
    outer = array.rank - len(sizes)
    return Array(view.memory, view.offset, view.sizes[outer:], view.strides[outer:])


@rule("vector.load")
def _load(op: Op) -> Step:
    shape = shape_of(op.type)
    return op.pure(lambda array, *index: block_at(array, [signed(k) for k in index], shape).copy())


@rule("vector.store")
def _store(op: Op) -> Step:
    value, memory, *index = op.ins

    def step(frame: Frame) -> None:
        vector: Array = frame[value]
        place = [signed(frame[k]) for k in index]
        block_at(frame[memory], place, vector.sizes).fill(vector.values())

    return step


# -- transfers -------------------------------------------------------------------------------------


def _places(op: Op, sizes: Sequence[int]) -> Callable[..., list[list[int]]]:
    """For each element of a vector of `sizes`, row by row, its place in the array from `index`."""
    found = affine_map(op.text("permutation_map"))

    def places(index: Sequence[int]) -> list[list[int]]:
        result = []
        for offset in itertools.product(*map(range, sizes)):
            place = list(index)
            for k, position in enumerate(found.positions):
                if position is not None:  # else a broadcast: every element is the same
                    place[position] += offset[k]
            result.append(place)
        return result

    return places


def _inside(array: Array, place: Sequence[int]) -> bool:
    return all(0 <= k < n for k, n in zip(place, array.sizes, strict=True))


@rule("vector.transfer_read")
def _transfer_read(op: Op) -> Step:
    (source,), index, (padding,), mask = op.segments()
    shape, (out,) = shape_of(op.type), op.outs
    places = _places(op, shape)

    def step(frame: Frame) -> None:
        array: Array = frame[source]
        on = frame[mask[0]].values() if mask else itertools.repeat(1)
        found = places([signed(frame[k]) for k in index])
        frame[out] = Array.of(
            shape,
            [
                array[place] if flag and _inside(array, place) else frame[padding]
                for place, flag in zip(found, on, strict=False)
            ],
        )

    return step


@rule("vector.transfer_write")
def _transfer_write(op: Op) -> Step:
    (value,), (target,), index, mask = op.segments()
    outs, places = op.outs, _places(op, shape_of(op.operands[0].type))

    def step(frame: Frame) -> None:
        array: Array = frame[target].copy() if outs else frame[target]
        on = frame[mask[0]].values() if mask else itertools.repeat(1)
        found = places([signed(frame[k]) for k in index])
        for place, number, flag in zip(found, frame[value].values(), on, strict=False):
            if flag and _inside(array, place):
                array[place] = number
        for out in outs:
            frame[out] = array

    return step


@rule("vector.maskedload")
def _masked_load(op: Op) -> Step:
    def load(array: Array, *rest: Value) -> Array:
        *index, mask, otherwise = rest
        start = [signed(k) for k in index]
        return Array.of(
            mask.sizes,
            [
                array[[*start[:-1], start[-1] + k]] if on else number
                for k, (on, number) in enumerate(
                    zip(mask.values(), otherwise.values(), strict=True)
                )
            ],
        )

    return op.pure(load)


@rule("vector.maskedstore")
def _masked_store(op: Op) -> Step:
    memory, *index, mask, value = op.ins

    def step(frame: Frame) -> None:
        start = [signed(frame[k]) for k in index]
        pairs = zip(frame[mask].values(), frame[value].values(), strict=True)
        for k, (on, number) in enumerate(pairs):
            if on:
                frame[memory][[*start[:-1], start[-1] + k]] = number

    return step


# -- parts and shapes ------------------------------------------------------------------------------


@rule("vector.broadcast")
def _broadcast(op: Op) -> Step:
    shape = shape_of(op.type)

    def broadcast(value: Value) -> Array:
        if not isinstance(value, Array):
            return Array.of(shape, [value] * len(Array.of(shape).memory))
        sizes = (1,) * (len(shape) - value.rank) + value.sizes
        strides = (0,) * (len(shape) - value.rank) + value.strides
        steps = [0 if size == 1 else s for size, s in zip(sizes, strides, strict=True)]
        return Array(value.memory, value.offset, shape, tuple(steps)).copy()

    return op.pure(broadcast)


@rule("vector.extract")
def _extract(op: Op) -> Step:
    source, *dynamic = op.ins
    position, (out,) = op.mixed("static_position", dynamic), op.outs
    whole = is_shaped(op.type)

    def step(frame: Frame) -> None:
        array, place = frame[source], position(frame)
        frame[out] = _row(array, place).copy() if whole else array[place]

    return step


def _row(array: Array, place: Sequence[int]) -> Array:
    """The part behind the leading indices."""
    rest = array.sizes[len(place) :]
    return block_at(array, [*place, *(0 for _ in rest)], rest)


@rule("vector.insert")
def _insert(op: Op) -> Step:
    value, target, *dynamic = op.ins
    position, (out,) = op.mixed("static_position", dynamic), op.outs

    def step(frame: Frame) -> None:
        result: Array = frame[target].copy()
        part = frame[value]
        if isinstance(part, Array):
            _row(result, position(frame)).fill(part.values())
        else:
            result[position(frame)] = part
        frame[out] = result

    return step


@rule("vector.extract_strided_slice")
def _extract_slice(op: Op) -> Step:
    offsets, sizes = op.integers("offsets"), op.integers("sizes")

    def extract(array: Array) -> Array:
        inner = array.sizes[len(sizes) :]
        start = [*offsets, *(0 for _ in inner)]
        return slice_of(array, start, [*sizes, *inner], [1] * array.rank).copy()

    return op.pure(extract)


@rule("vector.insert_strided_slice")
def _insert_slice(op: Op) -> Step:
    offsets = op.integers("offsets")

    def insert(part: Array, target: Array) -> Array:
        result = target.copy()
        sizes = (1,) * (target.rank - part.rank) + part.sizes
        slice_of(result, offsets, sizes, [1] * target.rank).fill(part.values())
        return result

    return op.pure(insert)


@rule("vector.shape_cast")
def _shape_cast(op: Op) -> Step:
    shape = shape_of(op.type)
    return op.pure(lambda array: array.reshaped(shape))


@rule("vector.transpose")
def _transpose(op: Op) -> Step:
    permutation = op.integers("permutation")
    return op.pure(lambda array: permuted(array, permutation).copy())


@rule("vector.shuffle")
def _shuffle(op: Op) -> Step:
    mask = op.integers("mask")

    def shuffle(left: Array, right: Array) -> Array:
        rows = [_row(array, (k,)) for array in (left, right) for k in range(array.sizes[0])]
        values = [number for k in mask for number in rows[k].values()]
        return Array.of((len(mask), *left.sizes[1:]), values)

    return op.pure(shuffle)


@rule("vector.from_elements")
def _from_elements(op: Op) -> Step:
    shape = shape_of(op.type)
    return op.pure(lambda *values: Array.of(shape, values))


@rule("vector.to_elements")
def _to_elements(op: Op) -> Step:
    return op.several(lambda array: array.values())


@rule("vector.step")
def _step(op: Op) -> Step:
    shape = shape_of(op.type)
    return op.pure(lambda: Array.of(shape, range(shape[0])))


@rule("vector.create_mask", "vector.constant_mask")
def _mask(op: Op) -> Step:
    shape = shape_of(op.type)
    fixed = op.integers("mask_dim_sizes")

    def mask(*numbers: int) -> Array:
        limits = fixed or [signed(n) for n in numbers]
        result = Array.of(shape)
        result.fill(
            int(all(k < n for k, n in zip(index, limits, strict=True)))
            for index in result.indices()
        )
        return result

    return op.pure(mask)


@rule("vector.bitcast")
def _bitcast(op: Op) -> Step:
    """The elements' bits behind one another, the first in the lowest; cut anew."""
    source, target, shape = op.element(0), op.element(), shape_of(op.type)
    assert isinstance(source, Float) or hasattr(source, "width")
    have, want = getattr(source, "width"), getattr(target, "width")  # noqa: B009

    def bitcast(array: Array) -> Array:
        numbers: list[Number] = []
        for lane in itertools.product(*map(range, array.sizes[:-1])):
            row = _row(array, lane).values()
            bits = sum(bits_of(x, source) << have * k for k, x in enumerate(row))
            cut = range(0, len(row) * have, want)
            numbers += [from_bits(bits >> k & (1 << want) - 1, target) for k in cut]
        return Array.of(shape, numbers)

    return op.pure(bitcast)


# -- arithmetic ------------------------------------------------------------------------------------


@rule("vector.fma")
def _fma(op: Op) -> Step:
    kind = op.element()
    assert isinstance(kind, Float)
    return op.elementwise(lambda x, y, z: fused(x, y, z, kind))


@rule("vector.reduction")
def _reduction(op: Op) -> Step:
    combine = vector_kind(op.text("kind")).of(op.element())

    def reduce(vector: Array, *start: Number) -> Number:
        numbers = [*start, *vector.values()]
        total = numbers[0]
        for number in numbers[1:]:
            total = combine(total, number)
        return total

    return op.pure(reduce)


@rule("vector.multi_reduction")
def _multi_reduction(op: Op) -> Step:
    combine, dims = vector_kind(op.text("kind")).of(op.element()), op.integers("reduction_dims")

    def reduce(vector: Array, start: Value) -> Value:
        result = start.copy() if isinstance(start, Array) else Array.of((), [start])
        for index in vector.indices():
            place = [k for d, k in enumerate(index) if d not in dims]
            result[place] = combine(result[place], vector[index])
        return result if isinstance(start, Array) else result[()]

    return op.pure(reduce)


@rule("vector.outerproduct")
def _outer(op: Op) -> Step:
    combine = vector_kind(op.text("kind")).of(op.element())
    times = vector_kind("<mul>").of(op.element())

    def outer(left: Array, right: Value, *start: Array) -> Array:
        if not isinstance(right, Array):
            product = over_elements(times, [left, right])
        else:
            pairs = itertools.product(left.values(), right.values())
            product = Array.of((*left.sizes, *right.sizes), [times(x, y) for x, y in pairs])
        return over_elements(combine, [start[0], product]) if start else product

    return op.pure(outer)


@rule("vector.contract")
def _contract(op: Op) -> Step:
    texts = op.text("indexing_maps").strip("[]").split(", affine_map")
    maps = [affine_map(t if t.startswith("affine_map") else f"affine_map{t}") for t in texts]
    combine = vector_kind(op.text("kind")).of(op.element())
    times = vector_kind("<mul>").of(op.element())

    def contract(left: Array, right: Array, start: Value) -> Value:
        result = start.copy() if isinstance(start, Array) else Array.of((), [start])
        extents: dict[int, int] = {}
        for found, array in zip(maps, (left, right), strict=False):
            extents.update(
                {p: n for p, n in zip(found.positions, array.sizes, strict=True) if p is not None}
            )
        for index in itertools.product(*(range(extents[k]) for k in range(maps[0].inputs))):
            a, b, place = (found(index) for found in maps)
            result[place] = combine(result[place], times(left[a], right[b]))
        return result if isinstance(start, Array) else result[()]

    return op.pure(contract)


@rule("vector.gather")
def _gather(op: Op) -> Step:
    def gather(base: Array, *rest: Value) -> Array:
        *index, places, mask, otherwise = rest
        start = [signed(k) for k in index]
        triples = zip(places.values(), mask.values(), otherwise.values(), strict=True)
        width = op.integer(len(op.ins) - 3)
        return Array.of(
            mask.sizes,
            [
                base[[*start[:-1], start[-1] + width.signed(k)]] if on else number
                for k, on, number in triples
            ],
        )

    return op.pure(gather)

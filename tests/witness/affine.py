"""affine: loops, conditions, accesses and numbers by maps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from math import prod

from tests.witness.combine import atomic_kind
from tests.witness.machine import INDEX, Frame, Op, Step, rule
from tests.witness.maps import Map, affine_map, affine_set
from tests.witness.values import Array, Undefined, Value, element_of

signed = INDEX.signed


def _map(op: Op, name: str) -> Map:
    return affine_map(op.text(name))


def _evaluated(found: Map, slots: Sequence[int]) -> Callable[[Frame], list[int]]:
    """The map's results, of the operands in `slots`."""
    return lambda frame: found([signed(frame[slot]) for slot in slots])


@rule("affine.apply", "affine.min", "affine.max")
def _apply(op: Op) -> Step:
    evaluated = _evaluated(_map(op, "map"), op.ins)
    pick = {"affine.apply": sum, "affine.min": min, "affine.max": max}[op.name]
    (out,) = op.outs

    def step(frame: Frame) -> None:
        frame[out] = pick(evaluated(frame)) & INDEX.mask

    return step


@rule("affine.load", "affine.store", "affine.vector_load", "affine.vector_store", "affine.prefetch")
def _access(op: Op) -> Step:
    stores = op.name.endswith("store")
    value, memory = op.ins[0], op.ins[int(stores)]
    evaluated = _evaluated(_map(op, "map"), op.ins[1 + stores :])
    if "vector" in op.name:
        return _vector_access(op, stores, value, memory, evaluated)
    if stores:

        def store(frame: Frame) -> None:
            frame[memory][evaluated(frame)] = frame[value]

        return store
    if not op.outs:
        return lambda frame: None
    (out,) = op.outs

    def load(frame: Frame) -> None:
        frame[out] = frame[memory][evaluated(frame)]

    return load


def _vector_access(
    op: Op, stores: bool, value: int, memory: int, evaluated: Callable[[Frame], list[int]]
) -> Step:
    from tests.witness.vectors import block_at

    if stores:

        def store(frame: Frame) -> None:
            vector: Array = frame[value]
            block_at(frame[memory], evaluated(frame), vector.sizes).fill(vector.values())

        return store
    (out,) = op.outs
    sizes = tuple(op.type.shape)  # pyright: ignore[reportAttributeAccessIssue]

    def load(frame: Frame) -> None:
        frame[out] = block_at(frame[memory], evaluated(frame), sizes).copy()

    return load


@rule("affine.yield")
def _yield(op: Op) -> Step:
    return op.handed_on()


@rule("affine.for")
def _for(op: Op) -> Step:
    lower, upper, carried = op.segments()
    low = _evaluated(_map(op, "lowerBoundMap"), lower)
    high = _evaluated(_map(op, "upperBoundMap"), upper)
    step, body, outs = op.number("step"), op.region(), op.outs

    def run(frame: Frame) -> None:
        values: Sequence[Value] = [frame[k] for k in carried]
        for i in range(max(low(frame)), min(high(frame)), step):
            values = body(frame, i & INDEX.mask, *values)
        for out, value in zip(outs, values, strict=True):
            frame[out] = value

    return run


@rule("affine.parallel")
def _parallel(op: Op) -> Step:
    lower, upper = _map(op, "lowerBoundsMap"), _map(op, "upperBoundsMap")
    lows, highs = op.integers("lowerBoundsGroups"), op.integers("upperBoundsGroups")
    steps, body, outs = op.integers("steps"), op.region(), op.outs
    low = _evaluated(lower, op.ins[: lower.inputs])
    high = _evaluated(upper, op.ins[lower.inputs :])
    elements = [element_of(result.type) for result in op.op.results]
    kinds = [atomic_kind(k) for k in op.integers("reductions")]
    neutral = [kind.neutral(element) for kind, element in zip(kinds, elements, strict=True)]
    combine = [kind.of(element) for kind, element in zip(kinds, elements, strict=True)]

    def run(frame: Frame) -> None:
        ranges = [
            range(max(a), min(b), s)
            for a, b, s in zip(
                _grouped(low(frame), lows), _grouped(high(frame), highs), steps, strict=True
            )
        ]
        totals = list(neutral)
        for index in itertools.product(*ranges):
            found = body(frame, *(i & INDEX.mask for i in index))
            totals = [c(t, f) for c, t, f in zip(combine, totals, found, strict=True)]
        for out, total in zip(outs, totals, strict=True):
            frame[out] = total

    return run


def _grouped(values: Sequence[int], sizes: Sequence[int]) -> Iterator[Sequence[int]]:
    start = 0
    for size in sizes:
        yield values[start : start + size]
        start += size


@rule("affine.if")
def _if(op: Op) -> Step:
    holds, (yes, no), ins, outs = affine_set(op.text("condition")), op.regions, op.ins, op.outs

    def run(frame: Frame) -> None:
        chosen = yes if holds([signed(frame[k]) for k in ins]) else no
        values = () if chosen.empty else chosen(frame)
        for out, value in zip(outs, values, strict=True):
            frame[out] = value

    return run


@rule("affine.linearize_index")
def _linearize(op: Op) -> Step:
    indices, dynamic = op.segments()
    basis, (out,) = op.mixed("static_basis", dynamic), op.outs

    def step(frame: Frame) -> None:
        extents = basis(frame)
        extents = extents[len(extents) - len(indices) + 1 :]
        weights = [prod(extents[k:]) for k in range(len(indices))]
        values = [signed(frame[k]) for k in indices]
        total = sum(v * w for v, w in zip(values, weights, strict=True))
        frame[out] = total & INDEX.mask

    return step


@rule("affine.delinearize_index")
def _delinearize(op: Op) -> Step:
    index, *dynamic = op.ins
    basis, outs = op.mixed("static_basis", dynamic), op.outs

    def step(frame: Frame) -> None:
        extents, rest = basis(frame), signed(frame[index])
        extents = extents[len(extents) - len(outs) + 1 :]
        for out, extent in zip(reversed(outs[1:]), reversed(extents), strict=True):
            if extent <= 0:
                raise Undefined(f"a basis of {extent}")
            rest, part = divmod(rest, extent)
            frame[out] = part
        frame[outs[0]] = rest & INDEX.mask

    return step

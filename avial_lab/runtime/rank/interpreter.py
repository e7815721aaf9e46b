"""Recorded operations on small arrays, computed at once by NumPy on each rank's part.

Operations, and which box of every array a rank is to have -> which box of every value it needs for
that (`needs`); shards of the arrays -> shards of what they become (`interpreted`). What a rank
needs and others compute too it computes again: nothing is sent between two operations.

The bits are those of compiled code, which `core.array_functions` says of which functions. Where
only the values tell that NumPy's may be others, `Declined` is raised before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from avial_lab.core.array_functions import BINARY, REDUCTIONS, UNARY
from avial_lab.core.regions import Box
from avial_lab.runtime.rank.shards import Peers, Shard

Part = tuple[tuple[int, int, int], ...]
"""For each dimension of an array: offset, dimension of the view of it (-1: none), step."""


class Operation(NamedTuple):
    """One of the ptensor dialect's. operands: values, and for load, store and insert the memory.
    shape, dtype: of the result; of the memory for an insert. function: of a unary or binary one, or
    of a reduction. axes: that are reduced; of an index its only one. number: of a constant.
    """

    kind: str
    result: str
    operands: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: np.dtype
    function: str = ""
    part: Part = ()
    axes: tuple[int, ...] = ()
    number: complex = 0


_OF_MEMORY = ("load", "store", "insert")
"""Those whose last operand is a memory."""


class Declined(ArithmeticError):
    """Values for which NumPy and compiled code may differ."""


class Needs(NamedTuple):
    """Boxes of one rank. values: that it computes; memories: that it keeps while it does; given: of
    these what has to be there before.
    """

    values: Mapping[str, Box]
    memories: Mapping[str, Box]
    given: Mapping[str, Box]


# -- what a rank needs -----------------------------------------------------------------------------


def needs(operations: Sequence[Operation], wanted: Mapping[str, Box]) -> Needs:
    """For these boxes of arrays, at the end: backwards, each operation asks its operands."""
    shapes = shapes_of(operations)
    values: dict[str, Box] = {}
    given = {name: box for name, box in wanted.items() if not box.empty}
    memories = dict(given)
    for op in reversed(operations):
        if op.kind == "store":
            if (box := given.pop(op.operands[1], None)) is not None:
                _add(values, op.operands[0], box)
            continue
        if op.kind == "insert":
            box = given.get(op.operands[1])
            if box is not None:
                part = _placed_within(op.part, shapes[op.operands[0]], box)
                if part is not None:
                    _add(values, op.operands[0], part)
            continue
        box = values.get(op.result)
        if box is None:
            continue
        if op.kind == "load":
            _add(given, op.operands[0], box)
            _add(memories, op.operands[0], box)
            continue
        for operand, its in zip(op.operands, _asked(op, box, shapes), strict=True):
            _add(values, operand, its)
    return Needs(values, memories, given)


def shapes_of(operations: Sequence[Operation]) -> dict[str, tuple[int, ...]]:
    return {op.result: op.shape for op in operations if op.result}


def _add(boxes: dict[str, Box], name: str, box: Box) -> None:
    known = boxes.get(name)
    boxes[name] = box if known is None else known.hull(box)


def _asked(op: Operation, box: Box, shapes: Mapping[str, tuple[int, ...]]) -> list[Box]:
    """Of each operand, for that box of the result."""
    sources = [shapes[operand] for operand in op.operands]
    if op.kind == "view":
        return [looked_at(op.part, box)]
    if op.kind == "reshape":
        return [_rows_of(box, op.shape, sources[0])]
    if op.kind == "reduce":
        kept = iter(zip(*box, strict=True))
        ends = [(0, extent) if d in op.axes else next(kept) for d, extent in enumerate(sources[0])]
        return [Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))]
    if op.kind == "matmul":
        return _factors(box, op.shape, *sources)
    return [_aligned(box, op.shape, shape) for shape in sources]


def looked_at(part: Part, box: Box) -> Box:
    """The least box with all elements that a view looks at, for a box of it."""
    ends: list[tuple[int, int]] = []
    for offset, dim, step in part:
        if dim < 0:
            ends.append((offset, offset + 1))
            continue
        first, last = (offset + step * at for at in (box.start[dim], box.stop[dim] - 1))
        empty = box.start[dim] >= box.stop[dim]
        ends.append((first, first) if empty else (min(first, last), max(first, last) + 1))
    return Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))


def _placed_within(part: Part, shape: Sequence[int], box: Box) -> Box | None:
    """The elements of a value of that shape that an insert places into the box, if any."""
    start, stop = [0] * len(shape), list(shape)
    for (offset, dim, step), low, high in zip(part, *box, strict=True):
        if dim < 0:
            if not low <= offset < high:
                return None
            continue
        first, last = (low, high - 1) if step > 0 else (high - 1, low)
        start[dim] = max(start[dim], -((offset - first) // step))
        stop[dim] = min(stop[dim], (last - offset) // step + 1)
    found = Box(tuple(start), tuple(stop))
    return None if found.empty else found


def _rows_of(box: Box, shape: Sequence[int], source: Sequence[int]) -> Box:
    """The rows of the source that elements of a reshaped array lie in."""
    if not source:
        return Box((), ())
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    first = sum(at * stride for at, stride in zip(box.start, strides, strict=True))
    last = sum((at - 1) * stride for at, stride in zip(box.stop, strides, strict=True))
    below = prod(source[1:])
    rows = (first // below, last // below + 1)
    return Box((rows[0], *(0,) * (len(source) - 1)), (max(rows), *source[1:]))


def _factors(
    box: Box, shape: Sequence[int], left: Sequence[int], right: Sequence[int]
) -> list[Box]:
    """Of two matrices (stacks of them), for a box of their product."""
    rows, columns = len(left) > 1, len(right) > 1
    stack = len(shape) - rows - columns
    ends = list(zip(*box, strict=True))
    inner = (0, left[-1])
    row, column = ends[stack : stack + rows], ends[stack + rows :]

    def of(extents: Sequence[int], last: list[tuple[int, int]]) -> Box:
        among = Box(box.start[:stack], box.stop[:stack])
        front = _aligned(among, shape[:stack], extents)
        return Box((*front.start, *(a for a, _ in last)), (*front.stop, *(b for _, b in last)))

    return [of(left[:-2], [*row, inner]), of(right[:-2], [inner, *column])]


def _aligned(box: Box, shape: Sequence[int], source: Sequence[int]) -> Box:
    """Of an operand that is broadcast to that shape."""
    if tuple(source) == tuple(shape):
        return box
    lost = len(shape) - len(source)
    ends = [
        (0, 1)
        if extent == 1 and shape[lost + d] != 1
        else (box.start[lost + d], box.stop[lost + d])
        for d, extent in enumerate(source)
    ]
    return Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))


# -- what it computes ------------------------------------------------------------------------------


def interpreted(
    operands: Sequence[Shard],
    peers: Peers,
    *,
    operations: Sequence[Operation],
    each_needs: Sequence[Needs],
    given: Sequence[str],
    made: Sequence[tuple[str, tuple[int, ...], Sequence[Box]]],
) -> list[Shard]:
    """The operations, in order. given: the names of the operands' arrays; made: of the results,
    with shapes, and each rank's box.
    """
    mine = each_needs[peers.rank]
    memories: dict[str, Shard] = {}
    values: dict[str, Shard] = {}
    types = {op.operands[-1]: op.dtype for op in operations if op.kind in _OF_MEMORY}
    before = dict(zip(given, operands, strict=True))
    for name, box in mine.memories.items():
        shard = before.get(name)
        if shard is not None and shard.start == box.start and shard.part.shape == box.shape:
            memories[name] = shard
            continue
        kind = shard.part.dtype if shard is not None else types[name]
        part = np.zeros(box.shape, kind)
        if shard is not None and name in mine.given:
            its = mine.given[name]
            part[_within(its, box.start)] = shard.part
        memories[name] = Shard((), box.start, part)
    with np.errstate(all="ignore"):
        for op in operations:
            _interpret(op, mine, values, memories)
    results: list[Shard] = []
    for name, shape, boxes in made:
        box = boxes[peers.rank]
        if len(box.start) != len(shape):  # of an array without dimensions another rank has it
            results.append(Shard(shape, (), np.empty((0,), types[name])))
            continue
        if box.empty:
            results.append(Shard(shape, box.start, np.empty(box.shape, types[name])))
            continue
        held = memories[name]
        results.append(Shard(shape, box.start, held.part[_within(box, held.start)]))
    return results


def _interpret(
    op: Operation, mine: Needs, values: dict[str, Shard], memories: dict[str, Shard]
) -> None:
    if op.kind in ("store", "insert"):
        if op.operands[1] in memories and op.operands[0] in values:
            memories[op.operands[1]] = _written(op, values[op.operands[0]], memories)
        return
    box = mine.values.get(op.result)
    if box is None:
        return
    if op.kind == "load":
        held = memories[op.operands[0]]
        part = held.part[_within(box, held.start)]
    else:
        part = _computed(op, box, [values[operand] for operand in op.operands])
    values[op.result] = Shard(op.shape, box.start, part)


def _written(op: Operation, value: Shard, memories: Mapping[str, Shard]) -> Shard:
    """The memory with the value in it: another one, since values are parts of what was there."""
    held = memories[op.operands[1]]
    part = op.part or tuple((0, d, 1) for d in range(len(value.shape)))
    wanted = _placed_within(part, value.shape, held.box)
    wanted = None if wanted is None else wanted.intersection(value.box)
    if wanted is None:
        return held
    changed = held.part.copy()
    used = [dim for _, dim, _ in part if dim >= 0]
    source = value.part[_within(wanted, value.start)]
    source = source[(..., *(slice(None) if d in used else 0 for d in range(source.ndim)))]
    order = np.argsort(np.argsort(used)) if used else ()
    target = tuple(
        offset - low
        if dim < 0
        else _span(offset + step * wanted.start[dim] - low, wanted.shape[dim], step)
        for (offset, dim, step), low in zip(part, held.start, strict=True)
    )
    changed[target] = source.transpose(order) if len(order) > 1 else source
    return Shard(held.shape, held.start, changed)


def _within(box: Box, start: Sequence[int]) -> tuple[Any, ...]:
    """The box in a part that begins there: an array, where there is one element, too."""
    spans = (slice(low - first, high - first) for low, high, first in zip(*box, start, strict=True))
    return (..., *spans)


def _span(first: int, count: int, step: int) -> slice:
    stop = first + step * count
    return slice(first, stop if stop >= 0 else None, step) if count else slice(0, 0)


def _cut(shard: Shard, box: Box) -> np.ndarray:
    if shard.start == box.start and shard.part.shape == box.shape:
        return shard.part
    return shard.part[_within(box, shard.start)]


def _computed(op: Operation, box: Box, operands: Sequence[Shard]) -> np.ndarray:
    if op.kind == "number":
        return np.asarray(op.number, op.dtype)
    if op.kind == "index":
        (dim,) = op.axes
        along = np.arange(box.start[dim], box.stop[dim])
        line = along.reshape(tuple(-1 if d == dim else 1 for d in range(len(op.shape))))
        return np.broadcast_to(line, box.shape)
    if op.kind == "view":
        return _viewed(operands[0], op.part, box)
    if op.kind == "reshape":
        return _reshaped(operands[0], op.shape, box)
    if op.kind == "reduce":
        (asked,) = _asked(op, box, {op.operands[0]: operands[0].shape})
        return _reduced(op, _cut(operands[0], asked), box)
    if op.kind == "matmul":
        asked = _factors(box, op.shape, operands[0].shape, operands[1].shape)
        return _multiplied(
            op, box, *(_cut(each, its) for each, its in zip(operands, asked, strict=True))
        )
    span = box.shape
    parts = [
        each.part
        if not each.shape or (each.part.shape == span and each.start == box.start)
        else _cut(each, _aligned(box, op.shape, each.shape))
        for each in operands
    ]
    if op.kind == "cast":
        return _cast(parts[0], op.dtype)
    if op.kind == "where":
        return np.where(*parts)
    function = _SPECIAL.get(op.function)
    if function is None:
        names = UNARY if op.kind == "unary" else BINARY
        function = getattr(np, names[op.function])
    return np.asarray(function(*parts)).astype(op.dtype, copy=False)


def _viewed(shard: Shard, part: Part, box: Box) -> np.ndarray:
    used = [dim for _, dim, _ in part if dim >= 0]
    places = (
        offset - low
        if dim < 0
        else _span(offset + step * box.start[dim] - low, box.shape[dim], step)
        for (offset, dim, step), low in zip(part, shard.start, strict=True)
    )
    taken = shard.part[(..., *places)]
    if used != sorted(used):
        taken = taken.transpose(np.argsort(used))
    if taken.shape == box.shape:
        return taken
    spread = tuple(n if d in used else 1 for d, n in enumerate(box.shape))
    return np.broadcast_to(taken.reshape(spread), box.shape)


def _reshaped(shard: Shard, shape: Sequence[int], box: Box) -> np.ndarray:
    if shard.part.shape == shard.shape and box.shape == tuple(shape):
        return shard.part.reshape(box.shape)
    flat = shard.part.reshape(-1)
    first = shard.start[0] * prod(shard.shape[1:]) if shard.shape else 0
    places = np.asarray(-first)
    for d in range(len(shape)):
        along = np.arange(box.start[d], box.stop[d]) * prod(shape[d + 1 :])
        places = places[..., None] + along
    return flat[places]


# -- the bits of compiled code ---------------------------------------------------------------------


def _cast(x: np.ndarray, kind: np.dtype) -> np.ndarray:
    if x.dtype.kind == "f" and kind.kind in "iu":
        limits = np.iinfo(kind)
        if not ((x > float(limits.min) - 1) & (x < float(limits.max) + 1)).all():
            raise Declined("a number does not fit")
    return x.astype(kind)


def _extreme(ufunc: np.ufunc, sign: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """IEEE 754's maximum and minimum order zeros by their signs; NumPy's take any."""

    def extreme(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        found = ufunc(x, y)
        if x.dtype.kind != "f":
            return found
        zeros = (x == 0) & (y == 0)
        return np.where(zeros, sign * ((sign * x) + (sign * y)), found) if zeros.any() else found

    return extreme


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of complex numbers in four products, each rounded."""
    if x.dtype.kind != "c":
        return np.multiply(x, y)
    real = x.real * y.real - x.imag * y.imag
    imag = x.imag * y.real + x.real * y.imag
    if not (np.isfinite(real).all() and np.isfinite(imag).all()):
        raise Declined("a product is not finite")
    found = np.empty(real.shape, x.dtype)
    found.real, found.imag = real, imag
    return found


def _turned(x: np.ndarray) -> np.ndarray:
    found = np.empty(x.shape, x.dtype)
    found.real, found.imag = -x.imag, x.real
    return found


_SPECIAL: dict[str, Callable[..., np.ndarray]] = {
    "maximum": _extreme(np.maximum, 1),
    "minimum": _extreme(np.minimum, -1),
    "multiply": _product,
    "square": lambda x: _product(x, x),
    "real": np.real,
    "imag": np.imag,
    "times_i": _turned,
}


def _reduced(op: Operation, x: np.ndarray, box: Box) -> np.ndarray:
    """Floating-point numbers are added one by one, from 0 on."""
    kept = [d for d in range(x.ndim) if d not in op.axes]
    terms = prod(x.shape[d] for d in op.axes)
    rows = x.transpose((*op.axes, *kept)).reshape(terms, prod(x.shape[d] for d in kept))
    ufunc: np.ufunc = getattr(np, REDUCTIONS[op.function])
    if op.function in ("sum", "prod") and op.dtype.kind in "fc":
        total = np.full(rows.shape[1:], ufunc.identity, op.dtype)
        found = ufunc.accumulate(np.concatenate([total[None], rows]), axis=0)[-1]
    elif op.function in ("min", "max") and op.dtype.kind == "f":
        found = ufunc.reduce(rows, axis=0)
        negative = ((rows == 0) & np.signbit(rows)).any(axis=0)
        positive = ((rows == 0) & ~np.signbit(rows)).any(axis=0)
        if ((found == 0) & negative & positive).any():
            raise Declined("zeros of both signs")
    else:
        found = ufunc.reduce(rows, axis=0, dtype=op.dtype)
    return found.reshape(box.shape)


def _multiplied(op: Operation, box: Box, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The terms of every element one by one, each rounded and added: as no BLAS does it."""
    if op.dtype.kind not in "fc":
        return np.matmul(x, y)
    left = x if x.ndim > 1 else x[None]
    right = y if y.ndim > 1 else y[:, None]
    stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    total = np.zeros((*stack, left.shape[-2], right.shape[-1]), op.dtype)
    for k in range(left.shape[-1]):
        total = total + _product(left[..., :, k, None], right[..., k, None, :])
    return total.reshape(box.shape)

"""Operators that move elements: reshapes, slices, gathers; and those that make constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from avial_lab.compiler.frontends.onnx.elementwise import same_types
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import (
    F32,
    I64,
    NotCovered,
    Operand,
    axis_of,
    broadcast,
    constant,
    dtype_of,
)
from avial_lab.compiler.frontends.onnx.writer import MOST_ELEMENTS, Writer, wrapped


def _reshape(node: Node, w: Writer) -> Made:
    x, wanted = node.input(0), node.numbers("shape", 1)
    if wanted is None:
        raise NotCovered("it has no shape")
    keeps = not node.attribute("allowzero", 0)
    shape: list[int] = []
    for k, n in enumerate(wanted):
        if n == 0 and keeps:
            if k >= len(x.shape):
                raise NotCovered(f"its shape copies dimension {k}, which there is not")
            n = x.shape[k]
        shape.append(n)
    if shape.count(-1) > 1 or any(n < -1 for n in shape):
        raise NotCovered(f"{shape} is no shape")
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        if not rest or x.size % rest:
            raise NotCovered(f"{x.size} elements cannot be laid out as {shape}")
        shape[shape.index(-1)] = x.size // rest
    return w.reshape(x, tuple(shape))


def _flatten(node: Node, w: Writer) -> Made:
    x, axis = node.input(0), node.attribute("axis", 1)
    at = axis if axis == len(x.shape) else axis_of(axis, len(x.shape))
    return w.reshape(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])))


def _squeeze(node: Node, w: Writer) -> Made:
    x, axes = node.input(0), node.numbers("axes", 1)
    rank = len(x.shape)
    gone = (
        {d for d, n in enumerate(x.shape) if n == 1}
        if axes is None
        else {axis_of(axis, rank) for axis in axes}
    )
    if any(x.shape[d] != 1 for d in gone):
        raise NotCovered(f"it drops dimensions {sorted(gone)} of {x.shape}, which are not 1")
    return w.reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in gone))


def _unsqueeze(node: Node, w: Writer) -> Made:
    x, axes = node.input(0), node.numbers("axes", 1) or []
    rank = len(x.shape) + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise NotCovered(f"axes {axes} name a dimension twice")
    rest = iter(x.shape)
    return w.reshape(x, tuple(1 if d in new else next(rest) for d in range(rank)))


def _transpose(node: Node, w: Writer) -> Made:
    x = node.input(0)
    order = node.numbers("perm")
    order = list(reversed(range(len(x.shape)))) if order is None else order
    if sorted(order) != list(range(len(x.shape))):
        raise NotCovered(f"{order} is no order of {len(x.shape)} dimensions")
    return w.transpose(x, order)


def _expand(node: Node, w: Writer) -> Made:
    x = node.input(0)
    return w.expand(x, broadcast(x.shape, tuple(node.numbers("shape", 1) or [])))


def _tile(node: Node, w: Writer) -> Made:
    x, repeats = node.input(0), node.numbers("repeats", 1) or []
    if len(repeats) != len(x.shape) or any(n < 0 for n in repeats):
        raise NotCovered(f"{repeats} are no repeats of a tensor of rank {len(x.shape)}")
    between = tuple(n for r, d in zip(repeats, x.shape, strict=True) for n in (r, d))
    dims = range(1, 2 * len(x.shape), 2)
    found = w.elementwise([(x, dims)], x.dtype, lambda _, v: v, shape=between)
    return w.reshape(found, tuple(r * d for r, d in zip(repeats, x.shape, strict=True)))


def _concat(node: Node, w: Writer) -> Made:
    same_types(node)
    parts = [node.input(k) for k in range(len(node.inputs))]
    axis = axis_of(node.attribute("axis", 1 if node.version < 4 else 0), len(parts[0].shape))
    for part in parts:
        rest = [n for d, n in enumerate(part.shape) if d != axis]
        if rest != [n for d, n in enumerate(parts[0].shape) if d != axis]:
            raise NotCovered(f"{parts[0].shape} and {part.shape} do not join along axis {axis}")
    return w.concat(parts, axis)


def _split(node: Node, w: Writer) -> Made:
    x = node.input(0)
    axis = axis_of(node.attribute("axis", 0), len(x.shape))
    extent, count = x.shape[axis], len(node.outputs)
    sizes = node.numbers("split", 1)
    if sizes is None:
        count = node.attribute("num_outputs", count)
        if count < 1:
            raise NotCovered("it splits into nothing")
        each = -(-extent // count)
        sizes = [min(each, max(extent - k * each, 0)) for k in range(count)]
    if sum(sizes) != extent or min(sizes, default=0) < 0:
        raise NotCovered(f"parts of {sizes} are no {extent}")
    found: list[Operand] = []
    at = 0
    for size in sizes:
        starts = [at if d == axis else 0 for d in range(len(x.shape))]
        shape = tuple(size if d == axis else n for d, n in enumerate(x.shape))
        found.append(w.slice(x, starts, shape, [1] * len(x.shape)))
        at += size
    return found


def _slice(node: Node, w: Writer) -> Made:
    x = node.input(0)
    rank = len(x.shape)
    starts, ends = node.numbers("starts", 1) or [], node.numbers("ends", 2) or []
    axes = node.numbers("axes", 3)
    axes = list(range(len(starts))) if axes is None else [axis_of(a, rank) for a in axes]
    steps = node.numbers("steps", 4) or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise NotCovered("its starts, ends, axes and steps do not fit each other")
    chosen = {
        axis: range(*slice(start, end, step).indices(x.shape[axis]))
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }
    for axis, taken in chosen.items():
        if taken.step < 0 and len(taken):
            x = w.take(x, axis, constant(np.asarray(taken, np.int64)))
    forward = [
        chosen[d] if d in chosen and (chosen[d].step > 0 or not len(chosen[d])) else range(n)
        for d, n in enumerate(x.shape)
    ]
    return w.slice(
        x,
        [r.start for r in forward],
        tuple(len(r) for r in forward),
        [max(r.step, 1) for r in forward],
    )


def _pad(node: Node, w: Writer) -> Made:
    x, mode = node.input(0), node.attribute("mode", "constant")
    rank = len(x.shape)
    pads = node.numbers("pads" if "pads" in node.attributes else "paddings", 1) or []
    axes = node.numbers("axes", 3)
    axes = list(range(rank)) if axes is None else [axis_of(a, rank) for a in axes]
    if len(pads) != 2 * len(axes):
        raise NotCovered(f"{len(pads)} pads for {len(axes)} dimensions")
    before, after = [0] * rank, [0] * rank
    for k, axis in enumerate(axes):
        before[axis], after[axis] = pads[k], pads[k + len(axes)]
    if any(p + a + n < 0 for p, a, n in zip(before, after, x.shape, strict=True)):
        raise NotCovered("it cuts off more than there is")
    if mode != "constant":
        return _pad_by_indices(x, before, after, mode, w)
    lows = [max(-n, 0) for n in before]
    sizes = tuple(n + min(b, 0) + min(a, 0) for n, b, a in zip(x.shape, before, after, strict=True))
    x = w.slice(x, lows, sizes, [1] * rank)
    fill: Any = node.attribute("value", 0.0)
    if node.has(2):
        known = node.input(2).known
        fill = w.number(node.input(2)) if known is None else known.reshape(-1)[0]
    return w.pad(x, [max(n, 0) for n in before], [max(n, 0) for n in after], fill)


_MODES = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def _pad_by_indices(
    x: Operand, before: Sequence[int], after: Sequence[int], mode: str, w: Writer
) -> Operand:
    if mode not in _MODES:
        raise NotCovered(f"mode '{mode}' is not covered")
    for axis, (b, a) in enumerate(zip(before, after, strict=True)):
        if not b and not a:
            continue
        extent = x.shape[axis]
        taken = np.arange(max(-b, 0), extent - max(-a, 0))
        padded = np.pad(taken, (max(b, 0), max(a, 0)), mode=_MODES[mode])  # pyright: ignore
        x = w.take(x, axis, constant(padded.astype(np.int64)))
    return x


def _gather(node: Node, w: Writer) -> Made:
    return w.take(node.input(0), node.attribute("axis", 0), node.input(1))


def _gather_elements(node: Node, w: Writer) -> Made:
    x, indices = w.tensor(node.input(0)), node.input(1)
    axis = axis_of(node.attribute("axis", 0), len(x.shape))
    if len(indices.shape) != len(x.shape):
        raise NotCovered(f"indices {indices.shape} for a tensor {x.shape}")

    def body(b: Body, at: Scalar) -> Scalar:
        where = [b.index(d) for d in range(len(x.shape)) if d != axis]
        where.insert(axis, wrapped(b, at, x.shape[axis]))
        return b.extract(x, where)

    return w.elementwise([indices], x.dtype, body, shape=indices.shape)


def _gather_nd(node: Node, w: Writer) -> Made:
    x, indices, batch = node.input(0), node.input(1), node.attribute("batch_dims", 0)
    if not indices.shape:
        raise NotCovered("its indices have no dimension")
    depth = indices.shape[-1]
    rest = x.shape[batch + depth :]
    if batch + depth > len(x.shape) or x.shape[:batch] != indices.shape[:batch]:
        raise NotCovered(f"indices {indices.shape} do not fit a tensor {x.shape}")
    lead = indices.shape[:-1]
    shape = (*lead, *rest)
    parts = [
        w.reshape(
            w.slice(indices, [*([0] * len(lead)), k], (*lead, 1), [1] * len(indices.shape)),
            lead,
        )
        for k in range(depth)
    ]
    source = w.tensor(x)

    def body(b: Body, *at: Scalar) -> Scalar:
        where = [b.index(d) for d in range(batch)]
        where += [wrapped(b, each, x.shape[batch + k]) for k, each in enumerate(at)]
        where += [b.index(d) for d in range(len(lead), len(shape))]
        return b.extract(source, where)

    return w.elementwise([(p, range(len(lead))) for p in parts], x.dtype, body, shape=shape)


def _one_hot(node: Node, w: Writer) -> Made:
    indices, values = node.input(0), w.tensor(node.input(2))
    depth = int(node.value(1).reshape(-1)[0])
    rank = len(indices.shape) + 1
    axis = axis_of(node.attribute("axis", -1), rank)
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])

    def body(b: Body, at: Scalar) -> Scalar:
        whole = b.cast(at, I64)
        low = b.compare("lt", whole, b.number(0, I64))
        whole = b.select(low, b.add(whole, b.number(depth, I64)), whole)
        on = b.compare("eq", whole, b.of_index(b.index(axis), I64))
        off_on = [b.extract(values, [b.index_number(k)]) for k in (0, 1)]
        return b.select(on, off_on[1], off_on[0])

    dims = [d for d in range(rank) if d != axis]
    return w.elementwise([(indices, dims)], values.dtype, body, shape=shape)


def _trilu(node: Node, w: Writer) -> Made:
    x, upper = node.input(0), bool(node.attribute("upper", 1))
    rank = len(x.shape)
    if rank < 2:
        raise NotCovered("it takes matrices")
    shift = [(node.input(1), ())] if node.has(1) and node.input(1).size == 1 else []
    shift = [(w.reshape(value, ()), dims) for value, dims in shift]

    def body(b: Body, value: Scalar, *k: Scalar) -> Scalar:
        row, column = (b.of_index(b.index(d), I64) for d in (rank - 2, rank - 1))
        if k:
            row = b.add(row, b.cast(k[0], I64))
        kept = b.compare("ge" if upper else "le", column, row)
        return b.select(kept, value, b.like(0, value))

    return w.elementwise([(x, range(rank)), *shift], x.dtype, body, shape=x.shape)


# Constants ----------------------------------------------------------------------------------------


def _shape(node: Node, w: Writer) -> Made:
    shape = node.input(0).shape
    first, end = node.attribute("start", 0), node.attribute("end", len(shape))
    return constant(np.asarray(shape[slice(first, end)], np.int64))


def _size(node: Node, w: Writer) -> Made:
    return constant(np.asarray(node.input(0).size, np.int64))


def _constant(node: Node, w: Writer) -> Made:
    kinds = {"value_int": I64, "value_ints": I64, "value_float": F32, "value_floats": F32}
    for name, value in node.attributes.items():
        if name == "value" and isinstance(value, np.ndarray):
            return Operand(value.shape, value.dtype, known=value, called=node.outputs[0])
        if name in kinds:
            return constant(value, kinds[name])
    raise NotCovered("it is neither a tensor nor a number")


def _constant_of_shape(node: Node, w: Writer) -> Made:
    shape = tuple(node.numbers("", 0) or [])
    value = node.attributes.get("value", np.zeros(1, np.float32))
    if any(n < 0 for n in shape) or math.prod(shape) > MOST_ELEMENTS or value.size != 1:
        raise NotCovered(f"{shape} is no shape")
    known = np.broadcast_to(value.reshape(()), shape)
    return Operand(shape, value.dtype, known=known, called=node.outputs[0])


MOST_NUMBERS = 1 << 26
"""Of a range, which is a constant."""


def _range(node: Node, w: Writer) -> Made:
    first, end, step = (node.value(k).reshape(()) for k in range(3))
    if not step:
        raise NotCovered("its step is 0")
    count = max(math.ceil((float(end) - float(first)) / float(step)), 0)
    if count > MOST_NUMBERS:
        raise NotCovered(f"a range of {count:,} numbers")
    return constant((first + np.arange(count) * step).astype(first.dtype))


def _eye_like(node: Node, w: Writer) -> Made:
    x, k = node.input(0), node.attribute("k", 0)
    dtype = dtype_of(node.attribute("dtype", 0)) if "dtype" in node.attributes else x.dtype
    if len(x.shape) != 2:
        raise NotCovered("it takes a matrix")
    return constant(np.eye(*x.shape, k=k).astype(dtype))


def _blocks(node: Node) -> tuple[Operand, int]:
    x, size = node.input(0), node.attribute("blocksize", 0)
    if len(x.shape) != 4 or size < 1:
        raise NotCovered(f"blocks of {size} in a tensor {x.shape}")
    return x, size


def _depth_to_space(node: Node, w: Writer) -> Made:
    x, size = _blocks(node)
    n, c, rows, columns = x.shape
    if c % (size * size):
        raise NotCovered(f"{c} channels are no blocks of {size} x {size}")
    maps, mode = c // (size * size), node.attribute("mode", "DCR")
    if mode == "DCR":
        parts = w.reshape(x, (n, size, size, maps, rows, columns))
        placed = w.transpose(parts, [0, 3, 4, 1, 5, 2])
    elif mode == "CRD":
        parts = w.reshape(x, (n, maps, size, size, rows, columns))
        placed = w.transpose(parts, [0, 1, 4, 2, 5, 3])
    else:
        raise NotCovered(f"mode '{mode}' is none that ONNX knows")
    return w.reshape(placed, (n, maps, rows * size, columns * size))


def _space_to_depth(node: Node, w: Writer) -> Made:
    x, size = _blocks(node)
    n, c, rows, columns = x.shape
    if rows % size or columns % size:
        raise NotCovered(f"{rows} x {columns} is no multiple of blocks of {size}")
    parts = w.reshape(x, (n, c, rows // size, size, columns // size, size))
    orders = {"DCR": [0, 3, 5, 1, 2, 4], "CRD": [0, 1, 3, 5, 2, 4]}
    mode = node.attribute("mode", "DCR")
    if mode not in orders:
        raise NotCovered(f"mode '{mode}' is none that ONNX knows")
    placed = w.transpose(parts, orders[mode])
    return w.reshape(placed, (n, c * size * size, rows // size, columns // size))


SHAPES: dict[str, Rule] = {
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _unsqueeze,
}

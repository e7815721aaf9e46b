"""Windows that slide over images: where they begin, what is padded; pooling.

Attributes of a node -> Windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.reductions import largest, lowest, mean
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import (
    F32,
    I64,
    NotCovered,
    Operand,
    Shape,
    constant,
    is_float,
    wide,
)
from avial_lab.compiler.frontends.onnx.writer import Writer


@dataclass(frozen=True)
class Windows:
    """`before`, `after`: the padding; more than was asked for after it, where windows may leave the
    image (`ceil_mode`): `beyond`.
    """

    inputs: Shape
    kernel: Shape
    strides: Shape
    dilations: Shape
    outputs: Shape
    before: Shape
    asked_after: Shape

    @property
    def after(self) -> Shape:
        """What the last window reaches."""
        return tuple(
            max((o - 1) * s + (k - 1) * d + 1 - b - n, 0)
            for o, s, k, d, b, n in zip(
                self.outputs, self.strides, self.kernel, self.dilations, self.before, self.inputs,
                strict=True,
            )
        )  # fmt: skip

    def subscripts(self, output: int, window: int) -> list[str]:
        """Of the padded image, where loops over outputs and windows begin at these numbers."""
        return [
            f"d{output + k} * {s} + d{window + k} * {d}"
            for k, (s, d) in enumerate(zip(self.strides, self.dilations, strict=True))
        ]

    def counts(self, *, padding: bool) -> np.ndarray:
        """How many elements each window has, of the image, or with its padding."""
        found = np.ones((), np.int64)
        for k, n in enumerate(self.inputs):
            at = np.arange(self.outputs[k])[:, None] * self.strides[k]
            at = at + np.arange(self.kernel[k]) * self.dilations[k] - self.before[k]
            low, high = (-self.before[k], n + self.asked_after[k]) if padding else (0, n)
            inside = ((at >= low) & (at < high)).sum(1)
            found = found[..., None] * inside
        return found


def windows_of(node: Node, inputs: Shape, kernel: Shape) -> Windows:
    rank = len(inputs)
    asked = tuple(node.numbers("kernel_shape") or kernel)
    strides = tuple(node.numbers("strides") or [1] * rank)
    dilations = tuple(node.numbers("dilations") or [1] * rank)
    pads = node.numbers("pads") or [0] * (2 * rank)
    if asked != kernel or not len(kernel) == len(strides) == len(dilations) == rank:
        raise NotCovered(f"kernel {asked}, strides {strides} and dilations {dilations} do not fit")
    if len(pads) != 2 * rank or min((*strides, *dilations, *kernel), default=0) < 1:
        raise NotCovered("its pads, strides or dilations are no such numbers")
    if min(pads) < 0:
        raise NotCovered("its pads are negative")
    how, ceil = node.attribute("auto_pad", "NOTSET"), bool(node.attribute("ceil_mode", 0))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    before, after, outputs = [*pads[:rank]], [*pads[rank:]], [0] * rank
    for k, n in enumerate(inputs):
        if how in ("SAME_UPPER", "SAME_LOWER"):
            outputs[k] = -(-n // strides[k])
            total = max((outputs[k] - 1) * strides[k] + spans[k] - n, 0)
            less, more = total // 2, total - total // 2
            before[k], after[k] = (less, more) if how == "SAME_UPPER" else (more, less)
            continue
        if how == "VALID":
            before[k] = after[k] = 0
        elif how != "NOTSET":
            raise NotCovered(f"auto_pad '{how}' is none that ONNX knows")
        room = n + before[k] + after[k] - spans[k]
        if room < 0:
            raise NotCovered(f"a window of {spans[k]} does not fit into {n} and its padding")
        outputs[k] = (-(-room // strides[k]) if ceil else room // strides[k]) + 1
        if ceil and (outputs[k] - 1) * strides[k] >= n + before[k]:
            outputs[k] -= 1  # a window that begins in the padding after it is none
    return Windows(inputs, kernel, strides, dilations, tuple(outputs), tuple(before), tuple(after))


def _pooling(node: Node) -> tuple[Operand, Windows]:
    x = node.input(0)
    kernel = node.numbers("kernel_shape")
    if kernel is None or len(kernel) != len(x.shape) - 2:
        raise NotCovered(f"a kernel {kernel} for {x.shape}")
    return x, windows_of(node, x.shape[2:], tuple(kernel))


def _in_windows(
    w: Writer,
    x: Operand,
    found: Windows,
    begun: Operand,
    body: object,
    more: Sequence[tuple[Operand, list[str]]] = (),
) -> Operand:
    """A reduction over windows of an image that is padded. Extents of windows are those of an
    operand that nobody reads.
    """
    rank = len(found.kernel)
    first = 2 + rank
    size = w.empty(found.kernel, F32)

    def inside(b: Body, value: Scalar, _size: Scalar, *rest: Scalar) -> Scalar:
        return body(b, value, *rest)  # pyright: ignore

    return w.loops(
        (*x.shape[:2], *found.outputs, *found.kernel),
        [
            (x, ["d0", "d1", *found.subscripts(2, first)]),
            (size, [f"d{first + k}" for k in range(rank)]),
            *more,
        ],
        range(first),
        begun.dtype,
        inside,
        begun=begun,
    )


def _max_pool(node: Node, w: Writer) -> Made:
    x, found = _pooling(node)
    low = lowest(x.dtype)
    padded = w.pad(x, [0, 0, *found.before], [0, 0, *found.after], low)
    shape = (*x.shape[:2], *found.outputs)
    top = _in_windows(
        w, padded, found, w.filled(shape, low, x.dtype), lambda b, v, t: b.maximum(v, t)
    )
    if not node.wants(1):
        return top
    return [top, _positions(node, w, x, padded, top, found)]


def _positions(
    node: Node, w: Writer, x: Operand, padded: Operand, top: Operand, found: Windows
) -> Operand:
    """Where in the whole tensor the first largest element of each window is."""
    rank = len(found.kernel)
    spatial = list(range(rank))
    if node.attribute("storage_order", 0):
        spatial.reverse()
    strides = [0] * rank
    step = 1
    for k in reversed(spatial):
        strides[k] = step
        step *= found.inputs[k]
    plane = math.prod(found.inputs)

    def body(b: Body, value: Scalar, best: Scalar, total: Scalar) -> Scalar:
        def at(loop: int) -> Scalar:
            return b.of_index(b.index(loop), I64)

        def times(a: Scalar, by: int) -> Scalar:
            return b.mul(a, b.number(by, I64))

        index = times(b.add(times(at(0), x.shape[1]), at(1)), plane)
        inside = b.number(True, np.dtype("bool"))
        for k in range(rank):
            where = b.add(
                times(at(2 + k), found.strides[k]), times(at(2 + rank + k), found.dilations[k])
            )
            where = b.sub(where, b.number(found.before[k], I64))
            inside = b.both(inside, b.compare("ge", where, b.number(0, I64)))
            inside = b.both(inside, b.compare("lt", where, b.number(found.inputs[k], I64)))
            index = b.add(index, times(where, strides[k]))
        here = b.both(inside, b.compare("eq", value, best))
        return b.select(here, b.minimum(index, total), total)

    begun = w.filled(top.shape, np.iinfo(np.int64).max, I64)
    dims = [f"d{d}" for d in range(len(top.shape))]
    return _in_windows(w, padded, found, begun, body, [(top, dims)])


def _average_pool(node: Node, w: Writer) -> Made:
    x, found = _pooling(node)
    if not is_float(x.dtype):
        raise NotCovered(f"it takes floating-point numbers, not {x.dtype}")
    padded = w.pad(x, [0, 0, *found.before], [0, 0, *found.after], 0)
    dtype = wide(x.dtype)
    counts = found.counts(padding=bool(node.attribute("count_include_pad", 0)))
    shape = (*x.shape[:2], *found.outputs)
    total = _in_windows(
        w, padded, found, w.filled(shape, 0, dtype), lambda b, v, t: b.add(t, b.cast(v, dtype))
    )
    divisors = constant(np.maximum(counts, 1).astype(dtype))
    return w.elementwise(
        [(total, range(len(shape))), (divisors, range(2, len(shape)))],
        x.dtype,
        lambda b, v, n: b.cast(b.div(v, n), x.dtype),
        shape=shape,
    )


def _global_average(node: Node, w: Writer) -> Made:
    x = node.input(0)
    return mean(w, x, list(range(2, len(x.shape))), keep=True)


def _global_max(node: Node, w: Writer) -> Made:
    x = node.input(0)
    return largest(w, x, list(range(2, len(x.shape))), keep=True)


def _lrn(node: Node, w: Writer) -> Made:
    """Divided by a power of the sum of squares of the channels around it."""
    x, size = node.input(0), node.attribute("size", 1)
    alpha, beta = node.attribute("alpha", 1e-4), node.attribute("beta", 0.75)
    bias = node.attribute("bias", 1.0)
    rank, dtype = len(x.shape), wide(x.dtype)
    if rank < 2 or size < 1:
        raise NotCovered(f"{size} channels of {x.shape}")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    zeros = [0] * (rank - 2)
    padded = w.pad(x, [0, before, *zeros], [0, after, *zeros], 0)
    window = w.empty((size,), F32)
    dims = [f"d{d}" for d in range(rank)]
    total = w.loops(
        (*x.shape, size),
        [(padded, [dims[0], f"d1 + d{rank}", *dims[2:]]), (window, [f"d{rank}"])],
        range(rank),
        dtype,
        lambda b, v, _, t: b.add(t, b.mul(b.cast(v, dtype), b.cast(v, dtype))),
        begun=w.filled(x.shape, 0, dtype),
    )

    def body(b: Body, v: Scalar, s: Scalar) -> Scalar:
        base = b.add(b.like(bias, s), b.mul(b.like(alpha / size, s), s))
        return b.cast(b.div(b.cast(v, dtype), b.math("powf", base, b.like(beta, s))), x.dtype)

    return w.elementwise([x, total], x.dtype, body)


WINDOWS: dict[str, Rule] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average,
    "GlobalMaxPool": _global_max,
    "LRN": _lrn,
    "MaxPool": _max_pool,
}

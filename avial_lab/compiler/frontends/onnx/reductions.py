"""Operators that make one number of many: sums, extremes, positions, sums so far."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from avial_lab.compiler.frontends.onnx.elementwise import check_float
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import (
    I64,
    Dtype,
    Number,
    Operand,
    axis_of,
    is_float,
)
from avial_lab.compiler.frontends.onnx.writer import Writer

Each = Callable[[Body, Scalar], Scalar]


def lowest(dtype: Dtype) -> Number:
    if dtype.kind == "b":
        return False
    return -math.inf if is_float(dtype) else np.iinfo(dtype).min


def highest(dtype: Dtype) -> Number:
    if dtype.kind == "b":
        return True
    return math.inf if is_float(dtype) else np.iinfo(dtype).max


def largest(w: Writer, x: Operand, axes: list[int], *, keep: bool = False) -> Operand:
    return w.reduce(x, axes, lowest(x.dtype), lambda b, total, v: b.maximum(v, total), keep=keep)


def _axes(node: Node) -> list[int] | None:
    """The dimensions to reduce; None where nothing is to be done."""
    rank = len(node.input(0).shape)
    axes = node.numbers("axes", 1)
    if not axes:
        return None if node.attribute("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({axis_of(axis, rank) for axis in axes})


def _reduction(reduce: Callable[[Writer, Operand, list[int], bool], Operand]) -> Rule:
    def rule(node: Node, w: Writer) -> Made:
        x, axes = node.input(0), _axes(node)
        return reduce(w, x, [] if axes is None else axes, bool(node.attribute("keepdims", 1)))

    return rule


def _sum(each: Each | None = None) -> Rule:
    return _reduction(lambda w, x, axes, keep: w.total(x, axes, keep=keep, each=each))


def mean(w: Writer, x: Operand, axes: list[int], *, keep: bool = False) -> Operand:
    count = math.prod(x.shape[d] for d in axes)
    found = w.total(x, axes, keep=keep)
    return w.elementwise([found], x.dtype, lambda b, v: b.div(v, b.like(count, v)))


def _square(b: Body, x: Scalar) -> Scalar:
    return b.mul(x, x)


def _after(rule: Rule, name: str) -> Rule:
    def whole(node: Node, w: Writer) -> Made:
        check_float(node.input(0))
        found = rule(node, w)
        assert isinstance(found, Operand)
        return w.elementwise([found], found.dtype, lambda b, x: b.math(name, x))

    return whole


def _product(w: Writer, x: Operand, axes: list[int], keep: bool) -> Operand:
    return w.reduce(x, axes, 1, lambda b, total, v: b.mul(total, v), keep=keep)


def _smallest(w: Writer, x: Operand, axes: list[int], keep: bool) -> Operand:
    return w.reduce(x, axes, highest(x.dtype), lambda b, total, v: b.minimum(v, total), keep=keep)


def log_sum_exp(w: Writer, x: Operand, axes: list[int]) -> Operand:
    """max + log(sum(exp(x - max))): nothing overflows."""
    top = largest(w, x, axes, keep=True)
    shifted = w.elementwise([x, top], x.dtype, lambda b, v, t: b.math("exp", b.sub(v, t)))
    total = w.total(shifted, axes, keep=True)
    return w.elementwise([total, top], x.dtype, lambda b, s, t: b.add(b.math("log", s), t))


def _log_sum_exp(w: Writer, x: Operand, axes: list[int], keep: bool) -> Operand:
    check_float(x)
    found = log_sum_exp(w, x, axes)
    rest = tuple(n for d, n in enumerate(x.shape) if d not in axes)
    return found if keep else w.reshape(found, rest)


def _extreme_position(extreme: Callable[[Writer, Operand, list[int], bool], Operand]) -> Rule:
    """The first element that is the extreme one, or the last."""

    def rule(node: Node, w: Writer) -> Made:
        x = node.input(0)
        axis = axis_of(node.attribute("axis", 0), len(x.shape))
        last = bool(node.attribute("select_last_index", 0))
        top = extreme(w, x, [axis], True)
        extent = x.shape[axis]
        out = [d for d in range(len(x.shape)) if d != axis]
        begun = w.filled(tuple(x.shape[d] for d in out), -1 if last else extent, I64)

        def body(b: Body, v: Scalar, t: Scalar, total: Scalar) -> Scalar:
            here = b.compare("eq", v, t)
            if is_float(x.dtype):
                here = b.either(here, b.compare("ne", v, v))
            at = b.of_index(b.index(axis), I64)
            choice = b.maximum if last else b.minimum
            return b.select(here, choice(at, total), total)

        dims = [f"d{d}" for d in range(len(x.shape))]
        flat = w.reshape(top, tuple(x.shape[d] for d in out))
        found = w.loops(
            x.shape, [(x, dims), (flat, [f"d{d}" for d in out])], out, I64, body, begun=begun
        )
        kept = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
        return w.reshape(found, kept) if node.attribute("keepdims", 1) else found

    return rule


def _cumulative(node: Node, w: Writer) -> Made:
    """Element i is the sum of those up to i: one loop more than there would have to be."""
    x = node.input(0)
    axis = axis_of(int(node.value(1).reshape(-1)[0]), len(x.shape))
    backward, exclusive = node.attribute("reverse", 0), node.attribute("exclusive", 0)
    how = {(0, 0): "le", (0, 1): "lt", (1, 0): "ge", (1, 1): "gt"}[
        int(bool(backward)), int(bool(exclusive))
    ]
    rank = len(x.shape)
    dims = [f"d{rank if d == axis else d}" for d in range(rank)]

    def body(b: Body, v: Scalar, total: Scalar) -> Scalar:
        term, here = (b.of_index(b.index(d), I64) for d in (rank, axis))
        taken = b.select(b.compare(how, term, here), v, b.like(0, v))
        return b.add(total, taken)

    extents = (*x.shape, x.shape[axis])
    begun = w.filled(x.shape, 0, x.dtype)
    # What is no subscript of an input needs an extent from somewhere.
    return w.loops(extents, [(x, dims)], range(rank), x.dtype, body, begun=begun)


REDUCTIONS: dict[str, Rule] = {
    "ArgMax": _extreme_position(lambda w, x, axes, keep: largest(w, x, axes, keep=keep)),
    "ArgMin": _extreme_position(_smallest),
    "CumSum": _cumulative,
    "ReduceL1": _sum(Body.absolute),
    "ReduceL2": _after(_sum(_square), "sqrt"),
    "ReduceLogSum": _after(_sum(), "log"),
    "ReduceLogSumExp": _reduction(_log_sum_exp),
    "ReduceMax": _reduction(lambda w, x, axes, keep: largest(w, x, axes, keep=keep)),
    "ReduceMean": _reduction(lambda w, x, axes, keep: mean(w, x, axes, keep=keep)),
    "ReduceMin": _reduction(_smallest),
    "ReduceProd": _reduction(_product),
    "ReduceSum": _sum(),
    "ReduceSumSquare": _sum(_square),
}

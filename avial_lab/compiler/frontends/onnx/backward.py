"""Operators of training graphs as ONNX Runtime writes them (domain com.microsoft): gradients of
operators, optimizers, and what stands between. Also what names mean that no node of them makes.

Sources: ONNX Runtime, orttraining/core/graph/training_op_defs.cc and gradient_builder.cc.
"""

from __future__ import annotations

import math
import re

import numpy as np

from avial_lab.compiler.frontends.onnx.contractions import matmul, scaled
from avial_lab.compiler.frontends.onnx.elementwise import check_float, same_types
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.normalisation import log_softmax
from avial_lab.compiler.frontends.onnx.reductions import mean
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import (
    BOOL,
    F32,
    I64,
    NotCovered,
    Operand,
    Shape,
    axis_of,
    broadcast,
    constant,
)
from avial_lab.compiler.frontends.onnx.writer import Writer, wrapped

DOMAIN = "com.microsoft"

OPTIMIZERS = ("SGDOptimizer",)
"""What these make is wanted, whoever reads it: in ONNX Runtime it takes the weight's place."""

_SHAPE_OF = re.compile(r"(?:.*/)?Shape_(.+)")


def implied(name: str) -> Operand | str | None:
    """What a name stands for that no node makes and no list declares: a constant, or (as a text)
    the value whose shape it is; None where it means nothing.

    `loss_grad`: the derivative of the loss by itself; `ZeroConstant`; `Gemm_Grad/Shape_B1`.
    """
    if name == "ZeroConstant":
        return constant(0, F32)
    if name.endswith("_grad") and "/" not in name:
        return constant(1, F32)
    match = _SHAPE_OF.fullmatch(name)
    return match[1] if match is not None else None


# Elementwise --------------------------------------------------------------------------------------


def _relu_grad(node: Node, w: Writer) -> Made:
    """Of Y, which is positive where X is."""

    def body(b: Body, dy: Scalar, y: Scalar) -> Scalar:
        return b.select(b.compare("gt", y, b.like(0, y)), dy, b.like(0, dy))

    return w.elementwise([node.input(0), node.input(1)], same_types(node), body)


_A, _B = math.sqrt(2 / math.pi), 0.044715 * math.sqrt(2 / math.pi)


def _tanh_of(b: Body, x: Scalar) -> Scalar:
    inner = b.add(b.mul(b.like(_B, x), b.mul(x, b.mul(x, x))), b.mul(b.like(_A, x), x))
    return b.math("tanh", inner)


def _fast_gelu(node: Node, w: Writer) -> Made:
    """x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), of x with a bias."""
    check_float(node.input(0))

    def body(b: Body, x: Scalar, *bias: Scalar) -> Scalar:
        x = b.add(x, bias[0]) if bias else x
        return b.mul(b.mul(b.like(0.5, x), x), b.add(b.like(1, x), _tanh_of(b, x)))

    return w.elementwise([v for v in node.inputs if v is not None], same_types(node), body)


def _fast_gelu_grad(node: Node, w: Writer) -> Made:
    check_float(node.input(0))

    def body(b: Body, dy: Scalar, x: Scalar, *bias: Scalar) -> Scalar:
        x = b.add(x, bias[0]) if bias else x
        t, one = _tanh_of(b, x), b.like(1, x)
        slope = b.add(b.like(_A, x), b.mul(b.like(3 * _B, x), b.mul(x, x)))
        there = b.mul(b.mul(x, b.sub(one, b.mul(t, t))), slope)
        return b.mul(dy, b.mul(b.like(0.5, x), b.add(b.add(one, t), there)))

    return w.elementwise([v for v in node.inputs if v is not None], same_types(node), body)


def _accumulator(node: Node, w: Writer) -> Made:
    """What the buffer then holds, in place of the flag that it is there: the gradient, added to
    what was there unless that is to be overwritten.
    """
    buffer, gradient = node.input(0), node.input(1)
    if not node.has(2):
        return w.elementwise([buffer, gradient], buffer.dtype, Body.add)
    flag = node.input(2)
    if flag.dtype != BOOL or flag.size != 1:
        raise NotCovered(f"whether to overwrite is {flag.shape} of {flag.dtype}, not one bool")

    def body(b: Body, old: Scalar, new: Scalar, overwrites: Scalar) -> Scalar:
        return b.select(overwrites, new, b.add(old, new))

    return w.elementwise([buffer, gradient, w.reshape(flag, ())], buffer.dtype, body)


def _sgd(node: Node, w: Writer) -> Made:
    rate, weight, gradient = (node.input(k) for k in range(3))
    if rate.size != 1:
        raise NotCovered(f"a learning rate {rate.shape}")

    def body(b: Body, r: Scalar, x: Scalar, g: Scalar) -> Scalar:
        return b.sub(x, b.mul(b.cast(r, weight.dtype), g))

    new = w.elementwise([w.reshape(rate, ()), weight, gradient], weight.dtype, body)
    return [new, None, None]


# Losses -------------------------------------------------------------------------------------------


def _rows(logits: Operand, reduction: str) -> float:
    """What sums over the batch are divided by."""
    if reduction not in ("mean", "sum"):
        raise NotCovered(f"reduction '{reduction}' of a gradient")
    return float(math.prod(logits.shape) / logits.shape[-1]) if reduction == "mean" else 1.0


def _cross_entropy(node: Node, w: Writer) -> Made:
    """Of logits and the probability of each class, the classes last."""
    logits, labels = node.input(0), node.input(1)
    if logits.shape != labels.shape or not logits.shape:
        raise NotCovered(f"labels {labels.shape} for {logits.shape}")
    logs = log_softmax(w, logits, [len(logits.shape) - 1])
    by = _rows(logits, node.attribute("reduction", "mean"))
    shares = w.elementwise([logs, labels], logits.dtype, lambda b, v, t: b.mul(v, t))
    total = w.total(shares, list(range(len(logits.shape))))
    return [scaled(w, total, -1 / by), logs]


def _cross_entropy_grad(node: Node, w: Writer) -> Made:
    gradient, logs, labels = (node.input(k) for k in range(3))
    by = _rows(logs, node.attribute("reduction", "mean"))

    def body(b: Body, g: Scalar, v: Scalar, t: Scalar) -> Scalar:
        return b.mul(b.sub(b.math("exp", v), t), b.div(g, b.like(by, g)))

    return w.elementwise([w.reshape(gradient, ()), logs, labels], logs.dtype, body)


def _class_loss_grad(node: Node, w: Writer) -> Made:
    """Of log-probabilities (N, C, …) and classes (N, …)."""
    gradient, logs, target = (node.input(k) for k in range(3))
    if len(node.inputs) > 3 and any(each is not None for each in node.inputs[3:]):
        raise NotCovered("classes have weights, or are ignored")
    if "ignore_index" in node.attributes:
        raise NotCovered("a class is ignored")
    reduction, rank = node.attribute("reduction", "mean"), len(logs.shape)
    if reduction not in ("mean", "sum") or gradient.size != 1:
        raise NotCovered(f"reduction '{reduction}' of a gradient {gradient.shape}")
    by = float(target.size) if reduction == "mean" else 1.0

    def body(b: Body, g: Scalar, v: Scalar, t: Scalar) -> Scalar:
        here = b.compare("eq", b.cast(t, I64), b.of_index(b.index(1), I64))
        power = b.math("exp", v)
        share = b.select(here, b.sub(power, b.like(1, power)), power)
        return b.mul(share, b.div(g, b.like(by, g)))

    rest = [d for d in range(rank) if d != 1]
    return w.elementwise(
        [(w.reshape(gradient, ()), ()), (logs, range(rank)), (target, rest)],
        logs.dtype,
        body,
        shape=logs.shape,
    )


# Others -------------------------------------------------------------------------------------------


def _fused_matmul(node: Node, w: Writer) -> Made:
    """alpha times the product, of matrices that are transposed first."""
    same_types(node)
    if node.attribute("transBatchA", 0) or node.attribute("transBatchB", 0):
        raise NotCovered("batches are transposed")
    sides: list[Operand] = []
    for side, flag in ((node.input(0), "transA"), (node.input(1), "transB")):
        rank = len(side.shape)
        turned = bool(node.attribute(flag, 0)) and rank > 1
        order = [*range(rank - 2), rank - 1, rank - 2]
        sides.append(w.transpose(side, order) if turned else side)
    return scaled(w, matmul(w, *sides), float(node.attribute("alpha", 1.0)))


def _softmax_grad(node: Node, w: Writer) -> Made:
    """Y (dY - the sum of dY Y)."""
    dy, y = node.input(0), node.input(1)
    axis = axis_of(node.attribute("axis", -1), len(y.shape))
    products = w.elementwise([dy, y], y.dtype, Body.mul)
    total = w.total(products, [axis], keep=True)
    return w.elementwise([dy, y, total], y.dtype, lambda b, g, v, t: b.mul(v, b.sub(g, t)))


def _layer_norm_grad(node: Node, w: Writer) -> Made:
    """Of X, its scale, the means and 1 / the deviations: by X, the scale and the bias."""
    dy, x, scale, means, inverses = (node.input(k) for k in range(5))
    rank = len(x.shape)
    axis = axis_of(node.attribute("axis", -1), rank)
    inner, outer = list(range(axis, rank)), list(range(axis))
    kept = (*x.shape[:axis], *([1] * len(inner)))
    means, inverses = w.reshape(means, kept), w.reshape(inverses, kept)
    normal = w.tensor(
        w.elementwise([x, means, inverses], x.dtype, lambda b, v, m, i: b.mul(b.sub(v, m), i))
    )
    shares = w.tensor(w.elementwise([dy, scale], x.dtype, Body.mul))
    first = mean(w, shares, inner, keep=True)
    second = mean(w, w.elementwise([shares, normal], x.dtype, Body.mul), inner, keep=True)

    def body(b: Body, s: Scalar, n: Scalar, i: Scalar, f: Scalar, t: Scalar) -> Scalar:
        return b.mul(i, b.sub(b.sub(s, f), b.mul(n, t)))

    dx = w.elementwise([shares, normal, inverses, first, second], x.dtype, body)
    dscale = w.total(w.elementwise([dy, normal], x.dtype, Body.mul), outer)
    return [dx, w.reshape(dscale, scale.shape), w.reshape(w.total(dy, outer), scale.shape)]


def _gather_grad(node: Node, w: Writer) -> Made:
    """Rows of dY are added up where they were taken from: row v is the sum of those of index v."""
    shape: Shape = tuple(int(n) for n in node.value(0).reshape(-1))
    indices, dy = node.input(1), node.input(2)
    axis = axis_of(node.attribute("axis", 0), len(shape))
    rank, count = len(shape), len(indices.shape)
    extents = (*shape, *indices.shape)
    places = [f"d{rank + k}" for k in range(count)]
    subs = [f"d{d}" for d in range(rank)]

    def body(b: Body, at: Scalar, g: Scalar, total: Scalar) -> Scalar:
        here = b.of_index(b.index(axis), I64)
        place = b.of_index(wrapped(b, at, shape[axis]), I64)
        return b.add(total, b.select(b.compare("eq", place, here), g, b.like(0, g)))

    return w.loops(
        extents,
        [(indices, places), (dy, [*subs[:axis], *places, *subs[axis + 1 :]])],
        range(rank),
        dy.dtype,
        body,
        begun=w.filled(shape, 0, dy.dtype),
    )


def _broadcast_axes(node: Node, w: Writer) -> Made:
    """Over which dimensions gradients of two operands of a broadcast are to be summed."""
    a, b = (tuple(int(n) for n in node.value(k).reshape(-1)) for k in (0, 1))
    whole = broadcast(a, b)
    found: list[Operand | None] = []
    for shape in (a, b):
        wide = (*([1] * (len(whole) - len(shape))), *shape)
        lead = len(whole) - len(shape)
        axes = [d for d, n in enumerate(whole) if d < lead or (wide[d] == 1 and n != 1)]
        found.append(constant(np.array(axes[::-1], I64)))
    return found


def _reduce_sum(node: Node, w: Writer) -> Made:
    x = node.input(0)
    axes = sorted({axis_of(int(n), len(x.shape)) for n in node.value(1).reshape(-1)})
    if not axes and not node.attribute("noop_with_empty_axes", 0):
        axes = list(range(len(x.shape)))
    return w.total(x, axes, keep=bool(node.attribute("keepdims", 1)))


BACKWARD: dict[str, Rule] = {
    "BiasFastGeluGrad_dX": _fast_gelu_grad,
    "BroadcastGradientArgs": _broadcast_axes,
    "FastGelu": _fast_gelu,
    "FastGeluGrad": _fast_gelu_grad,
    "FusedMatMul": _fused_matmul,
    "GatherGrad": _gather_grad,
    "InPlaceAccumulatorV2": _accumulator,
    "LayerNormalizationGrad": _layer_norm_grad,
    "ReduceSumTraining": _reduce_sum,
    "ReluGrad": _relu_grad,
    "SGDOptimizer": _sgd,
    "SoftmaxCrossEntropy": _cross_entropy,
    "SoftmaxCrossEntropyGrad": _cross_entropy_grad,
    "SoftmaxCrossEntropyLossGrad": _class_loss_grad,
    "SoftmaxGrad_13": _softmax_grad,
}

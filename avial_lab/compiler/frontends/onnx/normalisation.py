"""Softmax and its relatives, normalisations over batches and layers, losses of classes."""

from __future__ import annotations

import math

from avial_lab.compiler.frontends.onnx.elementwise import check_float
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.reductions import largest, mean
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import (
    I64,
    Dtype,
    NotCovered,
    Operand,
    axis_of,
    dtype_of,
    is_float,
    wide,
)
from avial_lab.compiler.frontends.onnx.writer import Writer


def _axes(node: Node, x: Operand) -> list[int]:
    """From opset 13 on one axis, the last; before that all from the first on, or that given."""
    rank = len(x.shape)
    if node.version >= 13:
        return [axis_of(node.attribute("axis", -1), rank)]
    axis = node.attribute("axis", 1)
    return list(range(rank if axis == rank else axis_of(axis, rank), rank))


def _softmax(node: Node, w: Writer) -> Made:
    check_float(node.input(0))
    return softmax(w, node.input(0), _axes(node, node.input(0)))


def softmax(w: Writer, x: Operand, axes: list[int]) -> Operand:
    dtype = wide(x.dtype)
    value = w.cast(x, dtype)
    top = largest(w, value, axes, keep=True)
    powers = w.elementwise([value, top], dtype, lambda b, v, t: b.math("exp", b.sub(v, t)))
    total = w.total(powers, axes, keep=True)
    return w.cast(w.elementwise([powers, total], dtype, Body.div), x.dtype)


def log_softmax(w: Writer, x: Operand, axes: list[int]) -> Operand:
    dtype = wide(x.dtype)
    value = w.cast(x, dtype)
    top = largest(w, value, axes, keep=True)
    shifted = w.elementwise([value, top], dtype, Body.sub)
    powers = w.elementwise([shifted], dtype, lambda b, v: b.math("exp", v))
    total = w.total(powers, axes, keep=True)
    found = w.elementwise([shifted, total], dtype, lambda b, v, t: b.sub(v, b.math("log", t)))
    return w.cast(found, x.dtype)


def _log_softmax(node: Node, w: Writer) -> Made:
    check_float(node.input(0))
    return log_softmax(w, node.input(0), _axes(node, node.input(0)))


def _batch_norm(node: Node, w: Writer) -> Made:
    x, scale, bias, means, variances = (node.input(k) for k in range(5))
    epsilon, rank = float(node.attribute("epsilon", 1e-5)), len(x.shape)
    if not node.attribute("spatial", 1):
        raise NotCovered("it has statistics of its own for each pixel (spatial = 0)")
    trains = bool(node.attribute("training_mode", 0)) if node.version >= 14 else False
    if node.version < 14 and any(node.wants(k) for k in range(1, 5)):
        raise NotCovered("it returns statistics of a training")
    rest: list[Operand] = []
    if trains:
        momentum = float(node.attribute("momentum", 0.9))
        axes = [d for d in range(rank) if d != 1]
        value = w.cast(x, wide(x.dtype))
        batch_mean = mean(w, value, axes)
        centred = w.elementwise(
            [(value, range(rank)), (batch_mean, (1,))], value.dtype, Body.sub, shape=x.shape
        )
        squares = w.elementwise([centred], value.dtype, lambda b, v: b.mul(v, v))
        batch_variance = mean(w, squares, axes)

        def mixed(b: Body, old: Scalar, new: Scalar) -> Scalar:
            new = b.cast(new, means.dtype)
            return b.add(b.mul(old, b.like(momentum, old)), b.mul(new, b.like(1 - momentum, new)))

        rest = [
            w.elementwise([means, batch_mean], means.dtype, mixed),
            w.elementwise([variances, batch_variance], variances.dtype, mixed),
        ]
        means, variances = batch_mean, batch_variance
    kind = wide(x.dtype)

    def factor(b: Body, s: Scalar, v: Scalar) -> Scalar:
        v = b.cast(v, kind)
        return b.div(b.cast(s, kind), b.math("sqrt", b.add(v, b.like(epsilon, v))))

    factors = w.elementwise([scale, variances], kind, factor)

    def body(b: Body, v: Scalar, m: Scalar, f: Scalar, c: Scalar) -> Scalar:
        centred = b.sub(b.cast(v, kind), b.cast(m, kind))
        return b.cast(b.add(b.mul(centred, f), b.cast(c, kind)), x.dtype)

    channel = (1,)
    found = w.elementwise(
        [(x, range(rank)), (means, channel), (factors, channel), (bias, channel)],
        x.dtype,
        body,
        shape=x.shape,
    )
    return [found, *rest]


def _layer_norm(node: Node, w: Writer) -> Made:
    x, scale = node.input(0), node.input(1)
    rank = len(x.shape)
    axis = axis_of(node.attribute("axis", -1), rank)
    stash = dtype_of(node.attribute("stash_type", 1))
    found, means, inverses = normalised(
        w, x, list(range(axis, rank)), float(node.attribute("epsilon", 1e-5)), stash
    )
    more = [node.input(2)] if node.has(2) else []

    def body(b: Body, v: Scalar, s: Scalar, *c: Scalar) -> Scalar:
        v = b.mul(b.cast(v, x.dtype), s)
        return b.add(v, c[0]) if c else v

    made = w.elementwise([found, scale, *more], x.dtype, body, shape=x.shape)
    return [made, means, inverses]


def _by_channel(w: Writer, found: Operand, scale: Operand, bias: Operand, dtype: Dtype) -> Operand:
    """Scaled and shifted by what each channel, dimension 1, has."""

    def body(b: Body, v: Scalar, s: Scalar, c: Scalar) -> Scalar:
        return b.add(b.mul(b.cast(v, dtype), s), c)

    whole = range(len(found.shape))
    return w.elementwise(
        [(found, whole), (scale, (1,)), (bias, (1,))], dtype, body, shape=found.shape
    )


def _instance_norm(node: Node, w: Writer) -> Made:
    x = node.input(0)
    axes = list(range(2, len(x.shape)))
    found, _, _ = normalised(w, x, axes, float(node.attribute("epsilon", 1e-5)), wide(x.dtype))
    return _by_channel(w, found, node.input(1), node.input(2), x.dtype)


def _group_norm(node: Node, w: Writer) -> Made:
    """Up to opset 20 scale and bias are those of groups, after it of channels."""
    x, scale, bias = (node.input(k) for k in range(3))
    groups = node.attribute("num_groups", 0)
    if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
        raise NotCovered(f"{groups} groups of a tensor {x.shape}")
    shape = (x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    epsilon = float(node.attribute("epsilon", 1e-5))
    parts = w.reshape(x, shape)
    found, _, _ = normalised(w, parts, [2], epsilon, wide(x.dtype))
    if node.version < 21:
        return w.reshape(_by_channel(w, found, scale, bias, x.dtype), x.shape)
    return _by_channel(w, w.reshape(found, x.shape), scale, bias, x.dtype)


def normalised(
    w: Writer, x: Operand, axes: list[int], epsilon: float, dtype: Dtype
) -> tuple[Operand, Operand, Operand]:
    """With mean 0 and variance 1 over these dimensions, their means, and 1 / their deviations."""
    if not is_float(dtype) or not is_float(x.dtype):
        raise NotCovered(f"it takes floating-point numbers, not {x.dtype}")
    value = w.cast(x, dtype)
    means = mean(w, value, axes, keep=True)
    centred = w.elementwise([value, means], dtype, Body.sub)
    squares = w.elementwise([centred], dtype, lambda b, v: b.mul(v, v))
    variances = mean(w, squares, axes, keep=True)

    def inverse(b: Body, v: Scalar) -> Scalar:
        return b.div(b.like(1, v), b.math("sqrt", b.add(v, b.like(epsilon, v))))

    inverses = w.elementwise([variances], dtype, inverse)
    return w.elementwise([centred, inverses], dtype, Body.mul), means, inverses


# Losses -------------------------------------------------------------------------------------------


def class_loss(
    w: Writer,
    logs: Operand,
    target: Operand,
    weight: Operand | None,
    ignored: int | None,
    reduction: str,
) -> Operand:
    """-weight of the class times its logarithm, of logs (N, C, …) and classes (N, …); summed, or
    divided by the sum of the weights.
    """
    if target.dtype.kind not in "iu" or target.shape != (logs.shape[0], *logs.shape[2:]):
        raise NotCovered(f"classes {target.shape} of {target.dtype} for {logs.shape}")
    if reduction not in ("none", "sum", "mean"):
        raise NotCovered(f"reduction '{reduction}' is none that ONNX knows")
    dtype, rank = wide(logs.dtype), len(logs.shape)
    rest = [d for d in range(rank) if d != 1]
    places = [f"d{d}" for d in rest]
    given = [(target, places)]
    if weight is not None:
        given.append((weight, ["d1"]))

    def chosen(b: Body, t: Scalar, *weights: Scalar) -> tuple[Scalar, Scalar]:
        """Whether this is the class, and what it weighs."""
        whole = b.cast(t, I64)
        here = b.compare("eq", whole, b.of_index(b.index(1), I64))
        if ignored is not None:
            here = b.both(here, b.compare("ne", whole, b.number(ignored, I64)))
        return here, b.cast(weights[0], dtype) if weights else b.number(1, dtype)

    def loss(b: Body, v: Scalar, t: Scalar, *more: Scalar) -> Scalar:
        *weights, total = more
        here, weighs = chosen(b, t, *weights)
        share = b.negate(b.mul(b.cast(v, dtype), weighs))
        return b.add(total, b.select(here, share, b.like(0, share)))

    def weighed(b: Body, _: Scalar, t: Scalar, *more: Scalar) -> Scalar:
        *weights, total = more
        here, weighs = chosen(b, t, *weights)
        return b.add(total, b.select(here, weighs, b.like(0, weighs)))

    whole = (logs, [f"d{d}" for d in range(rank)])
    out = rest if reduction == "none" else []
    begun = w.filled(tuple(logs.shape[d] for d in out), 0, dtype)
    found = w.loops(logs.shape, [whole, *given], out, dtype, loss, begun=begun)
    if reduction == "mean" and (weight is not None or ignored is not None):
        zero = w.filled((), 0, dtype)
        weights = w.loops(logs.shape, [whole, *given], (), dtype, weighed, begun=zero)
        found = w.elementwise([found, weights], dtype, Body.div)
    elif reduction == "mean":
        count = math.prod(target.shape)
        found = w.elementwise([found], dtype, lambda b, v: b.div(v, b.like(count, v)))
    return w.cast(found, logs.dtype)


def _loss_of(node: Node, w: Writer, logs: Operand) -> Operand:
    ignored = node.attributes.get("ignore_index")
    if ignored is not None and not isinstance(ignored, int):
        raise NotCovered("attribute ignore_index is no integer")
    reduction = node.attribute("reduction", "mean")
    return class_loss(w, logs, node.input(1), node.maybe(2), ignored, reduction)


def _negative_log(node: Node, w: Writer) -> Made:
    return _loss_of(node, w, node.input(0))


def _cross_entropy(node: Node, w: Writer) -> Made:
    check_float(node.input(0))
    logs = log_softmax(w, node.input(0), [1])
    return [_loss_of(node, w, logs), logs]


NORMALISATION: dict[str, Rule] = {
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _log_softmax,
    "NegativeLogLikelihoodLoss": _negative_log,
    "Softmax": _softmax,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}

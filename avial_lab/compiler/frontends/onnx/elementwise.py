"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import (
    BOOL,
    Dtype,
    NotCovered,
    Operand,
    dtype_of,
    is_float,
    wide,
)
from avial_lab.compiler.frontends.onnx.writer import Writer

Unary = Callable[[Body, Scalar], Scalar]
Binary = Callable[[Body, Scalar, Scalar], Scalar]


def in_wide(body: Unary) -> Unary:
    """Of f16 and bf16 computed in f32, and rounded once."""

    def inside(b: Body, x: Scalar) -> Scalar:
        assert x.dtype is not None
        return b.cast(body(b, b.cast(x, wide(x.dtype))), x.dtype)

    return inside


def _unary(body: Unary) -> Rule:
    return lambda node, w: w.elementwise([node.input(0)], node.input(0).dtype, body)


def _floats(body: Unary) -> Rule:
    """Of floating-point numbers alone."""

    def rule(node: Node, w: Writer) -> Made:
        check_float(node.input(0))
        return w.elementwise([node.input(0)], node.input(0).dtype, in_wide(body))

    return rule


def check_float(operand: Operand) -> None:
    if not is_float(operand.dtype):
        raise NotCovered(f"it takes floating-point numbers, not {operand.dtype}")


def _math(name: str) -> Rule:
    return _floats(lambda b, x: b.math(name, x))


def same_types(node: Node) -> Dtype:
    kinds = {each.dtype.name for each in node.inputs if each is not None}
    if len(kinds) != 1:
        raise NotCovered(f"its inputs have different types: {', '.join(sorted(kinds))}")
    return node.input(0).dtype


def _check_broadcast(node: Node) -> None:
    if node.version < 7 and ("axis" in node.attributes or "broadcast" in node.attributes):
        raise NotCovered(f"it broadcasts by the rules of opset {node.version}; 7 is the first here")


def _binary(body: Binary, dtype: Dtype | None = None) -> Rule:
    def rule(node: Node, w: Writer) -> Made:
        _check_broadcast(node)
        kind = same_types(node)
        return w.elementwise([node.input(0), node.input(1)], dtype or kind, body)

    return rule


def _compared(how: str) -> Rule:
    return _binary(lambda b, x, y: b.compare(how, x, y), BOOL)


def _logical(body: Binary) -> Rule:
    def rule(node: Node, w: Writer) -> Made:
        if same_types(node) != BOOL:
            raise NotCovered("it takes bools")
        return _binary(body)(node, w)

    return rule


def _variadic(body: Binary) -> Rule:
    def rule(node: Node, w: Writer) -> Made:
        kind = same_types(node)
        inputs = [node.input(k) for k in range(len(node.inputs))]
        return w.elementwise(inputs, kind, lambda b, *xs: reduce(lambda x, y: body(b, x, y), xs))

    return rule


def _division(b: Body, x: Scalar, y: Scalar) -> Scalar:
    return b.div(x, y)


def _modulo(node: Node, w: Writer) -> Made:
    kind, remainder = same_types(node), bool(node.attribute("fmod", 0))

    def body(b: Body, x: Scalar, y: Scalar) -> Scalar:
        unsigned = kind.kind == "u"
        left = b.two("arith.remf", "arith.remui" if unsigned else "arith.remsi", x, y)
        if remainder or unsigned:
            return left
        # Python's: with the sign of the divisor.
        zero = b.like(0, x)
        off = b.both(
            b.compare("ne", left, zero),
            b.differ(b.compare("lt", left, zero), b.compare("lt", y, zero)),
        )
        return b.select(off, b.add(left, y), left)

    if is_float(kind) and not remainder:
        raise NotCovered("of floating-point numbers it is covered with fmod=1")
    return w.elementwise([node.input(0), node.input(1)], kind, body)


def _power(node: Node, w: Writer) -> Made:
    _check_broadcast(node)
    base, exponent = node.input(0), node.input(1)
    known = exponent.known if exponent.size == 1 else None
    if known is not None and is_float(base.dtype):
        n = float(known.reshape(-1)[0])
        if n in (1.0, 2.0, 3.0, 0.5):
            return w.elementwise(
                [base, exponent], base.dtype, lambda b, x, _: _small_power(b, x, n)
            )
    inner = wide(base.dtype)
    if not is_float(inner):
        inner = np.dtype("float64") if is_float(exponent.dtype) else base.dtype

    def body(b: Body, x: Scalar, y: Scalar) -> Scalar:
        x, y = b.cast(x, inner), b.cast(y, inner)
        if is_float(inner):
            return b.cast(b.math("powf", x, y), base.dtype)
        return b.make(f"math.ipowi {x.name}, {y.name} : {x.type}", inner)

    return w.elementwise([base, exponent], base.dtype, body)


def _small_power(b: Body, x: Scalar, n: float) -> Scalar:
    if n == 0.5:
        return b.math("sqrt", x)
    return reduce(lambda y, _: b.mul(y, x), range(int(n) - 1), x)


def _clip(node: Node, w: Writer) -> Made:
    x = node.input(0)
    bounds: list[tuple[Binary, Operand]] = []
    for k, (name, body) in enumerate((("min", Body.maximum), ("max", Body.minimum))):
        if name in node.attributes:
            bound = np.asarray(node.attribute(name, 0.0), x.dtype)
            bounds.append((body, Operand((), x.dtype, known=bound)))
        elif node.has(k + 1):
            bounds.append((body, w.reshape(node.input(k + 1), ())))

    def inside(b: Body, value: Scalar, *limits: Scalar) -> Scalar:
        for (body, _), limit in zip(bounds, limits, strict=True):
            value = body(b, value, limit)
        return value

    if not bounds:
        return x
    return w.elementwise([x, *(limit for _, limit in bounds)], x.dtype, inside)


def sigmoid(b: Body, x: Scalar) -> Scalar:
    one = b.like(1, x)
    return b.div(one, b.add(one, b.math("exp", b.negate(x))))


def _sigmoid(node: Node, w: Writer) -> Made:
    check_float(node.input(0))
    return w.elementwise([node.input(0)], node.input(0).dtype, in_wide(sigmoid))


def softplus(b: Body, x: Scalar) -> Scalar:
    """log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), which does not overflow."""
    small = b.math("log1p", b.math("exp", b.negate(b.absolute(x))))
    return b.add(b.maximum(x, b.like(0, x)), small)


def gelu(b: Body, x: Scalar) -> Scalar:
    bell = b.math("erf", b.mul(x, b.like(1 / math.sqrt(2), x)))
    return b.mul(b.mul(x, b.like(0.5, x)), b.add(b.like(1, x), bell))


def fast_gelu(b: Body, x: Scalar) -> Scalar:
    """By tanh: Hendrycks, Gimpel, Gaussian Error Linear Units, 2016."""
    cube = b.mul(b.mul(x, x), x)
    inner = b.mul(b.like(math.sqrt(2 / math.pi), x), b.add(x, b.mul(b.like(0.044715, x), cube)))
    return b.mul(b.mul(x, b.like(0.5, x)), b.add(b.like(1, x), b.math("tanh", inner)))


def _gelu(node: Node, w: Writer) -> Made:
    how = node.attribute("approximate", "none")
    if how not in ("none", "tanh"):
        raise NotCovered(f"approximation '{how}' is none that ONNX knows")
    return _floats(gelu if how == "none" else fast_gelu)(node, w)


def relu(b: Body, x: Scalar) -> Scalar:
    return b.maximum(x, b.like(0, x))


def _leaky(node: Node, w: Writer) -> Made:
    alpha = node.attribute("alpha", 0.01)

    def body(b: Body, x: Scalar) -> Scalar:
        low = b.compare("lt", x, b.like(0, x))
        return b.select(low, b.mul(x, b.like(alpha, x)), x)

    return _floats(body)(node, w)


def _elu(node: Node, w: Writer) -> Made:
    alpha = node.attribute("alpha", 1.0)

    def body(b: Body, x: Scalar) -> Scalar:
        low = b.compare("lt", x, b.like(0, x))
        below = b.mul(b.like(alpha, x), b.sub(b.math("exp", x), b.like(1, x)))
        return b.select(low, below, x)

    return _floats(body)(node, w)


def _where(node: Node, w: Writer) -> Made:
    on, x, y = (node.input(k) for k in range(3))
    if x.dtype != y.dtype or on.dtype != BOOL:
        raise NotCovered("it takes bools, and two tensors of one type")
    return w.elementwise([on, x, y], x.dtype, Body.select)


def _cast(node: Node, w: Writer) -> Made:
    return w.cast(node.input(0), dtype_of(node.attribute("to", 0)))


def _cast_like(node: Node, w: Writer) -> Made:
    return w.cast(node.input(0), node.input(1).dtype)


def _identity(node: Node, w: Writer) -> Made:
    return node.input(0)


def _absolute(b: Body, x: Scalar) -> Scalar:
    return b.absolute(x)


def _sign(b: Body, x: Scalar) -> Scalar:
    zero = b.like(0, x)
    above = b.select(b.compare("gt", x, zero), b.like(1, x), zero)
    if x.dtype is not None and x.dtype.kind == "u":
        return above
    return b.select(b.compare("lt", x, zero), b.like(-1, x), above)


def _is_nan(node: Node, w: Writer) -> Made:
    check_float(node.input(0))
    return w.elementwise([node.input(0)], BOOL, lambda b, x: b.compare("ne", x, x))


def _mean(node: Node, w: Writer) -> Made:
    kind = same_types(node)
    inputs = [node.input(k) for k in range(len(node.inputs))]

    def body(b: Body, *xs: Scalar) -> Scalar:
        total = reduce(lambda x, y: b.add(x, y), xs)
        return b.div(total, b.like(len(xs), total))

    return w.elementwise(inputs, kind, body)


def _dropout(node: Node, w: Writer) -> Made:
    """In a trained model nothing is dropped; in training only where the ratio is known to be 0."""
    x = node.input(0)
    if node.has(2) and node.value(2).any():
        ratio = float(node.value(1)) if node.has(1) else 0.5
        if ratio:
            raise NotCovered("what a dropout in training drops is random")
    if not node.wants(1):
        return x
    mask = w.filled(x.shape, True, BOOL)
    return [x, mask if node.version >= 10 else w.cast(mask, x.dtype)]


ELEMENTWISE: dict[str, Rule] = {
    "Abs": _unary(_absolute),
    "Acos": _math("acos"),
    "Add": _binary(Body.add),
    "And": _logical(Body.both),
    "Asin": _math("asin"),
    "Atan": _math("atan"),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _math("ceil"),
    "Clip": _clip,
    "Cos": _math("cos"),
    "Cosh": _math("cosh"),
    "Div": _binary(_division),
    "Dropout": _dropout,
    "Elu": _elu,
    "Equal": _compared("eq"),
    "Erf": _math("erf"),
    "Exp": _math("exp"),
    "Floor": _math("floor"),
    "Gelu": _gelu,
    "Greater": _compared("gt"),
    "GreaterOrEqual": _compared("ge"),
    "Identity": _identity,
    "IsNaN": _is_nan,
    "LeakyRelu": _leaky,
    "Less": _compared("lt"),
    "LessOrEqual": _compared("le"),
    "Log": _math("log"),
    "Max": _variadic(Body.maximum),
    "Mean": _mean,
    "Min": _variadic(Body.minimum),
    "Mod": _modulo,
    "Mul": _binary(Body.mul),
    "Neg": _unary(Body.negate),
    "Not": _unary(Body.inverse),
    "Or": _logical(Body.either),
    "Pow": _power,
    "Reciprocal": _floats(lambda b, x: b.div(b.like(1, x), x)),
    "Relu": _unary(relu),
    "Round": _math("roundeven"),
    "Sigmoid": _sigmoid,
    "Sign": _unary(_sign),
    "Sin": _math("sin"),
    "Sinh": _math("sinh"),
    "Softplus": _floats(softplus),
    "Sqrt": _math("sqrt"),
    "Sub": _binary(Body.sub),
    "Sum": _variadic(Body.add),
    "Tan": _math("tan"),
    "Tanh": _math("tanh"),
    "Where": _where,
    "Xor": _logical(Body.differ),
}

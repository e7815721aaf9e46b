"""Activations that are given by a formula in ONNX's text, element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from avial_lab.compiler.frontends.onnx.elementwise import (
    check_float,
    in_wide,
    same_types,
    sigmoid,
    softplus,
)
from avial_lab.compiler.frontends.onnx.nodes import Made, Node, Rule
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.writer import Writer

Formula = Callable[..., Scalar]
"""Body, the element, and the numbers of the attributes -> the result."""


def _formula(formula: Formula, **defaults: float) -> Rule:
    """A rule whose attributes are these numbers."""

    def rule(node: Node, w: Writer) -> Made:
        x = node.input(0)
        check_float(x)
        numbers = [float(node.attribute(name, value)) for name, value in defaults.items()]
        return w.elementwise([x], x.dtype, in_wide(lambda b, v: formula(b, v, *numbers)))

    return rule


def _positive(b: Body, x: Scalar) -> Scalar:
    return b.compare("gt", x, b.like(0, x))


def _below(b: Body, x: Scalar, alpha: float) -> Scalar:
    """alpha (exp(x) - 1)."""
    return b.mul(b.like(alpha, x), b.sub(b.math("exp", x), b.like(1, x)))


def _hard_sigmoid(b: Body, x: Scalar, alpha: float, beta: float) -> Scalar:
    line = b.add(b.mul(b.like(alpha, x), x), b.like(beta, x))
    return b.maximum(b.like(0, x), b.minimum(b.like(1, x), line))


def _hard_swish(b: Body, x: Scalar) -> Scalar:
    return b.mul(x, _hard_sigmoid(b, x, 1 / 6, 0.5))


def _selu(b: Body, x: Scalar, alpha: float, gamma: float) -> Scalar:
    return b.mul(b.like(gamma, x), b.select(_positive(b, x), x, _below(b, x, alpha)))


def _celu(b: Body, x: Scalar, alpha: float) -> Scalar:
    low = _below(b, b.div(x, b.like(alpha, x)), alpha)
    return b.add(b.maximum(x, b.like(0, x)), b.minimum(low, b.like(0, x)))


def _thresholded(b: Body, x: Scalar, alpha: float) -> Scalar:
    return b.select(b.compare("gt", x, b.like(alpha, x)), x, b.like(0, x))


def _softsign(b: Body, x: Scalar) -> Scalar:
    return b.div(x, b.add(b.like(1, x), b.absolute(x)))


def _mish(b: Body, x: Scalar) -> Scalar:
    return b.mul(x, b.math("tanh", softplus(b, x)))


def _swish(b: Body, x: Scalar, alpha: float) -> Scalar:
    return b.mul(x, sigmoid(b, b.mul(b.like(alpha, x), x)))


def _shrink(b: Body, x: Scalar, bias: float, lambd: float) -> Scalar:
    low = b.select(b.compare("lt", x, b.like(-lambd, x)), b.add(x, b.like(bias, x)), b.like(0, x))
    return b.select(b.compare("gt", x, b.like(lambd, x)), b.sub(x, b.like(bias, x)), low)


def _prelu(node: Node, w: Writer) -> Made:
    kind = same_types(node)
    check_float(node.input(0))

    def body(b: Body, x: Scalar, slope: Scalar) -> Scalar:
        return b.select(b.compare("lt", x, b.like(0, x)), b.mul(slope, x), x)

    return w.elementwise([node.input(0), node.input(1)], kind, body, shape=node.input(0).shape)


ACTIVATIONS: Mapping[str, Rule] = {
    "Celu": _formula(_celu, alpha=1.0),
    "HardSigmoid": _formula(_hard_sigmoid, alpha=0.2, beta=0.5),
    "HardSwish": _formula(_hard_swish),
    "Mish": _formula(_mish),
    "PRelu": _prelu,
    "Selu": _formula(_selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Shrink": _formula(_shrink, bias=0.0, lambd=0.5),
    "Softsign": _formula(_softsign),
    "Swish": _formula(_swish, alpha=1.0),
    "ThresholdedRelu": _formula(_thresholded, alpha=1.0),
}

"""What a model is trained to make small.

A value of the model and a target -> one number, as a tensor of no dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.compiler.frontends.onnx.elementwise import check_float
from avial_lab.compiler.frontends.onnx.normalisation import class_loss, log_softmax
from avial_lab.compiler.frontends.onnx.reductions import mean
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import I64, Dtype, NotCovered, Operand, Shape
from avial_lab.compiler.frontends.onnx.writer import Writer
from avial_lab.core.errors import OptionError
from avial_lab.core.words import shortened

LOSSES = ("mse", "cross-entropy")
"""The mean of squared differences; that of -log softmax of the right class, of logits."""

TARGET = "target"


@dataclass(frozen=True)
class Training:
    """`of`: what the model calls the value that the loss is of, "" for its first result. `kept`:
    endings of the names of what an optimizer keeps for each weight, `counts` whether also steps.
    """

    loss: str
    of: str = ""
    kept: tuple[str, ...] = ()
    counts: bool = False

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise OptionError(
                f"'{shortened(self.loss, 60)}' is no loss", hint=f"there are: {', '.join(LOSSES)}"
            )

    def target_of(self, value: Operand) -> tuple[Shape, Dtype]:
        """What the value is compared with."""
        check_float(value)
        if self.loss == "mse":
            return value.shape, value.dtype
        if len(value.shape) < 2:
            raise NotCovered(
                f"classes are told apart along dimension 1, and {value.shape} has none"
            )
        return (value.shape[0], *value.shape[2:]), I64

    def written(self, w: Writer, value: Operand, target: Operand) -> Operand:
        if self.loss == "cross-entropy":
            return class_loss(w, log_softmax(w, value, [1]), target, None, None, "mean")

        def squared(b: Body, x: Scalar, t: Scalar) -> Scalar:
            off = b.sub(x, t)
            return b.mul(off, off)

        squares = w.elementwise([value, target], value.dtype, squared)
        return mean(w, squares, list(range(len(value.shape))))

"""Optimizers: a function that returns gradients returns new weights in their place.

Function on tensors whose last results are gradients -> the same, with what an optimizer makes of
weights, gradients and what it keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from mlir import ir

from avial_lab.compiler.frontends.mlir.tensors import run_pipeline
from avial_lab.compiler.frontends.onnx.scalars import Body, Scalar
from avial_lab.compiler.frontends.onnx.values import F32, Dtype, Operand, wide
from avial_lab.compiler.frontends.onnx.writer import Writer
from avial_lab.compiler.ir.attributes import FOLLOWS, WEIGHTS
from avial_lab.compiler.ir.locations import name_of, span_of
from avial_lab.compiler.ir.placements import settle_signature
from avial_lab.compiler.ir.program import functions_of, program_function, symbol_of
from avial_lab.compiler.passes.distir.propagate import arguments_named
from avial_lab.core.element_types import dtype_of_element
from avial_lab.core.errors import VerifyError
from avial_lab.planning.optimizers import STEP, Optimizer


@dataclass(frozen=True)
class UpdateWeights:
    """Return new weights in place of gradients, and what the optimizer keeps behind them.

    before:  func.func @step(%x, %w, %w_m) -> (loss, dw)
    after:   func.func @step(%x, %w, %w_m) -> (loss, new w, new w_m)       (of=w rule=momentum)

    An optimizer is a function of a weight, its gradient and what is kept for it, which is called
    and inlined: transforms that come after see operations on tensors like all others. What is kept
    for %w are the arguments %w_m and %w_v; %step counts from 0.
    """

    of: str = ""
    rule: str = "sgd"

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        names = self.of.replace("+", " ").split()
        optimizer = Optimizer.parse(self.rule)
        with module.context, function.location:
            _update(module, function, names, optimizer)
        settle_signature(function)
        run_pipeline(module, "builtin.module(inline,symbol-dce)", "an update cannot be inlined")

    def __str__(self) -> str:
        rule = self.rule.replace(" ", "+").replace("=", ":")
        return f"update-weights{{of={self.of} rule={rule}}}"


def _update(
    module: ir.Operation, function: ir.Operation, names: Sequence[str], optimizer: Optimizer
) -> None:
    weights = arguments_named(function, names)
    block = function.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    if not names or len(end.operands) < len(names):
        raise VerifyError(
            f"@{symbol_of(function)} returns no gradients that weights could follow",
            span=span_of(function.location),
            hint="name the weights: --gradient 'w0 w1'",
        )
    first = len(end.operands) - len(names)
    gradients = list(end.operands)[first:]
    known = {name_of(a.location) or f"arg{k}": a for k, a in enumerate(block.arguments)}
    steps = [_kept(function, known, STEP)] if optimizer.counts else []
    new_weights: list[ir.Value] = []
    states: list[ir.Value] = []
    counted: Sequence[ir.Value] = ()
    for name, weight, gradient in zip(names, weights, gradients, strict=True):
        kept = [_kept(function, known, f"{name}_{ending}") for ending in optimizer.kept]
        for each, value in zip(optimizer.kept, kept, strict=True):
            if value.type != weight.type:
                raise VerifyError(
                    f"%{name}_{each} is {value.type}, and %{name} is {weight.type}",
                    span=span_of(value.location),
                )
        callee = _function_for(module, weight.type, optimizer)
        with ir.InsertionPoint(end):
            call = ir.Operation.create(
                "func.call",
                [weight.type, *(v.type for v in kept), *(v.type for v in steps)],
                [weight, gradient, *kept, *steps],
                {"callee": ir.FlatSymbolRefAttr.get(callee)},
            )
        new, *rest = call.results
        new_weights.append(new)
        states += rest[: len(kept)]
        counted = rest[len(kept) :]
    others = list(end.operands)[:first]
    numbers = [known[name].arg_number for name in names]
    numbers += [known[f"{name}_{e}"].arg_number for name in names for e in optimizer.kept]
    numbers += [value.arg_number for value in steps]
    function.attributes[WEIGHTS] = ir.DenseI64ArrayAttr.get(numbers[: len(names)])
    function.attributes[FOLLOWS] = ir.DenseI64ArrayAttr.get([-1] * len(others) + numbers)
    with ir.InsertionPoint(end):
        ir.Operation.create("func.return", [], [*others, *new_weights, *states, *counted])
    end.erase()


def _kept(function: ir.Operation, known: Mapping[str, ir.Value], name: str) -> ir.Value:
    if name not in known:
        raise VerifyError(
            f"there is no argument %{name}, where the optimizer keeps what it has to know",
            span=span_of(function.location),
            hint=f"add it, of the weight's type (%{STEP}: tensor<f32>); it begins with zeros",
        )
    return known[name]


def _function_for(module: ir.Operation, kind: ir.Type, optimizer: Optimizer) -> str:
    """The name of the optimizer's function for weights of this type, which the module then has."""
    shape, element = tuple(kind.shape), str(kind.element_type)
    name = "_".join([optimizer.kind, *map(str, shape), element])
    if name not in [symbol_of(each) for each in functions_of(module)]:
        text = update_text(name, shape, dtype_of_element(element), optimizer)
        made = ir.Module.parse(text, module.context)
        first = module.regions[0].blocks[0]
        for view in list(made.body.operations):
            view.operation.clone(ip=ir.InsertionPoint(first))
    return name


def update_text(name: str, shape: tuple[int, ...], dtype: Dtype, optimizer: Optimizer) -> str:
    """The optimizer as a function: (weight, gradient, what is kept …) -> the same, but for the
    gradient, one step later.
    """
    inputs = [Operand(shape, dtype, f"%{each}") for each in ("w", "g", *optimizer.kept)]
    if optimizer.counts:
        inputs.append(Operand((), F32, f"%{STEP}"))
    w = Writer(taken={each.name[1:] for each in inputs})
    found = [w.tensor(each) for each in _RULES[optimizer.kind](w, optimizer, *inputs)]
    heads = ", ".join(f"{each.name}: {each.type}" for each in inputs)
    types = ", ".join(each.type for each in found)
    body = "\n  ".join(w.lines)
    return (
        f"func.func private @{name}({heads}) -> ({types}) {{\n  {body}\n"
        f"  return {', '.join(each.name for each in found)} : {types}\n}}\n"
    )


def _stepped(b: Body, w: Scalar, by: Scalar, optimizer: Optimizer) -> Scalar:
    """The weight, decayed, and moved against `by`."""
    rate, decay = optimizer.numbers["lr"], optimizer.numbers["decay"]
    kept = b.mul(w, b.like(1 - rate * decay, w)) if decay else w
    return b.sub(kept, b.mul(b.like(rate, by), by))


def _sgd(w: Writer, optimizer: Optimizer, weight: Operand, gradient: Operand) -> list[Operand]:
    body = lambda b, x, g: _stepped(b, x, g, optimizer)  # noqa: E731
    return [w.elementwise([weight, gradient], weight.dtype, body)]


def _mixed(w: Writer, old: Operand, new: Operand, keep: float, add: float) -> Operand:
    """keep old + add new."""

    def body(b: Body, x: Scalar, y: Scalar) -> Scalar:
        return b.add(b.mul(b.like(keep, x), x), b.mul(b.like(add, y), y) if add != 1 else y)

    return w.tensor(w.elementwise([old, new], old.dtype, body))


def _momentum(
    w: Writer, optimizer: Optimizer, weight: Operand, gradient: Operand, kept: Operand
) -> list[Operand]:
    kept = _mixed(w, kept, gradient, optimizer.numbers["momentum"], 1)
    return [*_sgd(w, optimizer, weight, kept), kept]


def _adamw(
    w: Writer,
    optimizer: Optimizer,
    weight: Operand,
    gradient: Operand,
    first: Operand,
    second: Operand,
    step: Operand,
) -> list[Operand]:
    numbers = optimizer.numbers
    first = _mixed(w, first, gradient, numbers["beta1"], 1 - numbers["beta1"])
    squares = w.elementwise([gradient], gradient.dtype, lambda b, g: b.mul(g, g))
    second = _mixed(w, second, squares, numbers["beta2"], 1 - numbers["beta2"])
    count = w.tensor(w.elementwise([step], F32, lambda b, t: b.add(t, b.like(1, t))))

    def correction(beta: float) -> Operand:
        """1 - beta to the number of steps."""

        def power(b: Body, t: Scalar) -> Scalar:
            there = b.math("exp", b.mul(b.like(float(np.log(beta)), t), t)) if beta else None
            return b.sub(b.like(1, t), there) if there is not None else b.like(1, t)

        return w.tensor(w.elementwise([count], F32, power))

    inner = wide(weight.dtype)

    def body(b: Body, x: Scalar, m: Scalar, v: Scalar, c1: Scalar, c2: Scalar) -> Scalar:
        m, v = (b.div(b.cast(each, inner), b.cast(c, inner)) for each, c in ((m, c1), (v, c2)))
        by = b.div(m, b.add(b.math("sqrt", v), b.like(numbers["eps"], v)))
        return b.cast(_stepped(b, b.cast(x, inner), by, optimizer), weight.dtype)

    corrections = [correction(numbers[name]) for name in ("beta1", "beta2")]
    inputs = [weight, first, second, *corrections]
    new = w.elementwise(inputs, weight.dtype, body, shape=weight.shape)
    return [new, first, second, count]


_RULES = {"sgd": _sgd, "momentum": _momentum, "adamw": _adamw}

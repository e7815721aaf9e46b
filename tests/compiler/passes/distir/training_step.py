"""A training step of a multi-layer perceptron, forward, backward and update, as a text in MLIR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_MAPS = {
    "xw": ("(i, j, k) -> (i, k)", "(i, j, k) -> (k, j)"),
    "xtd": ("(i, j, k) -> (k, i)", "(i, j, k) -> (k, j)"),
    "dwt": ("(i, j, k) -> (i, k)", "(i, j, k) -> (j, k)"),
}


def training_step(rows: int, widths: Sequence[int], *, element: str = "f32") -> str:
    """Layers of these widths, ReLU between them, half the squared distance from %t as loss, and
    gradient descent: (x, t, w0, w1, …) -> (loss, new weights …).
    """
    writer = _Writer(element)
    layers = len(widths) - 1
    kinds = {"x": (rows, widths[0]), "t": (rows, widths[-1])}
    kinds |= {f"w{k}": (widths[k], widths[k + 1]) for k in range(layers)}
    inputs, before = ["%x"], []
    value = "%x"
    for k in range(layers):
        shapes = (rows, widths[k]), kinds[f"w{k}"], (rows, widths[k + 1])
        value = writer.product("xw", value, f"%w{k}", shapes)
        if k < layers - 1:
            before.append(value)
            value = writer.apply("arith.maximumf", value, writer.number(0.0, shapes[2]), shapes[2])
            inputs.append(value)
    last = kinds["t"]
    gradient = writer.apply("arith.subf", value, "%t", last)
    loss = writer.total(writer.apply("arith.mulf", gradient, gradient, last), last)
    updated: list[str] = []
    for k in reversed(range(layers)):
        here, below = (rows, widths[k + 1]), (rows, widths[k])
        weight = kinds[f"w{k}"]
        change = writer.product("xtd", inputs[k], gradient, (below, here, weight))
        step = writer.apply("arith.mulf", change, writer.number(0.125, weight), weight)
        updated.insert(0, writer.apply("arith.subf", f"%w{k}", step, weight))
        if k:
            through = writer.product("dwt", gradient, f"%w{k}", (here, weight, below))
            gradient = writer.where_positive(before[k - 1], through, below)
    types = [writer.kind(()), *(writer.kind(kinds[f"w{k}"]) for k in range(layers))]
    arguments = ", ".join(f"%{name}: {writer.kind(shape)}" for name, shape in kinds.items())
    body = "\n  ".join(writer.lines)
    results = ", ".join([loss, *updated])
    return (
        f"func.func @step({arguments}) -> ({', '.join(types)}) {{\n  {body}\n"
        f"  return {results} : {', '.join(types)}\n}}\n"
    )


def arrays_of(
    rows: int, widths: Sequence[int], *, dtype: type = np.float32, seed: int = 0
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"x": (rows, widths[0]), "t": (rows, widths[-1])}
    shapes |= {f"w{k}": (widths[k], widths[k + 1]) for k in range(len(widths) - 1)}
    return {name: rng.uniform(-1, 1, shape).astype(dtype) for name, shape in shapes.items()}


class _Writer:
    def __init__(self, element: str) -> None:
        self.element = element
        self.lines = [f"%zero = arith.constant 0.0 : {element}"]

    def kind(self, shape: Sequence[int], element: str = "") -> str:
        return f"tensor<{'x'.join([*map(str, shape), element or self.element])}>"

    def _value(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def _zeros(self, shape: Sequence[int]) -> str:
        kind = self.kind(shape)
        empty = self._value(f"tensor.empty() : {kind}")
        return self._value(
            f"linalg.fill ins(%zero : {self.element}) outs({empty} : {kind}) -> {kind}"
        )

    def number(self, number: float, shape: Sequence[int]) -> str:
        return self._value(f"arith.constant dense<{number}> : {self.kind(shape)}")

    def apply(self, op: str, left: str, right: str, shape: Sequence[int]) -> str:
        return self._value(f"{op} {left}, {right} : {self.kind(shape)}")

    def product(self, maps: str, left: str, right: str, shapes: Sequence[Sequence[int]]) -> str:
        begun = self._zeros(shapes[2])
        a, b, c = map(self.kind, shapes)
        e = self.element
        listed = ", ".join(f"affine_map<{m}>" for m in (*_MAPS[maps], "(i, j, k) -> (i, j)"))
        return self._value(
            f"linalg.generic {{indexing_maps = [{listed}], iterator_types = "
            f'["parallel", "parallel", "reduction"]}} ins({left}, {right} : {a}, {b}) '
            f"outs({begun} : {c}) {{ ^bb0(%a: {e}, %b: {e}, %s: {e}): %p = arith.mulf %a, %b : {e}"
            f"  %q = arith.addf %s, %p : {e}  linalg.yield %q : {e} }} -> {c}"
        )

    def total(self, value: str, shape: Sequence[int]) -> str:
        begun, e = self._zeros(()), self.element
        return self._value(
            f"linalg.reduce ins({value} : {self.kind(shape)}) outs({begun} : {self.kind(())}) "
            f"dimensions = [0, 1] (%a: {e}, %b: {e}) {{ %c = arith.addf %a, %b : {e}  "
            f"linalg.yield %c : {e} }}"
        )

    def where_positive(self, of: str, value: str, shape: Sequence[int]) -> str:
        zero, kind = self.number(0.0, shape), self.kind(shape)
        on = self._value(f"arith.cmpf ogt, {of}, {zero} : {kind}")
        return self._value(f"arith.select {on}, {value}, {zero} : {self.kind(shape, 'i1')}, {kind}")

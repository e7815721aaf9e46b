"""Random functions on tensors: contractions, elementwise operations, sums, transposes, slices,
values that are used twice, several results.

`functions()` -> FunctionText: MLIR text, and the shapes of its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

ELEMENTS = {"i64": np.int64, "f64": np.float64}


@dataclass
class FunctionText:
    """A function that is being written; values by name with their shapes."""

    element: str
    lines: list[str] = field(default_factory=list)
    arguments: dict[str, tuple[int, ...]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)

    def type_of(self, shape: tuple[int, ...]) -> str:
        return f"tensor<{'x'.join([*map(str, shape), self.element])}>"

    def value(self, text: str, shape: tuple[int, ...]) -> str:
        name = f"%v{len(self.shapes)}"
        self.lines.append(f"{name} = {text}")
        self.shapes[name] = shape
        return name

    def zeros(self, shape: tuple[int, ...]) -> str:
        kind = self.type_of(shape)
        empty = f"%e{len(self.lines)}"
        self.lines.append(f"{empty} = tensor.empty() : {kind}")
        filled = f"%z{len(self.lines)}"
        self.lines.append(
            f"{filled} = linalg.fill ins(%zero : {self.element}) outs({empty} : {kind}) -> {kind}"
        )
        return filled

    @property
    def suffix(self) -> str:
        return "f" if self.element.startswith("f") else "i"

    @property
    def text(self) -> str:
        given = ", ".join(f"{n}: {self.type_of(s)}" for n, s in self.arguments.items())
        kinds = ", ".join(self.type_of(self.shapes[name]) for name in self.results)
        zero = "0.0" if self.suffix == "f" else "0"
        body = "\n  ".join([f"%zero = arith.constant {zero} : {self.element}", *self.lines])
        back = f"return {', '.join(self.results)} : {kinds}"
        return f"func.func @f({given}) -> ({kinds}) {{\n  {body}\n  {back}\n}}\n"

    def given(self, seed: int) -> dict[str, np.ndarray]:
        """Arrays for the arguments: small numbers, whose sums do not overflow."""
        rng = np.random.default_rng(seed)
        kind = ELEMENTS[self.element]
        return {
            name.removeprefix("%"): (
                rng.integers(-3, 4, shape).astype(kind)
                if self.suffix == "i"
                else rng.uniform(-1, 1, shape).astype(kind)
            )
            for name, shape in self.arguments.items()
        }


@st.composite
def functions(draw: st.DrawFn, *, element: str = "") -> FunctionText:
    function = FunctionText(element or draw(st.sampled_from(sorted(ELEMENTS))))
    rows = draw(st.integers(1, 7))
    width = draw(st.integers(1, 5))
    function.arguments["%x"] = function.shapes["%x"] = (rows, width)
    for k in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(sorted(function.shapes)))
        _STEPS[draw(st.sampled_from(sorted(_STEPS)))](draw, function, name, k)
    computed = [name for name in function.shapes if name not in function.arguments]
    count = draw(st.integers(1, min(3, len(computed))))
    function.results = [computed[-1], *draw(st.permutations(computed))[: count - 1]]
    return function


def _contract(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    shape = function.shapes[name]
    if len(shape) != 2:
        _apply(draw, function, name, k)
        return
    weight, out = f"%w{k}", (shape[0], draw(st.integers(1, 5)))
    function.arguments[weight] = function.shapes[weight] = (shape[1], out[1])
    begun = function.zeros(out)
    kinds = [function.type_of(s) for s in (shape, function.shapes[weight], out)]
    function.value(
        f"linalg.matmul ins({name}, {weight} : {kinds[0]}, {kinds[1]}) "
        f"outs({begun} : {kinds[2]}) -> {kinds[2]}",
        out,
    )


def _gradient(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    """A product over the first dimension of two values, which is a batch's as a rule."""
    shape = function.shapes[name]
    others = [n for n, s in function.shapes.items() if len(s) == 2 and s[:1] == shape[:1]]
    if len(shape) != 2 or not others:
        _apply(draw, function, name, k)
        return
    other = draw(st.sampled_from(sorted(others)))
    out = (shape[1], function.shapes[other][1])
    begun = function.zeros(out)
    kinds = [function.type_of(s) for s in (shape, function.shapes[other], out)]
    forms = ("(b, i)", "(b, j)", "(i, j)")
    maps = ", ".join(f"affine_map<(i, j, b) -> {form}>" for form in forms)
    e, f = function.element, function.suffix
    function.value(
        f"linalg.generic {{indexing_maps = [{maps}], iterator_types = "
        f'["parallel", "parallel", "reduction"]}} ins({name}, {other} : {kinds[0]}, {kinds[1]}) '
        f"outs({begun} : {kinds[2]}) {{ ^bb0(%a: {e}, %b: {e}, %s: {e}): "
        f"%p = arith.mul{f} %a, %b : {e}  %q = arith.add{f} %s, %p : {e}  linalg.yield %q : {e} }} "
        f"-> {kinds[2]}",
        out,
    )


def _apply(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    shape = function.shapes[name]
    same = sorted(n for n, s in function.shapes.items() if s == shape)
    other = draw(st.sampled_from(same))
    op = draw(st.sampled_from(("add", "sub", "mul")))
    function.value(
        f"arith.{op}{function.suffix} {name}, {other} : {function.type_of(shape)}", shape
    )


def _sum(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    shape = function.shapes[name]
    if not shape:
        _apply(draw, function, name, k)
        return
    dim = draw(st.integers(0, len(shape) - 1))
    out = shape[:dim] + shape[dim + 1 :]
    begun = function.zeros(out)
    e = function.element
    function.value(
        f"linalg.reduce ins({name} : {function.type_of(shape)}) outs({begun} : "
        f"{function.type_of(out)}) dimensions = [{dim}] (%a: {e}, %b: {e}) {{ "
        f"%c = arith.add{function.suffix} %a, %b : {e}  linalg.yield %c : {e} }}",
        out,
    )


def _transpose(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    shape = function.shapes[name]
    if len(shape) != 2:
        _apply(draw, function, name, k)
        return
    out = shape[::-1]
    begun = function.zeros(out)
    function.value(
        f"linalg.transpose ins({name} : {function.type_of(shape)}) "
        f"outs({begun} : {function.type_of(out)}) permutation = [1, 0]",
        out,
    )


def _broadcast(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    shape = function.shapes[name]
    if len(shape) > 1:
        _apply(draw, function, name, k)
        return
    out = (draw(st.integers(1, 6)), *shape)
    begun = function.zeros(out)
    function.value(
        f"linalg.broadcast ins({name} : {function.type_of(shape)}) "
        f"outs({begun} : {function.type_of(out)}) dimensions = [0]",
        out,
    )


def _row_number(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    """Each element plus the number of its row: blocks have to know where they begin."""
    shape = function.shapes[name]
    if len(shape) != 2:
        _apply(draw, function, name, k)
        return
    kind, e = function.type_of(shape), function.element
    begun = function.zeros(shape)
    cast = "%n = arith.index_cast %r : index to i64"
    if e != "i64":
        cast += f"  %m = arith.sitofp %n : i64 to {e}"
    number = "%n" if e == "i64" else "%m"
    same = "affine_map<(i, j) -> (i, j)>"
    function.value(
        f"linalg.generic {{indexing_maps = [{same}, {same}], "
        f'iterator_types = ["parallel", "parallel"]}} ins({name} : {kind}) outs({begun} : {kind}) '
        f"{{ ^bb0(%a: {e}, %b: {e}): %r = linalg.index 0 : index  {cast}  "
        f"%c = arith.add{function.suffix} %a, {number} : {e}  linalg.yield %c : {e} }} -> {kind}",
        shape,
    )


def _constant(draw: st.DrawFn, function: FunctionText, name: str, k: int) -> None:
    shape = function.shapes[name]
    number = draw(st.integers(-2, 2))
    text = f"{number}.0" if function.suffix == "f" else str(number)
    kind = function.type_of(shape)
    made = f"%c{len(function.lines)}"
    function.lines.append(f"{made} = arith.constant dense<{text}> : {kind}")
    function.value(f"arith.add{function.suffix} {name}, {made} : {kind}", shape)


_STEPS = {
    "apply": _apply,
    "broadcast": _broadcast,
    "constant": _constant,
    "contract": _contract,
    "gradient": _gradient,
    "row number": _row_number,
    "sum": _sum,
    "transpose": _transpose,
}

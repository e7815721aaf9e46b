"""Contracted expressions compute what the rule says, exactly: against fractions in Python."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.arithmetic.contract_fma import ContractFma
from tests.fused import fma, rounded
from tests.kernels.jit import Machine
from tests.quick import examples

INPUTS = 3
OPERATIONS = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}

Node = tuple[str, int, int]
"""An operation on two earlier values: inputs first, then the nodes before."""


def special(kind: type) -> list[Any]:
    """Where rounding is delicate: subnormal, next to 1, near overflow, and no numbers at all."""
    limits = np.finfo(kind)
    least, root = limits.smallest_subnormal, np.sqrt(limits.max)
    known = [0.0, -0.0, 1.0, -1.0, 1 / 3, np.inf, -np.inf, np.nan]
    return [
        *map(kind, known),
        *(least, -least, limits.tiny, np.sqrt(limits.tiny) * kind(0.75), root * kind(1.5)),
        *(limits.max, -limits.max, kind(1) + limits.eps, kind(1) - limits.epsneg),
    ]


@st.composite
def expressions(draw: st.DrawFn) -> list[Node]:
    """Values may be used twice; the last one is the result."""
    count = draw(st.integers(2, 8))
    places = [st.integers(max(0, INPUTS + k - 4), INPUTS + k - 1) for k in range(count)]
    names = st.sampled_from(["mulf", "mulf", "addf", "addf", "subf", "divf"])
    return [(draw(names), draw(place), draw(place)) for place in places]


def text_of(nodes: list[Node], element: str, size: int) -> str:
    kind = f"memref<{size}x{element}>"
    lines = [f"%v{k} = affine.load %in{k}[%i] : {kind}" for k in range(INPUTS)]
    for k, (name, a, b) in enumerate(nodes):
        lines.append(f"%v{INPUTS + k} = arith.{name} %v{a}, %v{b} : {element}")
    lines.append(f"affine.store %v{INPUTS + len(nodes) - 1}, %out[%i] : {kind}")
    arguments = ", ".join(
        f"%{name}: {kind}" for name in (*(f"in{k}" for k in range(INPUTS)), "out")
    )
    body = "\n".join(lines)
    return f"func.func @f({arguments}) {{ affine.for %i = 0 to {size} {{\n{body}\n}} return }}"


@dataclass
class Rule:
    """The pass once more, on values in place of operations: what is added to what."""

    nodes: list[Node]

    def value(self, inputs: list[Any]) -> Any:
        self.values: list[Any] = list(inputs)
        for name, a, b in self.nodes:
            left, right = self.values[a], self.values[b]
            if name in ("addf", "subf") and self.is_product(a):
                found = fma(*self.factors(a), -right if name == "subf" else right)
            elif name in ("addf", "subf") and self.is_product(b):
                x, y = self.factors(b)
                found = fma(-x if name == "subf" else x, y, left)
            else:
                with np.errstate(all="ignore"):
                    found = OPERATIONS[name](left, right)
            self.values.append(found)
        return self.values[-1]

    def is_product(self, place: int) -> bool:
        uses = sum((a == place) + (b == place) for _, a, b in self.nodes)
        return place >= INPUTS and self.nodes[place - INPUTS][0] == "mulf" and uses == 1

    def factors(self, place: int) -> tuple[Any, Any]:
        _, a, b = self.nodes[place - INPUTS]
        return self.values[a], self.values[b]


@settings(max_examples=examples(40), deadline=None)
@given(nodes=expressions(), element=st.sampled_from(["f32", "f64"]), seed=st.integers(0, 2**32 - 1))
def test_what_is_computed(nodes: list[Node], element: str, seed: int) -> None:
    kind = {"f32": np.float32, "f64": np.float64}[element]
    rng, size = np.random.default_rng(seed), 64
    inputs = [rng.choice(np.array(special(kind), kind), size) for _ in range(INPUTS)]
    for array in inputs:
        array[: size // 2] = rng.normal(size=size // 2)
    context = ir.Context()
    module = ir.Module.parse(text_of(nodes, element, size), context)
    run_passes(module.operation, (ContractFma(),))
    machine = Machine([("f", str(module.body.operations[0]))], context)
    arguments = {f"in{k}": array for k, array in enumerate(inputs)}
    got = machine.call("f", {**arguments, "out": np.full(size, np.nan, kind)})["out"]
    want = np.array([Rule(nodes).value([x[k] for x in inputs]) for k in range(size)], kind)
    bits = {4: np.uint32, 8: np.uint64}[want.itemsize]
    same = (got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), [x[~same] for x in (*inputs, got, want)]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_truth_rounds_as_numpy_does(kind: type) -> None:
    """With one factor 1, and of a product alone, NumPy knows the roundings."""
    numbers = [x for x in special(kind) if np.isfinite(x)]
    for a in numbers:
        for b in numbers:
            with np.errstate(all="ignore"):
                total, product = a + b, a * b
            assert fma(a, kind(1), b) == total
            exact = Fraction(float(a)) * Fraction(float(b))
            assert exact == 0 or rounded(exact, kind) == product


TREES = {
    "addf x (a·b + c·a)": lambda x, a, b, c: fma(c, a, fma(a, b, x)),
    "addf (a·b - c·a) x": lambda x, a, b, c: fma(-c, a, fma(a, b, x)),
    "subf x (a·b - (c·a - b·c))": lambda x, a, b, c: fma(-b, c, fma(c, a, fma(-a, b, x))),
}
"""Updates of an element x, and what they are to compute."""

BODIES = {
    "addf x (a·b + c·a)": "%r = arith.addf %p, %q : {t}\n %n = arith.addf %x, %r : {t}",
    "addf (a·b - c·a) x": "%r = arith.subf %p, %q : {t}\n %n = arith.addf %r, %x : {t}",
    "subf x (a·b - (c·a - b·c))": "%s = arith.mulf %b, %c : {t}\n %u = arith.subf %q, %s : {t}\n"
    " %r = arith.subf %p, %u : {t}\n %n = arith.subf %x, %r : {t}",
}


@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("tree", TREES)
def test_products_go_to_their_element_one_by_one(tree: str, element: str) -> None:
    kind = {"f32": np.float32, "f64": np.float64}[element]
    rng, size = np.random.default_rng(0), 256
    inputs = {name: rng.choice(np.array(special(kind), kind), size) for name in "xabc"}
    for array in inputs.values():
        array[: size // 2] = rng.normal(size=size // 2)
    memory = f"memref<{size}x{element}>"
    loads = "\n".join(f"%{n} = affine.load %m{n}[%i] : {memory}" for n in "xabc")
    arguments = ", ".join(f"%m{name}: {memory}" for name in "xabc")
    body = BODIES[tree].format(t=element)
    text = f"""func.func @f({arguments}) {{ affine.for %i = 0 to {size} {{
      {loads}
      %p = arith.mulf %a, %b : {element}
      %q = arith.mulf %c, %a : {element}
      {body}
      affine.store %n, %mx[%i] : {memory} }} return }}"""
    context = ir.Context()
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (ContractFma(),))
    assert "arith.mulf" not in str(module)
    machine = Machine([("f", str(module.body.operations[0]))], context)
    got = machine.call("f", {f"m{name}": array for name, array in inputs.items()})["mx"]
    rows = zip(*inputs.values(), strict=True)
    want = np.array([TREES[tree](*row) for row in rows], kind)
    bits = {4: np.uint32, 8: np.uint64}[want.itemsize]
    same = (got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))
    assert same.all(), np.flatnonzero(~same)

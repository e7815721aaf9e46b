"""Minima and maxima of every pair: NaN wins, and -0 lies below +0."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.host.ieee_min_max import IeeeMinMax
from tests.kernels.jit import Machine


def extreme(which: str, element: str, pairs: int, lanes: int) -> str:
    """C[i] = the minimum or maximum of A[i] and B[i], some at a time."""
    kind = f"memref<{pairs}x{element}>"
    vector = f"vector<{lanes}x{element}>" if lanes > 1 else element
    load, store, types = ("vector.load", "vector.store", f"{kind}, {vector}")
    if lanes == 1:
        load, store, types = "memref.load", "memref.store", kind
    return f"""func.func @f(%A: {kind}, %B: {kind}, %C: {kind}) {{
      affine.for %i = 0 to {pairs} step {lanes} {{
        %a = {load} %A[%i] : {types}
        %b = {load} %B[%i] : {types}
        %c = arith.{which}f %a, %b : {vector}
        {store} %c, %C[%i] : {types} }}
      return }}"""


def extreme_of_all(which: str, element: str, count: int) -> str:
    """C[0] = the least or greatest of A, which a loop hands on."""
    return f"""func.func @f(%A: memref<{count}x{element}>, %C: memref<1x{element}>) {{
      %c0 = arith.constant 0 : index
      %first = memref.load %A[%c0] : memref<{count}x{element}>
      %all = affine.for %i = 1 to {count} iter_args(%old = %first) -> {element} {{
        %a = affine.load %A[%i] : memref<{count}x{element}>
        %new = arith.{which}f %old, %a : {element}
        affine.yield %new : {element} }}
      memref.store %all, %C[%c0] : memref<1x{element}>
      return }}"""


def computed(text: str, machine: str, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    context = ir.Context()
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (IeeeMinMax(machine),))
    assert not any(op.name.endswith("imumf") for op in operations_in(module.operation))
    with context:
        return Machine([("after", str(module))], context).call("after", arrays)


def assert_same(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_array_equal(got, want)
    zeros = want == 0
    np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(want)[zeros])


def wanted(which: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    negative = (
        np.signbit(a) | np.signbit(b) if which == "minimum" else np.signbit(a) & np.signbit(b)
    )
    both = (a == 0) & (b == 0)
    return np.where(both, np.where(negative, -0.0, 0.0), getattr(np, which)(a, b)).astype(a.dtype)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("which", ["minimum", "maximum"])
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_every_pair(
    element: str, dtype: type[np.floating], lanes: int, which: str, machine: str
) -> None:
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    values = [0.0, 1.0, 1.5, tiny, huge, np.inf, np.nan]
    signed = np.array([*values, *(-value for value in values), 2.0, -2.0], dtype)
    a, b = (each.ravel() for each in np.meshgrid(signed, signed))
    text = extreme(which, element, len(a), lanes)
    assert_same(computed(text, machine, A=a, B=b, C=np.zeros_like(a))["C"], wanted(which, a, b))


@pytest.mark.parametrize("which", ["minimum", "maximum"])
@pytest.mark.parametrize("special", [None, np.nan, -np.inf, np.inf, 0.0, -0.0])
@pytest.mark.parametrize("count", [2, 3, 8, 37, 1000])
def test_of_a_loop(which: str, special: float | None, count: int) -> None:
    values = np.random.default_rng(count).choice([-0.0, 0.0], count)
    if count % 2:
        values = np.random.default_rng(count).normal(size=count)
    if special is not None:
        values[count // 2] = special
    want = values[:1]
    for value in values[1:]:
        want = wanted(which, want, np.array([value]))
    text = extreme_of_all(which, "f64", count)
    assert_same(computed(text, "x86_64", A=values, C=np.zeros(1))["C"], want)

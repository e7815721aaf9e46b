"""Minima of vectors are what they were for every pair: NaN wins, and -0 lies below +0."""

from __future__ import annotations

import numpy as np
import pytest
from mlir import ir

from avial_lab.passes.minimum_to_x86 import MinimumToX86
from avial_lab.passes.operations import operations_in
from avial_lab.pipelines import run_passes
from tests.kernels.jit import Machine


def least(element: str, pairs: int, lanes: int) -> str:
    """C[i] = the minimum of A[i] and B[i], some at a time."""
    kind = f"memref<{pairs}x{element}>"
    vector = f"vector<{lanes}x{element}>" if lanes > 1 else element
    load, store, types = ("vector.load", "vector.store", f"{kind}, {vector}")
    if lanes == 1:
        load, store, types = "memref.load", "memref.store", kind
    return f"""func.func @f(%A: {kind}, %B: {kind}, %C: {kind}) {{
      affine.for %i = 0 to {pairs} step {lanes} {{
        %a = {load} %A[%i] : {types}
        %b = {load} %B[%i] : {types}
        %c = arith.minimumf %a, %b : {vector}
        {store} %c, %C[%i] : {types} }}
      return }}"""


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(("element", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_every_pair(element: str, dtype: type[np.floating], lanes: int) -> None:
    tiny, huge = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    values = [0.0, 1.0, 1.5, tiny, huge, np.inf, np.nan]
    signed = np.array([*values, *(-value for value in values), 2.0, -2.0], dtype)
    a, b = (each.ravel() for each in np.meshgrid(signed, signed))
    context = ir.Context()
    module = ir.Module.parse(least(element, len(a), lanes), context)
    run_passes(module.operation, (MinimumToX86("x86_64"),))
    assert not any(op.name == "arith.minimumf" for op in operations_in(module.operation))
    with context:
        machine = Machine([("after", str(module))], context)
    got = machine.call("after", {"A": a, "B": b, "C": np.zeros_like(a)})["C"]
    zeros = (a == 0) & (b == 0)
    want = np.where(zeros, np.where(np.signbit(a) | np.signbit(b), -0.0, 0.0), np.minimum(a, b))
    np.testing.assert_array_equal(got, want.astype(dtype))
    np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(want)[zeros])


def test_other_machines_have_an_instruction() -> None:
    module = ir.Module.parse(least("f64", 8, 8), ir.Context())
    run_passes(module.operation, (MinimumToX86("aarch64"),))
    assert any(op.name == "arith.minimumf" for op in operations_in(module.operation))

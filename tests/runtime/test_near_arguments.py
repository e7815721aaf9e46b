"""Sines and cosines in loops are the same bits whether arguments near them are far or not."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.elementary.functions import LIMITS
from avial_lab.runtime.cluster import Cluster

LENGTH = 1300
"""Two whole strips, and a part of one."""

BODIES = {
    "in place": """
      affine.for %i = 0 to 1300 {
        %x = affine.load %X[%i] : $M
        %y = math.sin %x : $T
        affine.store %y, %X[%i] : $M
      }""",
    "one of another": """
      affine.for %i = 0 to 1300 {
        %x = affine.load %X[%i] : $M
        %y = math.sin %x : $T
        %u = arith.addf %x, %x : $T
        %v = math.cos %u : $T
        %w = arith.divf %v, %y : $T
        %z = math.cos %w : $T
        affine.store %z, %Y[1299 - %i] : $M
      }""",
    "some of them": """
      scf.for %i = %c0 to %c1299 step %c3 {
        %x = memref.load %X[%i] : $M
        %y = math.cos %x : $T
        memref.store %y, %Y[%i] : $M
      }""",
    "what the one before stored": """
      affine.for %i = 1 to 1300 {
        %x = affine.load %X[%i - 1] : $M
        %y = math.sin %x : $T
        %z = affine.load %X[%i] : $M
        %w = arith.addf %y, %z : $T
        affine.store %w, %X[%i] : $M
      }""",
    "a product of sizes": """
      affine.for %j = 0 to 2 {
        %p = affine.for %i = 0 to 1300 iter_args(%q = %one) -> $T {
          %x = affine.load %X[%i] : $M
          %y = math.sin %x : $T
          %n = arith.maximumf %q, %y : $T
          affine.yield %n : $T
        }
        affine.store %p, %Y[%j] : $M
      }""",
}


@pytest.mark.mpi
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("body", BODIES)
def test_values_hang_on_their_arguments_alone(body: str, element: str, cluster: Cluster) -> None:
    text = f"""
    func.func @f(%X: $M, %Y: $M) {{
      %one = arith.constant 0.25 : $T
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %c1299 = arith.constant 1299 : index
      {BODIES[body]}
      return
    }}""".replace("$M", f"memref<{LENGTH}x{element}>").replace("$T", element)
    dtype, rng = np.dtype(f"f{int(element[1:]) // 8}"), np.random.default_rng(5)
    limit = LIMITS["math.sin"][int(element[1:])]
    near = rng.normal(size=LENGTH).astype(dtype) * 100
    last = near.copy()
    last[-1] = limit
    beyond = last.copy()
    beyond[600] = np.nextafter(dtype.type(limit), dtype.type(np.inf))
    odd = near.copy()
    odd[rng.integers(0, LENGTH, 9)] = [
        np.inf,
        -np.inf,
        np.nan,
        -np.nan,
        1e30,
        -1e30,
        -0.0,
        1e-40,
        0,
    ]
    arrays = {"X": near.copy(), "Y": np.zeros(LENGTH, dtype)}
    program = avial_lab.compile(text, arrays=arrays, ranks=1)
    asked = "avial.near" in program.stages["loops"].text
    assert asked == (body != "what the one before stored")
    alone = avial_lab.compile(
        text,
        arrays={name: array.copy() for name, array in arrays.items()},
        ranks=1,
        without="near-arguments",
    )
    for given in (near, last, beyond, odd):
        for each in (program, alone):
            each.arrays["X"][:], each.arrays["Y"][:] = given, 0
        want = program.reference().data
        for each in (program, alone):
            each.run(cluster)
            for name in "XY":
                np.testing.assert_array_equal(each.arrays[name], want[name])

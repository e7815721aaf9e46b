"""Sines and cosines in loops are the same bits whether arguments near them are far or not."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.compiler.codegen.math.functions import LIMITS
from avial_lab.runtime.launch.cluster import Cluster

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


CHOSEN = """
func.func @f(%t: memref<1xi64>, %X: memref<1300xf64>, %Y: memref<1300xf64>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %big = arith.constant 1.0e7 : f64
  %n = memref.load %t[%c0] : memref<1xi64>
  %is = arith.cmpi sgt, %n, %zero : i64
  %m = arith.select %is, %X, %Y : memref<1300xf64>
  affine.for %i = 1 to 1300 {
    %x = memref.load FROM[%i] : memref<1300xf64>
    %h = affine.load %X[%i - 1] : memref<1300xf64>
    %y = math.sin %h : f64
    %z = arith.addf %y, %big : f64
    %w = arith.addf %z, %x : f64
    memref.store %w, TO[%i] : memref<1300xf64>
  }
  return
}"""


@pytest.mark.mpi
@pytest.mark.parametrize(("load", "store"), [("%m", "%X"), ("%X", "%m"), ("%Y", "%m")])
def test_arrays_that_are_chosen_may_be_what_is_asked(
    load: str, store: str, cluster: Cluster
) -> None:
    """What the loop stores then is a later argument."""
    rng = np.random.default_rng(5)
    arrays = {"t": np.array([1]), "X": rng.normal(size=1300), "Y": rng.normal(size=1300)}
    text = CHOSEN.replace("FROM", load).replace("TO", store)
    program = avial_lab.compile(text, arrays=arrays, ranks=1)
    want = program.reference().data
    program.run(cluster)
    for name in "XY":
        np.testing.assert_array_equal(arrays[name], want[name])


@pytest.mark.quick("*-f64")
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
        without="version-by-argument",
    )
    for given in (near, last, beyond, odd):
        for each in (program, alone):
            each.arrays["X"][:], each.arrays["Y"][:] = given, 0
        want = program.reference().data
        for each in (program, alone):
            each.run(cluster)
            for name in "XY":
                np.testing.assert_array_equal(each.arrays[name], want[name])

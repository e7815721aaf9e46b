"""Loops in vectors where iterations meet far apart have the reference's bits at every distance."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab
from avial_lab.runtime.launch.cluster import Cluster

LENGTH = 400
DISTANCES = (*range(-70, -60, 3), *range(-18, 19), 31, 32, 33, 63, 64, 65, 90)

BODIES = {
    "loads first": """
      %x = memref.load %D[%there] : $D
      %y = memref.load %D[%here] : $D
      %z = arith.addi %x, %y : $T
      memref.store %z, %D[%here] : $D""",
    "stores first": """
      %y = memref.load %B[%here] : $D
      memref.store %y, %D[%here] : $D
      %x = memref.load %D[%there] : $D
      %z = arith.addi %x, %y : $T
      memref.store %z, %B[%here] : $D""",
    "two distances": """
      %x = memref.load %D[%there] : $D
      %between = arith.subi %there, %w : index
      %y = memref.load %D[%between] : $D
      %z = arith.subi %x, %y : $T
      memref.store %z, %D[%here] : $D""",
}


@pytest.mark.quick("stores first-upwards-i32")
@pytest.mark.mpi
@pytest.mark.parametrize(
    "element",
    [
        pytest.param("i8", marks=pytest.mark.slow),
        "i32",
        pytest.param("i64", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "backwards",
    [
        pytest.param(False, id="upwards"),
        pytest.param(True, id="downwards", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("body", BODIES)
def test_every_distance(body: str, backwards: bool, element: str, cluster: Cluster) -> None:
    """Of a knapsack's kind: what is loaded stands `w` elements before what is stored."""
    here = "arith.subi %c399, %i" if backwards else "arith.addi %c0, %i"
    text = f"""
    func.func @f(%D: $D, %B: $D, %at: memref<1xi32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c399 = arith.constant 399 : index
      %first = arith.constant 180 : index
      %last = arith.constant 219 : index
      %narrow = memref.load %at[%c0] : memref<1xi32>
      %w = arith.index_cast %narrow : i32 to index
      scf.for %i = %first to %last step %c1 {{
        %here = {here} : index
        %there = arith.subi %here, %w : index
        {BODIES[body]}
      }}
      return
    }}""".replace("$D", f"memref<{LENGTH}x{element}>").replace("$T", element)
    dtype = np.dtype(f"int{element[1:]}")
    rng = np.random.default_rng(0)
    before = {name: rng.integers(-100, 100, LENGTH).astype(dtype) for name in "DB"}
    arrays = {name: before[name].copy() for name in "DB"} | {"at": np.zeros(1, np.int32)}
    program = avial_lab.compile(text, arrays=arrays, ranks=1)
    assert "safelen" in program.stages["loops"].text
    for distance in DISTANCES:
        for name in "DB":
            arrays[name][:] = before[name]
        arrays["at"][0] = distance
        want = program.reference().data
        program.run(cluster)
        for name in "DB":
            np.testing.assert_array_equal(arrays[name], want[name], f"{name} at {distance}")

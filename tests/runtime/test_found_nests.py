"""Functions that random nests once went wrong on, as small as they could be made."""

from __future__ import annotations

import numpy as np
import pytest

from avial_lab.program.compilation import compile as compile_program
from avial_lab.runtime.launch.cluster import Cluster

CASES: dict[str, tuple[str, dict[str, np.ndarray]]] = {
    # An indirect read was taken for covered as soon as one of its elements was.
    "an indirect read among elements that are written": (
        """func.func @f(%A: memref<5xi32>, %Q: memref<1xi32>, %D: memref<i32>) {
          %c0 = arith.constant 0 : index
          affine.for %i = 0 to 3 {
            %d = memref.load %D[] : memref<i32>
            affine.store %d, %A[2 * %i] : memref<5xi32>
            %q = memref.load %Q[%c0] : memref<1xi32>
            %k = arith.index_cast %q : i32 to index
            %x = memref.load %A[%k] : memref<5xi32>
            %y = arith.addi %d, %x : i32
            memref.store %y, %D[] : memref<i32>
          }
          return }""",
        {
            "A": np.array([7, 3, 0, -4, -4], np.int32),
            "Q": np.array([1], np.int32),
            "D": np.array(9, np.int32),
        },
    ),
    # MLIR's canonicalize ends the process at a bound in a loop that never runs.
    "a least of two ends in a loop that never runs": (
        """func.func @f(%A: memref<13x10xf32>) {
          %n = arith.constant 1 : index
          %x = arith.constant 1.0 : f32
          affine.for %i = 0 to 10 { affine.store %x, %A[0, %i] : memref<13x10xf32> }
          affine.for %i = 1 to affine_map<()[s0] -> (s0 - 1)>()[%n] {
            affine.for %j = 2 to min affine_map<(d0) -> (d0 + 2, 1)>(%i) {
              affine.store %x, %A[%i, %j] : memref<13x10xf32>
            }
          }
          return }""",
        {"A": np.zeros((13, 10), np.float32)},
    ),
    # The same where a size that the text leaves open is what says that it never runs.
    "antidiagonals of an array of one element": (
        """func.func @f(%A: memref<?x?xi32>) {
          %c0 = arith.constant 0 : index
          %n = memref.dim %A, %c0 : memref<?x?xi32>
          affine.for %d = 2 to affine_map<(n) -> (n * 2 - 1)>(%n) {
            affine.for %i = max affine_map<(d)[n] -> (1, d - n + 1)>(%d)[%n]
                         to min affine_map<(d)[n] -> (d, n)>(%d)[%n] {
              %x = affine.load %A[%i - 1, %d - %i] : memref<?x?xi32>
              affine.store %x, %A[%i, %d - %i] : memref<?x?xi32>
            }
          }
          return }""",
        {"A": np.ones((1, 1), np.int32)},
    ),
    # What phases wrote was recalled in a list that was too short for what came next.
    "two loops in a loop that repeat what they did": (
        """func.func @f(%A: memref<13x10xf32>, %B: memref<13x10xf32>) {
          affine.for %t = 0 to 6 {
            affine.for %i = 0 to 13 {
              %x = affine.load %B[%i, 9] : memref<13x10xf32>
              %y = affine.load %A[%i, 0] : memref<13x10xf32>
              affine.store %x, %A[%i, 0] : memref<13x10xf32>
              affine.store %y, %B[%i, 9] : memref<13x10xf32>
            }
            affine.for %i = 1 to 12 {
              %x = affine.load %A[%i - 1, 3] : memref<13x10xf32>
              affine.store %x, %B[%i, 4] : memref<13x10xf32>
            }
          }
          return }""",
        {
            "A": np.arange(130, dtype=np.float32).reshape(13, 10),
            "B": -np.arange(130, dtype=np.float32).reshape(13, 10),
        },
    ),
}


@pytest.mark.mpi
@pytest.mark.parametrize("name", CASES)
def test_found(name: str, cluster: Cluster) -> None:
    text, given = CASES[name]
    for ranks in (1, 2, 3):
        arrays = {key: array.copy() for key, array in given.items()}
        program = compile_program(text, arrays=arrays, ranks=ranks)
        program.run(cluster, check=True)

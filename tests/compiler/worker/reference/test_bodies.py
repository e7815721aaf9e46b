"""What a task's body may hold: each dialect run for its values."""

from __future__ import annotations

import resource

import numpy as np
import pytest

from tests.compiler.worker.reference.bodies import run

A = np.random.default_rng(3).integers(0, 50, 20).astype(np.int32)
ZEROS = np.zeros(20, np.int32)
INDICES = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c20 = arith.constant 20 : index
      %zero = arith.constant 0 : i32
"""
FIRST = np.zeros(20, np.int32)


def _first(value: int) -> np.ndarray:
    return np.concatenate([[value], ZEROS[1:]])


CASES = {
    "scf.while": (
        """
      %r:2 = scf.while (%i = %c0, %s = %zero) : (index, i32) -> (index, i32) {
        %go = arith.cmpi slt, %i, %c20 : index
        scf.condition(%go) %i, %s : index, i32
      } do {
      ^bb0(%i: index, %s: i32):
        %x = memref.load %a[%i] : memref<20xi32>
        %t = arith.addi %s, %x : i32
        %j = arith.addi %i, %c1 : index
        scf.yield %j, %t : index, i32
      }
      memref.store %r#1, %c[%c0] : memref<20xi32>""",
        _first(A.sum()),
    ),
    "scf.parallel with a reduction": (
        """
      %s = scf.parallel (%i) = (%c0) to (%c20) step (%c1) init (%zero) -> i32 {
        %x = memref.load %a[%i] : memref<20xi32>
        scf.reduce(%x : i32) {
        ^bb0(%p: i32, %q: i32):
          %t = arith.addi %p, %q : i32
          scf.reduce.return %t : i32
        }
      }
      memref.store %s, %c[%c0] : memref<20xi32>""",
        _first(A.sum()),
    ),
    "scf.forall": (
        """
      scf.forall (%i) in (20) {
        %x = memref.load %a[%i] : memref<20xi32>
        memref.store %x, %c[%i] : memref<20xi32>
      }""",
        A,
    ),
    "affine.if": (
        """
      affine.for %i = 0 to 20 {
        affine.if affine_set<(d0) : (d0 - 10 >= 0)>(%i) {
          %x = affine.load %a[%i - 10] : memref<20xi32>
          affine.store %x, %c[%i] : memref<20xi32>
        }
      }""",
        np.concatenate([ZEROS[:10], A[:10]]),
    ),
    "vector.load": (
        """
      scf.for %i = %c0 to %c20 step %c4 {
        %x = vector.load %a[%i] : memref<20xi32>, vector<4xi32>
        %y = arith.addi %x, %x : vector<4xi32>
        vector.store %y, %c[%i] : memref<20xi32>, vector<4xi32>
      }""",
        2 * A,
    ),
    "vector.transfer_read past the end": (
        """
      %c8 = arith.constant 8 : index
      scf.for %i = %c0 to %c20 step %c8 {
        %x = vector.transfer_read %a[%i], %zero : memref<20xi32>, vector<8xi32>
        %y = arith.addi %x, %x : vector<8xi32>
        vector.transfer_write %y, %c[%i] : vector<8xi32>, memref<20xi32>
      }""",
        2 * A,
    ),
    "memref.subview": (
        """
      %c5 = arith.constant 5 : index
      %s = memref.subview %c[%c5] [4] [2] : memref<20xi32> to memref<4xi32, strided<[2], offset: ?>>
      %t = memref.subview %a[0] [4] [1] : memref<20xi32> to memref<4xi32>
      memref.copy %t, %s : memref<4xi32> to memref<4xi32, strided<[2], offset: ?>>""",
        np.array([0] * 5 + [A[0], 0, A[1], 0, A[2], 0, A[3]] + [0] * 8),
    ),
    "memref.atomic_rmw": (
        """
      scf.for %i = %c0 to %c20 step %c1 {
        %x = memref.load %a[%i] : memref<20xi32>
        %old = memref.atomic_rmw addi %x, %c[%c0] : (i32, memref<20xi32>) -> i32
      }""",
        _first(A.sum()),
    ),
    "memref.alloca_scope": (
        """
      memref.alloca_scope {
        %t = memref.alloca() : memref<20xi32>
        memref.copy %a, %t : memref<20xi32> to memref<20xi32>
        memref.copy %t, %c : memref<20xi32> to memref<20xi32>
      }""",
        A,
    ),
    "scf.execute_region": (
        """
      %r = scf.execute_region -> i32 {
        %x = memref.load %a[%c1] : memref<20xi32>
        scf.yield %x : i32
      }
      memref.store %r, %c[%c0] : memref<20xi32>""",
        _first(A[1]),
    ),
}


@pytest.mark.quick("True-*")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bounds_checks", [False, True])
def test_body(name: str, bounds_checks: bool) -> None:
    body, wanted = CASES[name]
    result = run(INDICES + body, {"a": A, "c": ZEROS.copy()}, bounds_checks=bounds_checks)
    np.testing.assert_array_equal(result.data["c"], wanted)
    np.testing.assert_array_equal(result.data["a"], A)
    assert result.violations == ()


def test_functions_and_tables_of_the_cell() -> None:
    before = """
memref.global "private" constant @table : memref<20xi32> = dense<3>
func.func private @malloc(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  return %y : i32
}"""
    body = """
      %g = memref.get_global @table : memref<20xi32>
      affine.for %i = 0 to 20 {
        %x = affine.load %a[%i] : memref<20xi32>
        %y = func.call @malloc(%x) : (i32) -> i32
        %z = affine.load %g[%i] : memref<20xi32>
        %w = arith.addi %y, %z : i32
        affine.store %w, %c[%i] : memref<20xi32>
      }"""
    result = run(body, {"a": A, "c": ZEROS.copy()}, before=before)
    np.testing.assert_array_equal(result.data["c"], 2 * A + 3)


def test_pure_operations_between_tasks_reach_the_body() -> None:
    between = """
    %nine = arith.constant 9 : i32
    %part = memref.subview %c[5] [5] [1] : memref<20xi32>
      to memref<5xi32, strided<[1], offset: 5>>"""
    body = "linalg.fill ins(%nine : i32) outs(%part : memref<5xi32, strided<[1], offset: 5>>)"
    result = run(body, {"c": ZEROS.copy()}, between=between)
    np.testing.assert_array_equal(result.data["c"], [0] * 5 + [9] * 5 + [0] * 10)


def test_memory_of_a_body_is_freed_and_kept_off_the_stack() -> None:
    """20,000 rounds of 1 MiB each would need 20 GiB; the stack has 8 MiB."""
    arrays = {"a": A, "c": ZEROS.copy()}
    body = f"""{INDICES}
      %rounds = arith.constant 20000 : index
      %last = arith.constant 262143 : index
      scf.for %k = %c0 to %rounds step %c1 {{
        %small = memref.alloca() : memref<20xi32>
        %some = memref.alloca(%c20) : memref<?xi32>
        %large = memref.alloca() : memref<262144xi32>
        %heap = memref.alloc() : memref<262144xi32>
        memref.copy %a, %small : memref<20xi32> to memref<20xi32>
        %x = memref.load %small[%c1] : memref<20xi32>
        memref.store %x, %some[%c1] : memref<?xi32>
        memref.store %x, %large[%last] : memref<262144xi32>
        %y = memref.load %large[%last] : memref<262144xi32>
        memref.store %y, %heap[%last] : memref<262144xi32>
        %z = memref.load %heap[%last] : memref<262144xi32>
        memref.store %z, %c[%c0] : memref<20xi32>
      }}"""
    run(body, arrays)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run(body, arrays)
    assert result.data["c"][0] == A[1]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB

"""Small nests with their verdicts: which loops are parallel, which reduce, what forbids it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from inline_snapshot import snapshot
from mlir import ir

from avial_lab.compiler.analysis.parallelism.reductions import forbidding, reductions
from avial_lab.compiler.analysis.polyhedral.dependences import Dependence, dependences
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Scop
from tests.compiler.analysis.polyhedral.texts import scop_of


def verdicts(scop: Scop) -> list[str]:
    """One line for each loop."""
    known = dependences(scop)
    return [f"{'  ' * loop.depth}{loop}: {verdict(loop, scop, known)}" for loop in scop.loops]


def verdict(loop: Loop, scop: Scop, known: Sequence[Dependence]) -> str:
    against = forbidding(loop, scop, known)
    if against:
        return against[0].reason()
    return ", ".join(str(r) for r in reductions(loop, scop, known)) or "parallel"


CASES = {
    "a first difference": (
        """func.func @f(%A: memref<100xf32>, %B: memref<100xf32>) {
          affine.for %i = 1 to 100 {
            %x = affine.load %A[%i - 1] : memref<100xf32>
            affine.store %x, %B[%i] : memref<100xf32>
          }
          return }""",
        snapshot(["i: parallel"]),
    ),
    "a chain": (
        """func.func @f(%A: memref<100xf32>) {
          affine.for %i = 2 to 100 {
            %x = affine.load %A[%i - 2] : memref<100xf32>
            affine.store %x, %A[%i] : memref<100xf32>
          }
          return }""",
        snapshot(["i: A[i - 2] is written by iteration i - 2: line 4, as A[i]"]),
    ),
    "an in-place shift": (
        """func.func @f(%A: memref<?xf32>, %n: index) {
          affine.for %i = 0 to %n {
            %x = affine.load %A[%i + 1] : memref<?xf32>
            affine.store %x, %A[%i] : memref<?xf32>
          }
          return }""",
        snapshot(["i: A[i + 1] is overwritten by the next iteration of i: line 4, as A[i]"]),
    ),
    "one cell for all": (
        """func.func @f(%A: memref<100xf32>, %x: f32) {
          affine.for %i = 0 to 100 { affine.store %x, %A[0] : memref<100xf32> }
          return }""",
        snapshot(["i: A[0] is written again by a later iteration of i: line 2"]),
    ),
    "read after read": (
        """func.func @f(%A: memref<100xf32>, %B: memref<100xf32>) {
          affine.for %i = 0 to 100 {
            %x = affine.load %A[0] : memref<100xf32>
            %y = affine.load %A[%i] : memref<100xf32>
            affine.store %y, %B[%i] : memref<100xf32>
          }
          return }""",
        snapshot(["i: parallel"]),
    ),
    "evens and odds": (
        """func.func @f(%A: memref<?xf32>, %n: index) {
          affine.for %i = 0 to %n {
            %x = affine.load %A[2 * %i + 1] : memref<?xf32>
            affine.store %x, %A[2 * %i] : memref<?xf32>
          }
          return }""",
        snapshot(["i: parallel"]),
    ),
    "a step that jumps over": (
        """func.func @f(%A: memref<100xf32>) {
          affine.for %i = 2 to 100 step 2 {
            %x = affine.load %A[%i - 1] : memref<100xf32>
            affine.store %x, %A[%i] : memref<100xf32>
          }
          affine.for %j = 4 to 100 step 2 {
            %x = affine.load %A[%j - 4] : memref<100xf32>
            affine.store %x, %A[%j] : memref<100xf32>
          }
          return }""",
        snapshot(
            [
                "i: parallel",
                "i: A[i - 4] is written by iteration i - 4: line 8, as A[i]",
            ]
        ),
    ),
    "an if that keeps writers and readers apart": (
        """func.func @f(%A: memref<100xf32>) {
          affine.for %i = 0 to 100 {
            affine.if affine_set<(d0) : (d0 - 50 >= 0)>(%i) {
              %x = affine.load %A[%i - 50] : memref<100xf32>
              affine.store %x, %A[%i] : memref<100xf32>
            }
          }
          return }""",
        snapshot(["i: parallel"]),
    ),
    "the transposed triangle": (
        """func.func @f(%A: memref<?x?xf32>, %n: index) {
          affine.for %i = 0 to %n {
            affine.for %j = 0 to affine_map<(d0) -> (d0)>(%i) {
              %x = affine.load %A[%i, %j] : memref<?x?xf32>
              affine.store %x, %A[%j, %i] : memref<?x?xf32>
            }
          }
          return }""",
        snapshot(["i: parallel", "  j: parallel"]),
    ),
    "time steps by copy": (
        """func.func @f(%A: memref<100xf32>, %B: memref<100xf32>, %n: index) {
          affine.for %t = 0 to %n {
            affine.for %i = 1 to 99 {
              %x = affine.load %A[%i - 1] : memref<100xf32>
              affine.store %x, %B[%i] : memref<100xf32>
            }
            memref.copy %B, %A : memref<100xf32> to memref<100xf32>
          }
          return }""",
        snapshot(
            ["i: B[…] is written by an earlier iteration of i: line 5, as B[j]", "  j: parallel"]
        ),
    ),
    "rows by subview": (
        """func.func @f(%A: memref<8x100xf32>, %B: memref<100xf32>) {
          affine.for %i = 0 to 8 {
            %row = memref.subview %A[%i, 0] [1, 100] [1, 1]
              : memref<8x100xf32> to memref<100xf32, strided<[1], offset: ?>>
            memref.copy %B, %row : memref<100xf32> to memref<100xf32, strided<[1], offset: ?>>
          }
          return }""",
        snapshot(["i: parallel"]),
    ),
    "overlapping windows": (
        """func.func @f(%A: memref<100xf32>, %B: memref<8xf32>) {
          affine.for %i = 0 to 10 {
            %at = affine.apply affine_map<(d0) -> (d0 * 7)>(%i)
            %w = memref.subview %A[%at] [8] [1]
              : memref<100xf32> to memref<8xf32, strided<[1], offset: ?>>
            memref.copy %B, %w : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
          }
          return }""",
        snapshot(["i: A[…] is written again by the next iteration of i: line 6"]),
    ),
    "a buffer of each iteration's own": (
        """func.func @f(%A: memref<100xf32>) {
          affine.for %i = 0 to 100 {
            %tmp = memref.alloca() : memref<1xf32>
            %x = affine.load %A[%i] : memref<100xf32>
            affine.store %x, %tmp[0] : memref<1xf32>
            %y = affine.load %tmp[0] : memref<1xf32>
            affine.store %y, %A[%i] : memref<100xf32>
          }
          return }""",
        snapshot(["i: parallel"]),
    ),
    "a buffer they share": (
        """func.func @f(%A: memref<100xf32>) {
          %tmp = memref.alloca() : memref<1xf32>
          affine.for %i = 0 to 100 {
            %x = affine.load %A[%i] : memref<100xf32>
            affine.store %x, %tmp[0] : memref<1xf32>
            %y = affine.load %tmp[0] : memref<1xf32>
            affine.store %y, %A[%i] : memref<100xf32>
          }
          return }""",
        snapshot(["i: tmp[0] is written by an earlier iteration of i: line 5"]),
    ),
    "an indirect index": (
        """func.func @f(%A: memref<100xf32>, %p: memref<100xindex>, %x: f32) {
          affine.for %i = 0 to 100 {
            %k = affine.load %p[%i] : memref<100xindex>
            memref.store %x, %A[%k] : memref<100xf32>
          }
          return }""",
        snapshot(["i: A[p[i]] may be written again by a later iteration of i: line 4"]),
    ),
    "an indirect row": (
        """func.func @f(%A: memref<100x9xf32>, %p: memref<100xindex>, %x: f32) {
          affine.for %i = 0 to 100 {
            %k = affine.load %p[%i] : memref<100xindex>
            affine.for %j = 0 to 9 { memref.store %x, %A[%k, %j] : memref<100x9xf32> }
          }
          return }""",
        snapshot(
            [
                "i: A[p[i], j] may be written again by a later iteration of i: line 4",
                "  j: parallel",
            ]
        ),
    ),
    "a while loop": (
        """func.func @f(%A: memref<100xf32>, %e: memref<i1>, %x: f32) {
          scf.while : () -> () {
            %c = memref.load %e[] : memref<i1>
            scf.condition(%c)
          } do {
            affine.for %i = 0 to 100 { affine.store %x, %A[%i] : memref<100xf32> }
            scf.yield
          }
          return }""",
        snapshot(
            [
                "iteration: scf.while decides after each iteration whether to run another: line 2",
                "  i: parallel",
            ]
        ),
    ),
    "a call": (
        """func.func @f(%A: memref<100xf32>) {
          affine.for %i = 0 to 100 { func.call @g(%A) : (memref<100xf32>) -> () }
          return }
        func.func private @g(memref<100xf32>)""",
        snapshot(["i: A[…] may be written by an earlier iteration of i: line 2"]),
    ),
    "a call of libm": (
        """func.func @f(%A: memref<100xf64>) {
          affine.for %i = 0 to 100 {
            %x = affine.load %A[%i] : memref<100xf64>
            %y = func.call @exp(%x) : (f64) -> f64
            affine.store %y, %A[%i] : memref<100xf64>
          }
          return }
        func.func private @exp(f64) -> f64""",
        snapshot(["i: parallel"]),
    ),
    "memory of a loop that goes on behind it": (
        """func.func @f(%A: memref<?xf32>, %B: memref<?xf32>, %n: index, %p: index) {
          %C = scf.for %i = %p to %n step %p iter_args(%from = %A) -> (memref<?xf32>) {
            %to = memref.alloc(%i) : memref<?xf32>
            scf.yield %to : memref<?xf32>
          }
          affine.for %j = 0 to %n {
            %x = affine.load %C[%j] : memref<?xf32>
            affine.store %x, %B[%j] : memref<?xf32>
          }
          return }""",
        snapshot(["i: parallel", "i: parallel"]),
    ),
    "either of two arrays": (
        """func.func @f(%A: memref<100xf32>, %B: memref<100xf32>, %p: i1, %x: f32) {
          %s = arith.select %p, %A, %B : memref<100xf32>
          affine.for %i = 1 to 100 {
            %y = affine.load %A[%i - 1] : memref<100xf32>
            memref.store %y, %s[%i] : memref<100xf32>
          }
          return }""",
        snapshot(["i: A[i - 1] may be written by an earlier iteration of i: line 5, as A[…]"]),
    ),
    "matmul in a loop": (
        """func.func @f(%A: memref<8x8xf32>, %B: memref<8x8xf32>, %C: memref<8x8xf32>) {
          affine.for %i = 0 to 4 {
            linalg.matmul ins(%A, %B : memref<8x8xf32>, memref<8x8xf32>)
              outs(%C : memref<8x8xf32>)
          }
          return }""",
        snapshot(["i: C[…] is written by an earlier iteration of i: line 3"]),
    ),
    "i32 from a front end, guarded by its own bound": (
        """func.func @f(%A: memref<?xf32>, %m: i32) {
          %n = arith.index_cast %m : i32 to index
          %one = arith.constant 1 : i32
          %c1 = arith.constant 1 : index
          scf.for %i = %c1 to %n step %c1 {
            %k = arith.index_cast %i : index to i32
            %less = arith.subi %k, %one : i32
            %at = arith.index_cast %less : i32 to index
            %x = memref.load %A[%at] : memref<?xf32>
            memref.store %x, %A[%i] : memref<?xf32>
          }
          return }""",
        snapshot(["i: A[i - 1] is written by the previous iteration of i: line 10, as A[i]"]),
    ),
    "i32 that may wrap around": (
        """func.func @f(%A: memref<?xf32>, %n: index) {
          %two = arith.constant 2 : i32
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          scf.for %i = %c0 to %n step %c1 {
            %k = arith.index_cast %i : index to i32
            %twice = arith.muli %k, %two : i32
            %at = arith.index_cast %twice : i32 to index
            %x = memref.load %A[%i] : memref<?xf32>
            memref.store %x, %A[%at] : memref<?xf32>
          }
          return }""",
        snapshot(["i: A[i] may be written by an earlier iteration of i: line 10, as A[?]"]),
    ),
    "periodic edges": (
        """func.func @f(%A: memref<?xf32>, %B: memref<?xf32>, %n: index) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          scf.for %i = %c0 to %n step %c1 {
            %more = arith.addi %i, %c1 : index
            %next = arith.remui %more, %n : index
            %x = memref.load %A[%next] : memref<?xf32>
            memref.store %x, %B[%i] : memref<?xf32>
            memref.store %x, %B[%next] : memref<?xf32>
          }
          return }""",
        snapshot(["i: B[i] is written again by a later iteration of i: line 9, as B[choice]"]),
    ),
    "dimensions of a parallel loop": (
        """func.func @f(%A: memref<9x9xf32>, %x: f32) {
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c9 = arith.constant 9 : index
          scf.parallel (%i, %j) = (%c0, %c0) to (%c9, %c9) step (%c1, %c1) {
            memref.store %x, %A[%i, %c0] : memref<9x9xf32>
          }
          return }""",
        snapshot(
            ["i: parallel", "  j: A[i, 0] is written again by a later iteration of j: line 6"]
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_verdicts(name: str, context: ir.Context) -> None:
    text, expected = CASES[name]
    assert verdicts(scop_of(text, context)) == expected

"""Kernels on the emulated GPU: indices, barriers, workgroup and private memory, run for their
values.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.worker.reference.bodies import run

A = np.random.default_rng(5).integers(0, 50, 20).astype(np.int32)
ZEROS = np.zeros(20, np.int32)


def _launch(blocks: int, threads: int, body: str, memory: str = "") -> str:
    return f"""
      %one = arith.constant 1 : index
      %blocks = arith.constant {blocks} : index
      %threads = arith.constant {threads} : index
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %blocks, %gy = %one, %gz = %one)
                 threads(%tx, %ty, %tz) in (%sx = %threads, %sy = %one, %sz = %one) {memory} {{
{body}
        gpu.terminator
      }}"""


CASES = {
    "global_id": (
        _launch(
            4,
            5,
            """
        %i = gpu.global_id x
        %x = memref.load %a[%i] : memref<20xi32>
        memref.store %x, %c[%i] : memref<20xi32>""",
        ),
        A,
    ),
    "block_id, block_dim, thread_id": (
        _launch(
            4,
            5,
            """
        %b = gpu.block_id x
        %d = gpu.block_dim x
        %t = gpu.thread_id x
        %o = arith.muli %b, %d : index
        %i = arith.addi %o, %t : index
        %x = memref.load %a[%i] : memref<20xi32>
        memref.store %x, %c[%i] : memref<20xi32>""",
        ),
        A,
    ),
    # Each block turns its ten elements around; without the barrier half of them would be read
    # before they are there.
    "a barrier and workgroup memory": (
        _launch(
            2,
            10,
            """
        %o = arith.muli %bx, %sx : index
        %i = arith.addi %o, %tx : index
        %x = memref.load %a[%i] : memref<20xi32>
        memref.store %x, %w[%tx] : memref<10xi32, 3>
        gpu.barrier
        %nine = arith.constant 9 : index
        %j = arith.subi %nine, %tx : index
        %y = memref.load %w[%j] : memref<10xi32, 3>
        %s = arith.addi %y, %x : i32
        memref.store %s, %c[%i] : memref<20xi32>""",
            "workgroup(%w : memref<10xi32, 3>)",
        ),
        np.concatenate([A[:10] + A[9::-1], A[10:] + A[:9:-1]]),
    ),
    "private memory and allocas across a barrier": (
        _launch(
            2,
            10,
            """
        %i = gpu.global_id x
        %zero = arith.constant 0 : index
        %x = memref.load %a[%i] : memref<20xi32>
        memref.store %x, %p[%zero] : memref<2xi32, 5>
        %own = memref.alloca() : memref<3xi32>
        memref.store %x, %own[%zero] : memref<3xi32>
        gpu.barrier
        %y = memref.load %p[%zero] : memref<2xi32, 5>
        %z = memref.load %own[%zero] : memref<3xi32>
        %s = arith.addi %y, %z : i32
        memref.store %s, %c[%i] : memref<20xi32>""",
            "private(%p : memref<2xi32, 5>)",
        ),
        2 * A,
    ),
    # log2(16) rounds; each round's sums need the round before.
    "a barrier in a uniform loop": (
        _launch(
            1,
            16,
            """
        %space = arith.constant 0 : index
        %x = memref.load %a[%tx] : memref<20xi32>
        memref.store %x, %w[%tx] : memref<16xi32, #gpu.address_space<workgroup>>
        gpu.barrier
        %rounds = arith.constant 4 : index
        %eight = arith.constant 8 : index
        scf.for %round = %space to %rounds step %one {
          %half = arith.shrui %eight, %round : index
          %active = arith.cmpi ult, %tx, %half : index
          scf.if %active {
            %other = arith.addi %tx, %half : index
            %p = memref.load %w[%tx] : memref<16xi32, #gpu.address_space<workgroup>>
            %q = memref.load %w[%other] : memref<16xi32, #gpu.address_space<workgroup>>
            %s = arith.addi %p, %q : i32
            memref.store %s, %w[%tx] : memref<16xi32, #gpu.address_space<workgroup>>
          }
          gpu.barrier
        }
        %sum = memref.load %w[%space] : memref<16xi32, #gpu.address_space<workgroup>>
        memref.store %sum, %c[%tx] : memref<20xi32>""",
            "workgroup(%w : memref<16xi32, #gpu.address_space<workgroup>>)",
        ),
        np.concatenate([np.full(16, A[:16].sum()), ZEROS[:4]]),
    ),
    "loops without a launch": (
        """
      affine.parallel (%i) = (0) to (20) {
        %x = affine.load %a[%i] : memref<20xi32>
        affine.store %x, %c[%i] : memref<20xi32>
      }""",
        A,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bounds_checks", [False, True])
def test_kernel(name: str, bounds_checks: bool) -> None:
    body, wanted = CASES[name]
    arrays = {"a": A, "c": ZEROS.copy()}
    result = run(body, arrays, arch="sm_90", bounds_checks=bounds_checks)
    np.testing.assert_array_equal(result.data["c"], wanted)
    assert result.violations == ()


def test_a_tiled_product_carries_its_sum_through_barriers() -> None:
    rng = np.random.default_rng(11)
    a, b = rng.normal(size=(8, 8)).astype(np.float32), rng.normal(size=(8, 8)).astype(np.float32)
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %none = arith.constant 0.0 : f32
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c2, %gy = %c2, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c4, %sz = %c1)
                 workgroup(%wa : memref<4x4xf32, 3>, %wb : memref<4x4xf32, 3>) {
        %top = arith.muli %by, %c4 : index
        %row = arith.addi %top, %ty : index
        %left = arith.muli %bx, %c4 : index
        %column = arith.addi %left, %tx : index
        %sum = scf.for %k = %c0 to %c8 step %c4 iter_args(%s = %none) -> (f32) {
          %ka = arith.addi %k, %tx : index
          %kb = arith.addi %k, %ty : index
          %x = memref.load %a[%row, %ka] : memref<8x8xf32>
          %y = memref.load %b[%kb, %column] : memref<8x8xf32>
          memref.store %x, %wa[%ty, %tx] : memref<4x4xf32, 3>
          memref.store %y, %wb[%ty, %tx] : memref<4x4xf32, 3>
          gpu.barrier
          %part = scf.for %j = %c0 to %c4 step %c1 iter_args(%u = %s) -> (f32) {
            %p = memref.load %wa[%ty, %j] : memref<4x4xf32, 3>
            %q = memref.load %wb[%j, %tx] : memref<4x4xf32, 3>
            %m = arith.mulf %p, %q : f32
            %v = arith.addf %u, %m : f32
            scf.yield %v : f32
          }
          gpu.barrier
          scf.yield %part : f32
        }
        memref.store %sum, %c[%row, %column] : memref<8x8xf32>
        gpu.terminator
      }"""
    result = run(body, {"a": a, "b": b, "c": np.full((8, 8), np.nan, np.float32)}, arch="gpu")
    bound = 8 * np.finfo(np.float32).eps * (np.abs(a) @ np.abs(b))
    assert (np.abs(result.data["c"] - a @ b) <= bound).all()

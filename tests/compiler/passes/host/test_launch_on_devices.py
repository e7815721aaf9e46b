"""What is launched computes what it computes where it is called."""

from __future__ import annotations

import numpy as np
import pytest

import avial_lab

TEXT = """
func.func @f(%n: index, %x: f32, %A: memref<12x9xf32>, %B: memref<12x9xf32>, %on: memref<9xi1>) {
  affine.for %i = 0 to 12 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<12x9xf32>
      %c = affine.load %on[%j] : memref<9xi1>
      %more = arith.mulf %a, %x : f32
      %b = arith.select %c, %more, %a : f32
      affine.store %b, %B[%i, %j] : memref<12x9xf32>
    }
  }
  return
}"""
"""With numbers and truth values among the arguments."""


@pytest.mark.parametrize("dynamic", [False, True])
def test_arguments_of_every_kind(dynamic: bool) -> None:
    rng = np.random.default_rng(3)
    a = rng.random((12, 9), np.float32)
    on = rng.random(9) < 0.5
    arrays = {"A": a, "B": np.zeros_like(a), "on": on}
    program = avial_lab.compile(
        TEXT, arrays=arrays, scalars={"n": 3, "x": 2.5}, ranks=1, gpus=2, on="gpu", dynamic=dynamic
    )
    trace = program.run()
    want = np.where(on, a * np.float32(2.5), a)
    np.testing.assert_array_equal(np.asarray(program.arrays["B"]), want)
    assert {event.device for event in trace.events if event.turn} >= {"gpu0", "gpu1"}

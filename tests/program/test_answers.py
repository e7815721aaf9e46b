"""What a run must leave in its arrays, said beforehand."""

from __future__ import annotations

import numpy as np

import avial_lab

SUM = """
func.func @f(%x: memref<100xf64>, %s: memref<1xf64>, %y: memref<100xf64>) {
  affine.for %i = 0 to 100 {
    %a = affine.load %x[%i] : memref<100xf64>
    %b = affine.load %s[0] : memref<1xf64>
    %c = arith.addf %a, %b : f64
    affine.store %c, %s[0] : memref<1xf64>
  }
  affine.for %i = 0 to 100 {
    %a = affine.load %x[%i] : memref<100xf64>
    %c = arith.addf %a, %a : f64
    affine.store %c, %y[%i] : memref<100xf64>
  }
  return
}
"""


def test_sums_have_room_and_the_rest_has_none() -> None:
    x = np.random.default_rng(1).random(100)
    arrays = {"x": x, "s": np.zeros(1), "y": np.zeros(100)}
    program = avial_lab.compile(SUM, arrays=arrays, ranks=2)
    answers = program.answers()
    assert not arrays["y"].any()  # nothing was run on the caller's
    assert np.array_equal(answers.arrays["y"], x + x)
    assert np.array_equal(answers.arrays["x"], x)
    assert abs(answers.arrays["s"][0] - x.sum()) <= answers.allowed["s"] < 1e-10
    assert set(answers.allowed) == {"s"}
    assert repr(answers) == "<Answers in x, s, y; bit for bit in x, y>"

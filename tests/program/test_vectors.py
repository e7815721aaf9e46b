"""Vectors of several dimensions in loops."""

from __future__ import annotations

import numpy as np

import avial_lab


def test_rows_of_a_vector_take_no_stack_in_every_iteration() -> None:
    """40,000 iterations, each of which would have kept two vectors of 512 bytes."""
    m, v = "memref<2x16x16xf16>", "vector<16x16xf16>"
    text = f"""func.func @twice(%a: {m}, %b: {m}) {{
  %n = arith.constant 20 : index
  %zero = arith.constant 0 : index
  %pad = arith.constant 0.0 : f16
  affine.for %t = 0 to 20000 {{
    affine.for %j = 0 to 2 {{
      scf.for %i = %zero to %n step %n {{
        %x = vector.transfer_read %a[%j, %i, %zero], %pad : {m}, {v}
        %y = arith.addf %x, %x : {v}
        vector.transfer_write %y, %b[%j, %i, %zero] : {v}, {m}
      }}
    }}
  }}
  return
}}"""
    a = np.random.default_rng(0).random((2, 16, 16)).astype(np.float16)
    arrays = {"a": a, "b": np.zeros_like(a)}
    avial_lab.compile(text, arrays=arrays, ranks=1).run()
    assert (arrays["b"] == a + a).all()

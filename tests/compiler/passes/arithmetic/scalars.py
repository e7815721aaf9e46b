"""Arithmetic of single numbers, in a run and in the reference, against values computed in Python.

Body of `%x: index` (or of `%i: i64`), numbers, results -> compared; on one rank and on three.
"""

from __future__ import annotations

import numpy as np

import avial_lab

LEAST, MOST = -(2**63), 2**63 - 1

ENDS = np.array([LEAST, LEAST + 1, LEAST + 2, -3, -2, -1, 0, 1, 2, 3, MOST - 1, MOST])
"""Where 64 bits wrap, and zero."""


def run_and_reference(
    body: str, given: np.ndarray, want: np.ndarray, *, result: str, ranks: int = 1
) -> None:
    """`body` is of the number `%i: i64`, also as `%x: index`; its `result` is an i64."""
    n = given.size
    text = f"""
    func.func @f(%given: memref<{n}xi64>, %results: memref<{n}xi64>) {{
      affine.for %k = 0 to {n} {{
        %i = affine.load %given[%k] : memref<{n}xi64>
        %x = arith.index_cast %i : i64 to index
        {body}
        affine.store {result}, %results[%k] : memref<{n}xi64>
      }}
      return
    }}
    """
    check(text, {"given": given, "results": np.zeros(n, np.int64)}, {"results": want}, ranks=ranks)


def check(
    text: str,
    arrays: dict[str, np.ndarray],
    want: dict[str, np.ndarray],
    *,
    ranks: int = 1,
    scalars: dict[str, int] | None = None,
) -> None:
    """Both have these values."""
    have = {name: np.array(array) for name, array in arrays.items()}
    program = avial_lab.compile(text, arrays=have, ranks=ranks, scalars=scalars or {})
    expected = program.reference().data
    program.run(threads=1, oversubscribe=True)
    for name, values in want.items():
        told = expected[name].view(values.dtype).reshape(values.shape)
        np.testing.assert_array_equal(told, values, f"reference: {name}")
        np.testing.assert_array_equal(program.arrays[name], values, f"run: {name}")

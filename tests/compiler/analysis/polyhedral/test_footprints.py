"""Boxes around what a part touches: how often isl is asked for them, and what has none.

What they hold is tested by calling the functions that report them, in
tests/compiler/passes/distribution/test_phase_footprints.py.
"""

from __future__ import annotations

import islpy as isl
import pytest
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.boxes import box_around, boxes_around
from avial_lab.compiler.analysis.polyhedral.footprints import touched_boxes
from tests.compiler.analysis.polyhedral.texts import scop_of

TWO = """func.func @f(%A: memref<64xf32>, %B: memref<64xf32>) {
  affine.for %i = 0 to 64 step 4 {
    affine.for %j = 0 to 2 {
      %a = affine.load %A[%i + %j] : memref<64xf32>
      %b = affine.load %B[%i + %j] : memref<64xf32>
      affine.store %b, %A[%i + %j] : memref<64xf32>
      affine.store %a, %B[%i + %j] : memref<64xf32>
    }
  }
  return }"""


def test_arrays_of_one_pattern_are_asked_about_once(
    context: ir.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def counted(*sets: object) -> object:
        asked.append(len(sets))
        return boxes_around(*sets)  # type: ignore[arg-type]

    monkeypatch.setattr("avial_lab.compiler.analysis.polyhedral.footprints.boxes_around", counted)
    scop = scop_of(TWO, context)
    touches = touched_boxes(scop, loops=[scop.loops[0]])
    assert {(touch.array.name, touch.kind.name) for touch in touches} == {
        ("A", "READ"), ("A", "WRITE"), ("B", "READ"), ("B", "WRITE"),
    }  # fmt: skip
    both, asked[:] = len(asked), []
    one = "\n".join(line for line in TWO.splitlines() if "%B[" not in line)
    scop = scop_of(one.replace("store %b", "store %a"), context)
    touched_boxes(scop, loops=[scop.loops[0]])
    assert both == len(asked) > 0


def test_a_stride_without_an_end_is_not_bounded() -> None:
    """isl says that it is, and fails to find the end."""
    elements = isl.Set("[lo, hi, i] -> { [x] : (1 + i + x) mod 3 = 0 and lo <= 1 < hi and x >= 0 }")
    assert elements.dim_is_bounded(isl.dim_type.set, 0)
    assert not box_around(elements, isl.Set("[lo, hi, i] -> { : }")).bounded

"""Sums in parts: integers come out the same, floating-point numbers where sums are exact; and what
is no such sum stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.remarks import SUMS
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.reductions.privatise_array_sums import PrivatiseArraySums
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.rows import Rows, Step, changed, row_loops
from tests.kernels.jit import Machine
from tests.quick import examples

DOWN = Step(("y", 0, 0), ("A", 0, 0), 1)
ALONG = Step(("s", 0, 0), ("A", 0, 0), 1)
BOTH = ((True, (ALONG,)), (True, (DOWN,)))

HEIGHTS = (1, 47, 48, 49, 60, 63, 64, 65, 67, 96, 127, 300)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
@given(
    rows=row_loops((1, 1, 1, 3), HEIGHTS[2:], st.integers(1, 5), "AsssyA"),
    place=st.integers(0, 1),
)
def test_random_rows(rows: Rows, place: int) -> None:
    loops = (*rows.loops[:place], *BOTH, *rows.loops[place:])
    _, done = changed(replace(rows, loops=loops), (PrivatiseArraySums(),))
    event("in parts" if done else "left alone")


@pytest.mark.parametrize("height", [h for h in HEIGHTS if h >= 48])
@pytest.mark.parametrize("width", [1, 2, 17])
def test_parts_of_any_length(height: int, width: int) -> None:
    module, done = changed(Rows(height, width, BOTH), (PrivatiseArraySums(),))
    assert done or width == 1  # a loop of one iteration goes nowhere
    if not done:
        return
    function = module.body.operations[0]
    assert ir.IntegerAttr(function.attributes[SUMS]).value == height
    marked = [op for op in operations_in(module.operation) if PARALLEL in op.attributes]
    assert len(marked) == 1
    assert len([op for op in operations_in(marked[0]) if op.name == "affine.for"]) == 4


OPEN = """func.func @f(%A: memref<?x?xi64>, %y: memref<?xi64>, %s: memref<?xi64>, %end: index)
    attributes {avial.no_alias, avial.task = "f"} {
  %first = arith.constant 0 : index
  %second = arith.constant 1 : index
  %m = memref.dim %A, %first : memref<?x?xi64>
  %n = memref.dim %A, %second : memref<?x?xi64>
  affine.for %i = 0 to min affine_map<()[s0, s1] -> (s0, s1)>()[%m, %end] {
    affine.for %j = 0 to %n {
      %a = affine.load %A[%i, %j] : memref<?x?xi64>
      %t = affine.load %s[%i] : memref<?xi64>
      %u = arith.addi %t, %a : i64
      affine.store %u, %s[%i] : memref<?xi64>
      %o = affine.load %y[%j] : memref<?xi64>
      %p = arith.addi %o, %a : i64
      affine.store %p, %y[%j] : memref<?xi64>
    }
  }
  return
}"""


def test_rows_that_are_counted_when_the_program_runs() -> None:
    context = ir.Context()
    module = ir.Module.parse(OPEN, context)
    run_passes(module.operation, (PrivatiseArraySums(),))
    assert len([op for op in operations_in(module.operation) if PARALLEL in op.attributes]) == 1
    machine = Machine([("before", OPEN), ("after", str(module))], context)
    rng = np.random.default_rng(1)
    for height in (0, 1, 2, *HEIGHTS[1:]):
        for width, end in ((1, 1000), (16, 100), (17, 0), (5, -3)):
            arrays = {"A": rng.integers(0, 1 << 40, (height, width))}
            arrays |= {"y": rng.integers(0, 99, width), "s": rng.integers(0, 99, height)}
            want, got = (
                machine.call(f, arrays | {"end": np.int64(end)}) for f in ("before", "after")
            )
            np.testing.assert_array_equal(got["y"], want["y"])
            np.testing.assert_array_equal(got["s"], want["s"])


STAYS = {
    "too few rows": Rows(47, 5, BOTH),
    "columns could be divided": Rows(300, 5, ((True, (DOWN,)),)),
    "another factor than one": Rows(300, 5, ((True, (ALONG, Step(DOWN.target, DOWN.source, 3))),)),
    "the sum is read on the way": Rows(
        300, 5, (*BOTH, (False, (Step(("s", 1, 0), ("y", 0, 0), 3),)))
    ),
    "another element than the column's": Rows(
        300, 5, ((True, (ALONG,)), (True, (Step(("y", 0, 1), ("A", 0, 0), 1),)))
    ),
    "rows depend on each other": Rows(
        300, 5, (*BOTH, (True, (Step(("A", 1, 0), ("s", 0, 0), 3),)))
    ),
}


@pytest.mark.parametrize("rows", STAYS.values(), ids=STAYS)
def test_what_stays(rows: Rows) -> None:
    assert not changed(rows, (PrivatiseArraySums(),))[1]


def test_a_strict_program_keeps_its_order() -> None:
    text = Rows(300, 5, BOTH).text
    context = ir.Context()
    module = ir.Module.parse(f"module attributes {{avial.strict}} {{ {text} }}", context)
    before = str(module)
    run_passes(module.operation, (PrivatiseArraySums(),))
    assert str(module) == before


FLOATS = """func.func @f(%A: memref<70x9xf64>, %x: memref<70xf64>, %y: memref<9xf64>,
                         %s: memref<70xf64>) attributes {avial.no_alias, avial.task = "f"} {
  affine.for %i = 0 to 70 {
    affine.for %j = 0 to 9 {
      %a = affine.load %A[%i, %j] : memref<70x9xf64>
      %t = affine.load %s[%i] : memref<70xf64>
      %u = arith.addf %t, %a : f64
      affine.store %u, %s[%i] : memref<70xf64>
      %o = affine.load %y[%j] : memref<9xf64>
      %f = affine.load %x[%i] : memref<70xf64>
      %n = math.fma %a, %f, %o : f64
      affine.store %n, %y[%j] : memref<9xf64>
    }
  }
  return
}"""


@pytest.mark.filterwarnings("ignore:invalid value")
def test_signs_of_zero_and_what_is_no_number() -> None:
    context = ir.Context()
    module = ir.Module.parse(FLOATS, context)
    run_passes(module.operation, (PrivatiseArraySums(),))
    assert any(PARALLEL in op.attributes for op in operations_in(module.operation))
    machine = Machine([("before", FLOATS), ("after", str(module))], context)
    # Small whole numbers: sums are exact in any order. Columns: all −0, all +0, mixed zeros, NaN,
    # infinity, both infinities, the least denormals, numbers.
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 9, (70, 9)).astype(np.float64)
    a[:, 0], a[:, 1], a[:, 2] = -0.0, 0.0, -0.0
    a[40, 2], a[3, 3], a[69, 4], a[5, 5], a[60, 5] = 0.0, np.nan, np.inf, np.inf, -np.inf
    a[:, 6] = 5e-324
    arrays = {"A": a, "x": np.ones(70), "y": np.full(9, -0.0), "s": np.zeros(70)}
    want, got = machine.call("before", arrays), machine.call("after", arrays)
    assert np.isnan(want["y"]).tolist() == np.isnan(got["y"]).tolist()
    solid = ~np.isnan(want["y"])
    assert want["y"][solid].tobytes() == got["y"][solid].tobytes()
    assert np.signbit(got["y"][0])

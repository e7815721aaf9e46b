"""Two nests that are one compute the same bits, and are one only where they may and it helps."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.order.fuse_loops import FuseLoops
from avial_lab.machine.cpu import Cpu, this_cpu
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.rows import Rows, Step, changed, row_loops
from tests.kernels.jit import Machine
from tests.quick import examples


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(rows=row_loops((1, 3), (1, 2, 3, 7), st.integers(1, 7)))
def test_random_nests(rows: Rows) -> None:
    _, done = changed(replace(rows, apart=True), (FuseLoops(),))
    event("one" if done else "left alone")


ALONG = (True, (Step(("s", 0, 0), ("A", 0, 0), 3),))
DOWN = (True, (Step(("y", 0, 0), ("A", 0, 0), 3),))
RIGHT = (True, (Step(("A", 0, 0), ("A", 0, 1), 3),))
TIMES_FOUR = (True, (Step(("A", 0, 0), ("A", 0, 0), 3),))

MAY = {
    "both read it": (ALONG, DOWN),
    "three of them": (ALONG, DOWN, TIMES_FOUR),
    "the first writes what the second reads in the same iteration": (
        (True, (Step(("A", 0, 0), ("y", 0, 0), 3),)), ALONG,
    ),
    "the second writes what the first has read": (ALONG, TIMES_FOUR),
    "the second reads what the first wrote a row above": (
        RIGHT, (True, (Step(("y", 0, 0), ("A", -1, 0), 3), Step(("y", 0, 0), ("A", 0, 0), 3))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("loops", MAY.values(), ids=MAY)
@pytest.mark.parametrize("height", [1, 2, 9])
def test_what_may_be_one(loops: tuple[tuple[bool, tuple[Step, ...]], ...], height: int) -> None:
    module, done = changed(Rows(height, 7, loops, apart=True), (FuseLoops(),))
    assert done or height == 1
    text = str(module.body.operations[0])
    assert not done or text.count("affine.for") == 2
    assert not done or "fuse-loops: two nests over " in text


MUST_NOT = {
    "the second needs a sum over all columns": (
        ALONG, (True, (Step(("y", 0, 0), ("s", 0, 0), 3), Step(("y", 0, 0), ("A", 0, 0), 3))),
    ),
    "the second reads what the first writes a row below": (
        (True, (Step(("A", 0, 0), ("y", 0, 0), 3),)),
        (True, (Step(("s", 0, 0), ("A", 1, 0), 3), Step(("s", 0, 0), ("A", 0, 0), 3))),
    ),
    "the second overwrites what the first reads later": (
        (True, (Step(("s", 0, 0), ("A", -1, 0), 3), Step(("s", 0, 0), ("A", 0, 0), 3))),
        (True, (Step(("A", 0, 0), ("y", 0, 0), 3),)),
    ),
    "they share rows and columns alone": (
        (True, (Step(("y", 0, 0), ("s", 0, 0), 3),)), (True, (Step(("s", 0, 0), ("s", 0, 0), 3),)),
    ),
    "their loops are not the same": (ALONG, (False, (Step(("s", 0, 0), ("A", 0, 0), 3),)), DOWN),
}  # fmt: skip


@pytest.mark.parametrize("loops", MUST_NOT.values(), ids=MUST_NOT)
def test_what_stays_apart(loops: tuple[tuple[bool, tuple[Step, ...]], ...]) -> None:
    module, _ = changed(Rows(9, 7, loops, apart=True), (FuseLoops(),))
    text = str(module.body.operations[0])
    assert text.count("affine.for") == sum(1 + along for along, _ in loops)


CACHE = replace(this_cpu(), l2_bytes=1 << 13)
"""In it a few rows have room, and not a whole array."""

RECURRENCES = """
  #back = affine_map<(d) -> (36 - d)>
  func.func @f(%A: memref<40x37xi64>, %B: memref<40x37xi64>, %C: memref<40x37xi64>)
      attributes {avial.no_alias, avial.name = "f"} {
    %c0 = arith.constant 0 : i64
    affine.for %i = 1 to 39 {
      %end = affine.for %j = 0 to 37 iter_args(%last = %c0) -> (i64) {
        %x = affine.load %A[%i, %j] : memref<40x37xi64>
        %y = arith.subi %x, %last : i64
        affine.store %y, %B[%i, %j] : memref<40x37xi64>
        affine.yield %y : i64
      }
    }
    affine.for %i = 1 to 39 {
      affine.for %step = 0 to 37 {
        %j = affine.apply #back(%step)
        %x = affine.load %B[ROW, %j] : memref<40x37xi64>
        %y = affine.load %A[%i, %j] : memref<40x37xi64>
        %z = arith.addi %x, %y : i64
        affine.store %z, %C[%i, %j] : memref<40x37xi64>
      }
    }
    return
  }"""


def outer(text: str, cpu: Cpu) -> str:
    """After the pass; the same values come out."""
    context = ir.Context()
    module = ir.Module.parse(text, context)
    run_passes(module.operation, (FuseLoops(cpu),))
    after = str(module)
    with context:
        machine = Machine([("before", text), ("after", after)], context)
    rng = np.random.default_rng(0)
    shapes = re.findall(r"%([ABC]): memref<([\dx]+)xi64>", text)
    arrays = {
        name: rng.integers(0, 1 << 40, tuple(map(int, shape.split("x")))) for name, shape in shapes
    }
    before = machine.call("before", arrays)
    for name, array in machine.call("after", arrays).items():
        np.testing.assert_array_equal(array, before[name])
    return after


def test_outermost_loops_alone_are_one() -> None:
    after = outer(RECURRENCES.replace("ROW", "%i"), CACHE)
    assert after.count("affine.for") == 3


WINDOWS = (
    RECURRENCES.replace("%A: memref<40x37xi64>", "%A: memref<46x37xi64>")
    .replace(
        """        %y = affine.load %A[%i, %j] : memref<40x37xi64>
        %z = arith.addi %x, %y : i64
        affine.store %z, %C[%i, %j] : memref<40x37xi64>
""",
        """        affine.store %x, %C[%i, %j] : memref<40x37xi64>
        affine.for %p = 0 to ROWS {
          %y = affine.load %A[%i + %p, %j] : memref<46x37xi64>
          %c = affine.load %C[%i, %j] : memref<40x37xi64>
          %z = arith.addi %c, %y : i64
          affine.store %z, %C[%i, %j] : memref<40x37xi64>
        }
""",
    )
    .replace("%A[%i, %j] : memref<40x37xi64>", "%A[%i, %j] : memref<46x37xi64>")
    .replace("ROW,", "%i,")
)


@pytest.mark.parametrize(("rows", "loops"), [(2, 4), (7, 5)])
def test_a_window_of_rows_needs_no_more_than_it_has(rows: int, loops: int) -> None:
    """Of seven rows and one of B and C each, four times that is more than there is room for."""
    after = outer(WINDOWS.replace("ROWS", str(rows)), CACHE)
    assert after.count("affine.for") == loops


@pytest.mark.parametrize("row", ["%i + 1", "%i - 1", "2"])
def test_rows_that_wait_for_others_stay(row: str) -> None:
    after = outer(RECURRENCES.replace("ROW", row), CACHE)
    assert after.count("affine.for") == 4


@pytest.mark.parametrize("nbytes", [1 << 10, 1 << 20])
def test_what_a_cache_does_not_gain_by_stays(nbytes: int) -> None:
    """Rows that have no room, and arrays that are there anyway."""
    after = outer(RECURRENCES.replace("ROW", "%i"), replace(CACHE, l2_bytes=nbytes))
    assert after.count("affine.for") == 4


VECTORS = """
  func.func @f(%A: memref<2000xi64>, %B: memref<2000xi64>, %C: memref<2000xi64>)
      attributes {avial.no_alias, avial.name = "f"} {
    affine.for %i = 1 to 2000 {
      %x = affine.load %A[%i] : memref<2000xi64>
      %y = arith.muli %x, %x : i64
      affine.store %y, %B[%i] : memref<2000xi64>
    }
    affine.for %i = 1 to 2000 {
      %x = affine.load %B[READ] : memref<2000xi64>
      %y = affine.load %C[OLD] : memref<2000xi64>
      %z = arith.addi %x, %y : i64
      affine.store %z, %C[WRITTEN] : memref<2000xi64>
    }
    return
  }"""


@pytest.mark.parametrize(
    ("read", "old", "written", "l2_bytes", "loops"),
    [
        pytest.param("%i", "%i", "%i", 1 << 13, 1, id="large"),
        pytest.param("%i", "%i", "%i", 1 << 14, 2, id="in the cache anyway"),
        pytest.param("%i - 1", "%i", "%i", 1 << 13, 2, id="of another iteration"),
        pytest.param("%i", "0", "0", 1 << 13, 1, id="a sum"),
        pytest.param("%i", "%i - 1", "%i", 1 << 13, 2, id="a scan"),
    ],
)
def test_single_loops(read: str, old: str, written: str, l2_bytes: int, loops: int) -> None:
    text = VECTORS.replace("READ", read).replace("OLD", old).replace("WRITTEN", written)
    after = outer(text, replace(CACHE, l2_bytes=l2_bytes))
    assert after.count("affine.for") == loops


SUMS = """
  func.func @f(%A: memref<2000xi64>, %B: memref<2000xi64>, %C: memref<2000xi64>)
      attributes {avial.no_alias, avial.name = "f"} {
    affine.for %i = 1 to 2000 {
      %x = affine.load %A[%i] : memref<2000xi64>
      %y = affine.load %B[0] : memref<2000xi64>
      %z = arith.FIRST %x, %y : i64
      affine.store %z, %B[0] : memref<2000xi64>
    }
    affine.for %i = 1 to 2000 {
      %x = affine.load %A[%i] : memref<2000xi64>
      %y = affine.load %C[0] : memref<2000xi64>
      %z = arith.SECOND %x, %y : i64
      affine.store %z, %C[0] : memref<2000xi64>
      STORE
    }
    return
  }"""
STORE = "affine.store %x, %C[%i] : memref<2000xi64>"


@pytest.mark.parametrize(
    ("first", "second", "store", "loops"),
    [
        pytest.param("addi", "addi", "", 1, id="sums"),
        pytest.param("maxsi", "minui", "", 1, id="the greatest and the least"),
        pytest.param("addi", "maxsi", "", 1, id="a sum and the greatest"),
        pytest.param("addi", "addi", STORE, 1, id="a sum with what is stored"),
        # In one loop with it they would run one by one, where vectors cannot look for the greatest.
        pytest.param("maxsi", "addi", STORE, 2, id="the greatest with what is stored"),
        pytest.param("shli", "addi", "", 2, id="what has an order"),
    ],
)
def test_what_loops_add_up(first: str, second: str, store: str, loops: int) -> None:
    text = SUMS.replace("FIRST", first).replace("SECOND", second).replace("STORE", store)
    text = text.replace("%C[0]", "%B[1]" if store else "%C[0]")
    assert outer(text, replace(CACHE, l2_bytes=1 << 13)).count("affine.for") == loops


def test_sums_of_a_strict_module_stay_apart() -> None:
    text = SUMS.replace("FIRST", "addi").replace("SECOND", "addi").replace("STORE", "")
    text = f"module attributes {{avial.strict}} {{ {text} }}"
    assert outer(text, replace(CACHE, l2_bytes=1 << 13)).count("affine.for") == 2

"""Rows at once compute the same bits, and are only put so where they may."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from mlir import ir

from avial_lab.compiler.codegen.loops import unroll_and_jam
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.lowering.run import run_passes
from avial_lab.compiler.passes.loops.facts.independent_accesses import IndependentAccesses
from avial_lab.compiler.passes.loops.jam import jam_for_latency, jam_for_stores
from avial_lab.compiler.passes.loops.jam.jam_for_latency import JamForLatency
from avial_lab.compiler.passes.loops.jam.jam_for_stores import JamForStores
from tests.compiler.analysis.polyhedral.test_properties import SLOW
from tests.compiler.passes.rows import Rows, Step, changed, row_loops
from tests.quick import examples


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(
    rows=row_loops((1, 3), (1, 2, 3, 4, 5, 8, 11, 12, 25), st.integers(1, 7)),
    count=st.sampled_from([0, 2, 3, 4, 12]),
)
def test_random_rows(rows: Rows, count: int) -> None:
    _, done = changed(rows, (JamForStores(count),))
    event("jammed" if done else "left alone")


SUM_DOWN = Step(("y", 0, 0), ("A", 0, 0), 3)
SUM_ALONG = Step(("s", 0, 0), ("A", 0, 0), 1)
INTO_NEXT = Step(("A", 1, 0), ("y", 0, 0), 3)


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 7, 8, 9])
@pytest.mark.parametrize("width", [1, 2, 17])
def test_rows_left_over(height: int, width: int) -> None:
    rows = Rows(height, width, ((True, (SUM_DOWN,)),))
    _, done = changed(rows, (IndependentAccesses(), JamForStores()))
    assert done or 1 in (height, width)  # a loop of one iteration goes nowhere


@pytest.mark.parametrize("height", [1, 2, 3, 7, 12])
def test_all_of_few_go_at_once(height: int) -> None:
    module, done = changed(Rows(height, 17, ((True, (SUM_DOWN,)),)), (JamForStores(),))
    assert done or height == 1
    assert height == 1 or str(module.body.operations[0]).count("affine.for") == 1


@pytest.mark.parametrize("height", [48, 49, 59, 60, 83])
@pytest.mark.parametrize("width", [256, 257])
def test_long_rows_go_many_at_a_time(height: int, width: int) -> None:
    rows = Rows(height, width, ((True, (SUM_DOWN,)),))
    module, _ = changed(rows, (IndependentAccesses(), JamForStores()))
    assert rows_at_once(module) == unroll_and_jam.MANY_ROWS


@pytest.mark.parametrize(("height", "width"), [(47, 256), (48, 255)])
def test_few_or_short_rows_go_a_few_at_a_time(height: int, width: int) -> None:
    """What is left over of few goes one by one; of short ones each is in a cache by itself."""
    rows = Rows(height, width, ((True, (SUM_DOWN,)),))
    module, _ = changed(rows, (IndependentAccesses(), JamForStores()))
    assert rows_at_once(module) == jam_for_stores.ROWS


def test_rows_whose_length_changes_go_a_few_at_a_time() -> None:
    """Such are as short as panels and triangles are at their ends."""
    with ir.Context():
        module = ir.Module.parse("""
            func.func @f(%A: memref<99x999xi64>, %y: memref<999xi64>) attributes {avial.no_alias} {
              affine.for %k = 0 to 9 {
                affine.for %i = 0 to 99 {
                  affine.for %j = affine_map<(d0) -> (d0)>(%k) to 999 {
                    %a = affine.load %A[%i, %j] : memref<99x999xi64>
                    %b = affine.load %y[%j] : memref<999xi64>
                    %c = arith.addi %a, %b : i64
                    affine.store %c, %y[%j] : memref<999xi64>
                  }
                }
              }
              return
            }""")
        run_passes(module.operation, (JamForStores(),))
    assert rows_at_once(module) == jam_for_stores.ROWS


def rows_at_once(module: ir.Module) -> int:
    """The step of its loop over rows."""
    steps = [
        ir.IntegerAttr(op.attributes["step"]).value
        for op in operations_in(module.operation)
        if op.name == "affine.for"
    ]
    return max(steps)


MAY = {
    "two loops, of which the second needs the first": ((True, (SUM_ALONG,)), (True, (SUM_DOWN,))),
    "both sums in one loop": ((True, (SUM_ALONG, SUM_DOWN)),),
    "a store of the row's own before": (
        (False, (Step(("s", 0, 0), ("A", 0, 0), 3),)), (True, (SUM_DOWN,)),
    ),
    "a row that writes what the next adds up in the same column": ((True, (SUM_DOWN, INTO_NEXT)),),
}  # fmt: skip


@pytest.mark.parametrize("loops", MAY.values(), ids=MAY)
def test_what_may_be_jammed(loops: tuple[tuple[bool, tuple[Step, ...]], ...]) -> None:
    assert changed(Rows(9, 7, loops), (JamForStores(),))[1]


MUST_NOT = {
    "no row is shared": ((True, (Step(("A", 0, 0), ("s", 0, 0), 3),)),),
    "the next row reads a later column": (
        (True, (Step(("y", 0, 0), ("y", 0, 1), 3),)),
    ),
    "the next row's first loop reads what this row's second writes": (
        (True, (Step(("s", 0, 0), ("y", 0, 0), 3),)), (True, (SUM_DOWN,)),
    ),
    "a sum over all columns is read in the first of the next row": (
        (True, (SUM_DOWN, Step(("s", 1, 0), ("y", 0, 0), 3), Step(("y", 0, 0), ("s", 0, 0), 3))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("loops", MUST_NOT.values(), ids=MUST_NOT)
def test_what_is_left_alone(loops: tuple[tuple[bool, tuple[Step, ...]], ...]) -> None:
    assert not changed(Rows(9, 7, loops), (JamForStores(),))[1]


def test_nobody_models_rows_that_plainly_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """(To do so takes longer than all else that these passes do.)"""
    monkeypatch.delattr(jam_for_stores, "read_scop")
    monkeypatch.delattr(jam_for_latency, "read_scop")
    own = Rows(9, 7, ((True, (Step(("A", 0, 0), ("s", 0, 0), 3),)),))
    assert not changed(own, (IndependentAccesses(), JamForStores(), JamForLatency()))[1]

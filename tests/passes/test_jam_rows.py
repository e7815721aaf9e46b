"""Rows at once compute the same bits, and are only put so where they may."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from avial_lab.passes import interleave_rows, jam_rows
from avial_lab.passes.independent_accesses import IndependentAccesses
from avial_lab.passes.interleave_rows import InterleaveRows
from avial_lab.passes.jam_rows import JamRows
from tests.passes.rows import Rows, Step, changed, row_loops
from tests.polyhedra.test_properties import SLOW


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(
    rows=row_loops((1, 3), (1, 2, 3, 4, 5, 8, 11), st.integers(1, 7)),
    count=st.sampled_from([2, 3, 4]),
)
def test_random_rows(rows: Rows, count: int) -> None:
    _, done = changed(rows, (JamRows(count),))
    event("jammed" if done else "left alone")


SUM_DOWN = Step(("y", 0, 0), ("A", 0, 0), 3)
SUM_ALONG = Step(("s", 0, 0), ("A", 0, 0), 1)
INTO_NEXT = Step(("A", 1, 0), ("y", 0, 0), 3)


@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 7, 8, 9])
@pytest.mark.parametrize("width", [1, 2, 17])
def test_rows_left_over(height: int, width: int) -> None:
    rows = Rows(height, width, ((True, (SUM_DOWN,)),))
    _, done = changed(rows, (IndependentAccesses(), JamRows()))
    assert done or 1 in (height, width)  # a loop of one iteration goes nowhere


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
    assert changed(Rows(9, 7, loops), (JamRows(),))[1]


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
    assert not changed(Rows(9, 7, loops), (JamRows(),))[1]


def test_nobody_models_rows_that_plainly_share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """(To do so takes longer than all else that these passes do.)"""
    monkeypatch.delattr(jam_rows, "read_scop")
    monkeypatch.delattr(interleave_rows, "read_scop")
    own = Rows(9, 7, ((True, (Step(("A", 0, 0), ("s", 0, 0), 3),)),))
    assert not changed(own, (IndependentAccesses(), JamRows(), InterleaveRows()))[1]

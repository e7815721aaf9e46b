"""Two nests that are one compute the same bits, and are one only where they may and it helps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from avial_lab.passes.fuse_nests import FuseNests
from tests.passes.rows import Rows, Step, changed, row_loops
from tests.polyhedra.test_properties import SLOW


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(rows=row_loops((1, 3), (1, 2, 3, 7), st.integers(1, 7)))
def test_random_nests(rows: Rows) -> None:
    _, done = changed(replace(rows, apart=True), (FuseNests(),))
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
    module, done = changed(Rows(height, 7, loops, apart=True), (FuseNests(),))
    assert done or height == 1
    text = str(module.body.operations[0])
    assert not done or text.count("affine.for") == 2
    assert not done or "fuse-nests: two nests over " in text


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
    module, _ = changed(Rows(9, 7, loops, apart=True), (FuseNests(),))
    text = str(module.body.operations[0])
    assert text.count("affine.for") == sum(1 + along for along, _ in loops)

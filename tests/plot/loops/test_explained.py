"""The answer of `explain()` in a cell."""

from __future__ import annotations

from inline_snapshot import snapshot

from avial_lab.artifact.explanation import Explanation
from avial_lab.plot import explained_html, explained_table
from avial_lab.plot.loops.explained import SIGNS
from tests.plot.by_hand import HEAT, heat_explanation


def test_every_loop_has_its_line_its_fate_and_the_reason() -> None:
    rows = [row[:1] + row[2:4] for row in explained_table(heat_explanation()).rows]
    assert rows == snapshot(
        [
            ("3", "loop1", "↻ in order on every rank, with work inside"),
            ("4", "S1", "∥ divided over the ranks"),
            ("8", "S2", "1 in order on one rank"),
        ]
    )
    assert heat_explanation().summary == snapshot(
        "1 divided over the ranks, 1 in order on every rank, 1 on one rank"
    )


def test_the_source_stands_beside_it_and_what_a_reason_speaks_of_below() -> None:
    page = explained_html(heat_explanation())
    assert "&nbsp;&nbsp;affine.for %i = 1 to 19 {" in page  # as deep as the loops around
    assert "affine.store %x, %A[%i] : memref&lt;20xf64&gt;" in page
    assert page.count("<tr>") == 1 + 3


def test_colour_is_not_alone() -> None:
    page = explained_html(heat_explanation())
    assert len(set(SIGNS.values())) == 3
    for sign in SIGNS.values():
        assert f"<b>{sign}</b>" in page


def test_hostile_text_stays_text() -> None:
    page = explained_html(heat_explanation(HEAT.replace("affine.for", "<script>")))
    assert "<script" not in page
    assert "too &lt;short&gt;" in page


def test_a_source_that_is_not_known_is_left_out() -> None:
    assert [row[1] for row in explained_table(heat_explanation("")).rows] == ["", "", ""]
    assert "made of tasks" in explained_html(Explanation(()))

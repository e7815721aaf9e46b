"""The iterations of a nest and what needs what, drawn."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest
from inline_snapshot import snapshot

from avial_lab.artifact.explanation import Cell, Nest, Order, nest_summary
from avial_lab.planning.task_graph import TaskKind
from avial_lab.plot import dependence_table, nest_figure, nest_svg, nest_text, worth_drawing
from avial_lab.plot.loops.space import DASHES
from avial_lab.plot.palette import BLUE, VERMILION
from tests.plot.by_hand import heat_nest, words


def count(picture: str, kind: str) -> int:
    return picture.count(f'data-kind="{kind}"')


def needs(picture: str) -> list[str]:
    """The tooltips of the strong arrows."""
    return [
        title.text or ""
        for group in ET.fromstring(picture).iter()
        if group.get("data-kind") == "need"
        for title in group
        if title.tag.endswith("title")
    ]


def chain() -> Nest:
    cells = tuple(Cell(None, 0, i) for i in range(1, 9))
    pairs = tuple((Order.FLOW, before, after) for before, after in pairwise(cells))
    forbidding = frozenset((before, after) for _, before, after in pairs)
    return Nest("S1", TaskKind.TASK, None, "i", ("",), cells, pairs, forbidding, ())


def test_every_iteration_is_a_point_and_one_of_them_shows_its_needs() -> None:
    picture = nest_svg(heat_nest())
    assert count(picture, "cell") == 3 * 2 * 4
    assert needs(picture) == snapshot(
        [
            "S1 at t = 1, i = 3 needs S2 at t = 0, i = 2 (RAW)",
            "S1 at t = 1, i = 3 needs S2 at t = 0, i = 3 (RAW)",
            "S1 at t = 1, i = 3 needs S2 at t = 0, i = 4 (RAW)",
            "S1 at t = 1, i = 3 needs S1 at t = 0, i = 3 (WAW)",
        ]
    )
    assert words(picture) == snapshot(
        [
            "Dependences of loop1",
            "dependences: t carries 1 RAW and 1 WAW; within an iteration 1 RAW",
            "i = 1",
            "2",
            "3",
            "4",
            "t = 0",
            "S1",
            "S2",
            "t = 1",
            "S1",
            "S2",
            "t = 2",
            "S1",
            "S2",
            "The first iterations of the two outer loops; for each value only its last write.",
            "the selected iteration",
            "RAW: it writes what the other reads",
            "WAW: both write it",
            "thick: keeps t in order",
            "RAW to other iterations",
        ]
    )


def test_of_the_others_only_the_flow_is_drawn_and_faintly() -> None:
    picture = nest_svg(heat_nest())
    flow = sum(order is Order.FLOW for order, _, _ in heat_nest().needs)
    strong = sum("(RAW)" in words for words in needs(picture))
    assert count(picture, "faint") == flow - strong


def test_orders_differ_without_colour_and_what_forbids_is_thick() -> None:
    assert len(set(DASHES.values())) == 3
    picture = nest_svg(heat_nest())
    strong = re.findall(
        r'data-kind="need">.*?<path [^>]*stroke="([^"]*)" stroke-width="([^"]*)"', picture
    )
    assert set(strong) == {(VERMILION, "2.4")}
    within = nest_svg(replace(heat_nest(), forbidding=frozenset()))
    assert BLUE in within
    assert VERMILION not in within


def test_a_single_loop_is_one_row() -> None:
    picture = nest_svg(chain())
    assert count(picture, "cell") == 8
    assert {"i = 1", "8", "thick: keeps i in order"} <= set(words(picture))
    assert needs(picture) == ["S1 at i = 5 needs S1 at i = 4 (RAW)"]


def test_independent_iterations_have_no_arrow_and_it_is_said() -> None:
    alone = replace(chain(), needs=(), forbidding=frozenset(), kind=TaskKind.REPLICATE)
    picture = nest_svg(alone)
    assert "polygon" not in picture
    assert "no iteration depends on another" in words(picture)
    assert any("No dependence orders" in line for line in words(picture))


def test_what_is_beside_the_inner_loop_is_a_square() -> None:
    nest = heat_nest()
    picture = nest_svg(replace(nest, cells=(*nest.cells, Cell(1, 0, None))))
    plain = nest_svg(nest)
    assert picture.count("<rect") == plain.count("<rect") + 1
    assert picture.count("<circle") == plain.count("<circle")


def test_doubt_and_what_is_left_out_are_said() -> None:
    nest = heat_nest()
    doubtful = tuple(replace(each, exact=False) for each in nest.dependences)
    shown = words(nest_svg(replace(nest, dependences=doubtful, note="it is large")))
    assert any("not known exactly" in line for line in shown)
    assert any("Hidden: it is large." in line for line in shown)
    assert dependence_table(replace(nest, dependences=doubtful)).rows[0][0] == "RAW, perhaps"


def test_an_empty_nest_has_a_picture() -> None:
    empty = replace(chain(), cells=(), needs=(), forbidding=frozenset())
    assert "no iteration depends on another" in words(nest_svg(empty))


def test_many_arrows_stay_small() -> None:
    cells = tuple(Cell(t, lane, i) for t in range(6) for lane in range(2) for i in range(8))
    pairs = tuple((Order.FLOW, a, b) for a in cells for b in cells if a < b)
    full = replace(heat_nest(), cells=cells, needs=pairs, forbidding=frozenset())
    picture = nest_svg(full)
    ET.fromstring(picture)
    assert len(picture) < 120_000
    assert any(re.match(r"Hidden: [\d,]+ more arrows", line) for line in words(picture))


@pytest.mark.parametrize("hostile", ["<script>", '"><b>', "a&b"])
def test_hostile_names_stay_text(hostile: str) -> None:
    nest = replace(heat_nest(), name=hostile, rows=hostile, columns=hostile, lanes=(hostile, "x"))
    ET.fromstring(nest_svg(nest))
    assert "<script" not in nest_svg(nest) + nest_figure(nest)


def test_text_and_table_state_the_same_facts() -> None:
    assert nest_summary(heat_nest()) == snapshot(
        "dependences: t carries 1 RAW and 1 WAW; within an iteration 1 RAW"
    )
    assert nest_text(heat_nest()) == snapshot("""\
loop1: dependences: t carries 1 RAW and 1 WAW; within an iteration 1 RAW
Dependences of loop1
  order  first  line  then      at line  distance  carried by
  RAW    B[i]      6  B[i]            9  t 0       none
  RAW    A[i]     10  A[i - 1]        5  t 1       t
  WAW    B[i]      6  B[i]            6  t 1, i 0  t\
""")
    assert "A[i - 1]" in nest_figure(heat_nest())


def test_those_with_an_order_to_keep_are_worth_drawing() -> None:
    free = replace(chain(), kind=TaskKind.REPLICATE)
    assert worth_drawing([free, heat_nest(), chain()]) == (heat_nest(), chain())
    assert worth_drawing([free]) == (free,)
    assert worth_drawing([]) == ()

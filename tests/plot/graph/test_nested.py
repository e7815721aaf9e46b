"""Tasks in loops: boxes in boxes, and what goes back to a later iteration."""

# ruff: noqa: E501 (tables and sentences as they are shown)
from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from avial_lab.planning.graph_facts import edge_table, task_table
from avial_lab.planning.task_graph import Group, Task, TaskGraph, build_dag
from avial_lab.plot import dag_dot, dag_figure, dag_svg, graph_text, lanes_svg
from tests.plot.by_hand import buffers, divided, heat_graph, heat_schedule, words


def count(picture: str, kind: str) -> int:
    return picture.count(f'data-kind="{kind}"')


def graph(tasks: list[Task], groups: list[Group]) -> TaskGraph:
    names = "".join(sorted({a.buffer for t in tasks for a in (*t.reads, *t.writes)}))
    return build_dag(tasks, *buffers(names), groups)


def test_a_loop_is_a_box_around_its_tasks() -> None:
    assert words(dag_svg(heat_graph(), engine="built-in")) == snapshot(
        [
            "Task graph",
            "3 tasks in 3 levels, 3 edges, 1 loop around them",
            "C",
            "zero",
            "– → b",
            "one rank, cpu",
            "↻ loop1",
            "5 times",
            "C",
            "C",
            "C",
            "S1",
            "a → b",
            "divided, cpu",
            "C",
            "C",
            "C",
            "S2",
            "b → a",
            "divided, cpu",
            "RAW b 80 B",
            "RAW a",
            "a later iteration",
            "WAW b 80 B",
            "Critical path: zero → S1 → S2: 400 B of 400 B, parallelism 1 (estimated from",
            "the bytes each task touches). One iteration of each loop.",
            "C",
            "CPU",
            "divided over ranks",
            "loop around tasks",
            "value",
            "order only (WAR, WAW, after)",
            "critical path: dark and bold",
            "value for a later iteration",
        ]
    )


def test_says_where_each_phase_is_and_what_it_gets() -> None:
    shown = words(dag_svg(heat_graph(), heat_schedule()))
    assert {"ranks 0–2", "rank 1", "80 B in 10 messages"} <= set(shown)
    assert " ".join(shown[1:3]).endswith(
        "1 loop around them; 3 ranks, 20 messages, 160 B moved · 3 CPUs on localhost (x86_64)"
    )


def test_a_box_stands_within_its_loop() -> None:
    """Both as positions of text: the loop's head above, its tasks below, `zero` outside."""
    picture = dag_svg(heat_graph(), engine="built-in")
    top = {}

    def visit(element: ET.Element, y: float) -> None:
        moved = re.match(r"translate\(\S+ (\S+)\)", element.get("transform", ""))
        y += float(moved[1]) if moved else 0
        if element.tag.endswith("text"):
            top.setdefault(element.text, y + float(element.get("y", 0)))
        for child in element:
            visit(child, y)

    visit(ET.fromstring(picture), 0)
    assert top["zero"] < top["↻ loop1"] < top["S1"] < top["S2"]


def test_values_for_a_later_round_go_back() -> None:
    picture = dag_svg(heat_graph())
    assert count(picture, "back") == 1
    assert "a later S1 reads what S2 wrote of a" in picture
    alone = graph([divided("S", "a", "b", "loop")], [Group("loop", "")])
    assert count(dag_svg(alone), "back") == 0  # only order is carried


def test_side_by_side_they_are_listed_beside_one_arrow() -> None:
    tasks = [divided(f"S{k}", "ab", x, "loop") for k, x in enumerate("ab")]
    tasks.append(divided("S2", "c", "c", "loop"))
    picture = dag_svg(graph(tasks, [Group("loop", "")]))
    assert count(picture, "back") == 1
    shown = words(picture)
    assert {"in a later iteration", "S2 → S2: RAW c", "S1 → S0: RAW b"} <= set(shown)


def test_loops_in_loops_and_conditions() -> None:
    groups = [
        Group("outer", "5 times"),
        Group("inner", "3 times", around=("outer",)),
        Group("if 1", "if its condition holds", loop=False, around=("outer", "inner")),
    ]
    tasks = [
        divided("S1", "a", "b", "outer"),
        divided("S2", "b", "c", "outer", "inner"),
        divided("S3", "c", "a", "outer", "inner", "if 1"),
    ]
    picture = dag_svg(graph(tasks, groups))
    ET.fromstring(picture)
    assert count(picture, "loop") == 3
    assert {"↻ outer", "↻ inner", "? if 1", "if its condition holds"} <= set(words(picture))


def test_divided_tasks_without_loops_say_all_their_ranks() -> None:
    alone = graph([divided("S", "a", "b")], [])
    schedule = heat_schedule()
    placements = tuple(replace(p, task="S") for p in schedule.placements if p.task == "S1")
    picture = dag_svg(alone, replace(schedule, graph=alone, placements=placements, moves=()))
    assert "ranks 0–2" in words(picture)
    assert "loop around tasks" not in words(picture)


def test_thirty_phases_fit_and_hundreds_become_groups() -> None:
    def chain(n: int) -> TaskGraph:
        tasks = [divided(f"S{k}", "ab"[k % 2], "ab"[(k + 1) % 2], "loop") for k in range(n)]
        return graph(tasks, [Group("loop", "20 times")])

    picture = dag_svg(chain(30))
    assert count(picture, "task") == 30
    assert len(picture) < 100_000
    busy = [divided(f"S{k}", x, x, "loop") for k, x in enumerate("abcdefghij")]
    busy_words = words(dag_svg(graph(busy, [Group("loop", "20 times")])))
    assert "Hidden: 2 more arrows to later iterations." in busy_words
    ET.fromstring(dag_svg(chain(200)))


@pytest.mark.parametrize("hostile", ["<script>", '"><b>', "a&b"])
def test_hostile_names_stay_text(hostile: str) -> None:
    tasks = [divided(hostile, "a", "a", hostile)]
    strange = graph(tasks, [Group(hostile, hostile)])
    for picture in (dag_svg(strange), dag_figure(strange)):
        assert "<script" not in picture
    ET.fromstring(dag_svg(strange))


def test_the_tables_tell_rounds_apart() -> None:
    assert edge_table(heat_graph()).head[-1] == "round"
    assert [(row[0], row[1], row[2], row[-1]) for row in edge_table(heat_graph()).rows] == (
        snapshot(
            [
                ("zero", "S1", "WAW", "same"),
                ("S1", "S2", "RAW", "same"),
                ("S1", "S2", "WAR", "same"),
                ("S1", "S1", "WAW", "later"),
                ("S2", "S1", "RAW", "later"),
                ("S2", "S1", "WAR", "later"),
                ("S2", "S2", "WAW", "later"),
            ]
        )
    )
    rows = [row[:5] for row in task_table(heat_graph(), heat_schedule()).rows]
    assert rows == snapshot(
        [
            ("0", "zero", "cpu", "cpu1", "1"),
            ("1", "loop1 S1", "cpu", "cpu0 … cpu2", "0–2"),
            ("2", "loop1 S2", "cpu", "cpu0 … cpu2", "0–2"),
        ]
    )
    assert "1 loop around them" in graph_text(heat_graph(), heat_schedule())


def test_the_schedule_has_every_part_in_its_lane_and_the_loop_above() -> None:
    picture = lanes_svg(heat_schedule())
    assert words(picture) == snapshot(
        [
            "Schedule",
            "3 ranks, 20 messages, 160 B moved · a phase appears in the lanes of all its ranks · 3 CPUs on",
            "localhost (x86_64)",
            "↻ loop1, 5 times",
            "level 0",
            "level 1",
            "level 2",
            "C",
            "cpu0",
            "rank 0",
            "C",
            "cpu1",
            "rank 1",
            "C",
            "cpu2",
            "rank 2",
            "C",
            "S1",
            "C",
            "S2",
            "C",
            "zero",
            "C",
            "S1",
            "C",
            "S2",
            "C",
            "S1",
            "C",
            "S2",
            "received",
            "–",
            "10 messages",
            "80 B",
            "10 messages",
            "80 B",
            "Bars: cost of a task (estimated from the bytes it touches). Dark outlines: the critical path.",
            "C",
            "CPU",
        ]
    )
    assert count(picture, "task") == 1 + 2 * 3
    assert count(picture, "loop") == 1


def test_the_pictures_are_the_same_for_the_same_graph() -> None:
    assert dag_svg(heat_graph(), heat_schedule()) == dag_svg(heat_graph(), heat_schedule())


def test_graphviz_gets_clusters_and_dashed_edges() -> None:
    assert dag_dot(heat_graph()) == snapshot("""\
digraph tasks {
  node [shape=box, fontname=Helvetica];
  "zero" [tooltip="zero"];
  "S1" [tooltip="S1"];
  "S2" [tooltip="S2"];
  subgraph cluster_0 {
    label="loop1: 5 times"; "S1"; "S2"
  }
  "zero" -> "S1" [label="WAW b 80 B"];
  "S1" -> "S2" [label="RAW b 80 B"];
  "S1" -> "S2" [label="WAR a 80 B"];
  "S1" -> "S1" [label="WAW b 80 B", style=dashed, constraint=false];
  "S2" -> "S1" [label="RAW a 80 B", style=dashed, constraint=false];
  "S2" -> "S1" [label="WAR b 80 B", style=dashed, constraint=false];
  "S2" -> "S2" [label="WAW a 80 B", style=dashed, constraint=false];
}\
""")

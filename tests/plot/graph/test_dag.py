"""The task graph's picture: what it says, what it hides, and that it is safe to show."""

# ruff: noqa: E501 (tables and sentences as they are shown)
from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from inline_snapshot import snapshot

from avial_lab.planning.schedule import DeviceCopy, Schedule
from avial_lab.planning.task_graph import Hazard, TaskGraph
from avial_lab.plot import dag_figure, dag_svg, graph_text
from avial_lab.plot.graph.layout import Box, Line, find_dot, lay_out
from tests.plot.by_hand import (
    CPU,
    TWENTY,
    buffers,
    edge,
    layers,
    machine,
    schedule_by_hand,
    task,
    words,
)

SVG = "{http://www.w3.org/2000/svg}"


def count(picture: str, kind: str) -> int:
    return picture.count(f'data-kind="{kind}"')


def test_says_levels_devices_hazards_bytes_and_ranks(deck_schedule: Schedule) -> None:
    assert "\n".join(
        words(dag_svg(deck_schedule.graph, deck_schedule, engine="built-in"))
    ) == snapshot("""\
Task graph
3 tasks in 2 levels, 3 edges; 3 ranks, 2 messages, 160 B moved · 3 CPUs, 1 GPU (emulated) on
localhost (x86_64)
level 0
level 1
C
task1
a, b → c
cpu0 · rank 0
C
task2
a, b → d
cpu1 · rank 1
G
task3
c, d → d
gpu0 · rank 2 · emulated
RAW c 80 B
rank 0 → 2
RAW d 80 B
WAW d 80 B
rank 1 → 2
Critical path: task1 → task3: 480 B of 720 B, parallelism 1.5 (estimated from the bytes each task
touches).
C
CPU
G
GPU, emulated
value sent to another rank
critical path: dark and bold\
""")


def test_without_a_schedule_shows_targets(deck: TaskGraph) -> None:
    shown = words(dag_svg(deck))
    assert "x86_64" in shown
    assert "sm_90" in shown
    assert not any("rank" in line for line in shown)


def test_text_has_the_same_facts(deck_schedule: Schedule) -> None:
    assert graph_text(deck_schedule.graph, deck_schedule) == snapshot("""\
3 tasks in 2 levels, 3 edges; 3 ranks, 2 messages, 160 B moved
3 CPUs, 1 GPU (emulated) on localhost (x86_64)
critical path: task1 → task3: 480 B of 720 B, parallelism 1.5 (estimated from the bytes each task touches)
Tasks
  level  task   target  device           rank  reads             writes   body             touches  slack  why there
      0  task1  x86_64  cpu0                0  a[0:20], b[0:20]  c[0:20]  scf.parallel 20    240 B    0 B  turn
      0  task2  x86_64  cpu1                1  a[0:20], b[0:20]  d[0:20]  scf.parallel 20    240 B    0 B  turn
      1  task3  sm_90   gpu0 (emulated)     2  c[0:20], d[0:20]  d[0:20]  gpu.launch 20      240 B    0 B  turn
Edges
  before  after  hazard  buffer  region  bytes  between
  task1   task3  RAW     c       [0:20]   80 B  rank 0 → 2
  task2   task3  RAW     d       [0:20]   80 B  rank 1 → 2
  task2   task3  WAW     d       [0:20]   80 B  rank 1 → 2
Messages
  message  storage  box     bytes  from rank  to rank  written by  needed by
        0  c        [0:20]   80 B          0        2  task1       task3
        1  d        [0:20]   80 B          1        2  task2       task3\
""")


@pytest.mark.parametrize("engine", ["built-in", None])
def test_same_input_same_bytes(engine: str | None) -> None:
    first, again = (dag_svg(graph, engine=engine) for graph in (layers(4, 5), layers(4, 5)))
    assert first == again


def test_dot_and_our_own_layout_draw_the_same_things(deck_schedule: Schedule) -> None:
    assert find_dot() is not None, "graphviz-pure is one of our dependencies"
    own = dag_svg(deck_schedule.graph, deck_schedule, engine="built-in")
    theirs = dag_svg(deck_schedule.graph, deck_schedule)
    assert sorted(words(own)) == sorted(words(theirs))
    assert own != theirs


def test_a_dot_that_fails_gives_way_and_is_named(deck: TaskGraph) -> None:
    shown = " ".join(words(dag_svg(deck, engine="/nowhere/dot")))
    assert "Layout built-in: dot failed (FileNotFoundError)" in shown


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '"><img src=x>', "a&b", "]]>", "\x00\x1b[31m", "\ud800"]
)
def test_hostile_names_stay_text(name: str) -> None:
    tasks = (task(name, CPU, "a", "b"), task("next", CPU, "b", "c"))
    graph = TaskGraph(tasks, (edge(name, "next", "b"),), *buffers("abc"))
    picture = dag_svg(graph, schedule_by_hand(graph, machine(2)))
    tree = ET.fromstring(picture)  # well-formed whatever the name
    tags = {element.tag.removeprefix(SVG) for element in tree.iter()}
    assert tags <= {"svg", "title", "desc", "g", "rect", "path", "polygon", "text", "line"}
    html = dag_figure(graph)
    assert "<script" not in html
    assert "<img src=x" not in html
    html.encode("utf-8")


def test_ids_and_outside_addresses_never_appear(deck_schedule: Schedule) -> None:
    picture = dag_svg(deck_schedule.graph, deck_schedule)
    assert not re.search(r"\bid=|\bclass=|href|url\(", picture)
    assert set(re.findall(r"https?://[^\"]+", picture)) == {"http://www.w3.org/2000/svg"}


def test_parallel_dependencies_share_an_arrow(deck_schedule: Schedule) -> None:
    picture = dag_svg(deck_schedule.graph, deck_schedule)
    assert count(picture, "task") == 3
    assert count(picture, "edge") == 2  # of three dependencies, two are between task2 and task3
    assert "RAW d 80 B" in words(picture)
    assert "WAW d 80 B" in words(picture)


def test_only_what_is_sent_looks_sent(deck: TaskGraph) -> None:
    on_one_rank = schedule_by_hand(deck, machine(1, gpus=1))
    assert "value sent to another rank" not in words(dag_svg(deck, on_one_rank))
    war = replace(deck, dependencies=(edge("task1", "task3", "c", Hazard.WRITE_AFTER_READ),))
    assert "order only (WAR, WAW, after)" in words(dag_svg(war))


def test_what_is_copied_between_a_rank_s_memories_says_so(deck: TaskGraph) -> None:
    """Of two arrays that task3 reads on the GPU, c of task1 is copied there."""
    placed = schedule_by_hand(deck, machine(1, gpus=1))
    copies = tuple(
        DeviceCopy(k, storage, TWENTY[0], *ends, task, 80)
        for k, (storage, ends, task) in enumerate(
            [("c", (0, 1), "task3"), ("a", (0, 1), "task3"), ("d", (1, 0), "")]
        )
    )
    picture = dag_svg(deck, replace(placed, copies=copies))
    assert words(picture).count("copied cpu0 → gpu0") == 1
    assert "copies c[0:20], 80 B, cpu0 → gpu0" in picture


def test_150_tasks_are_drawn_one_by_one() -> None:
    graph = layers(10, 15)
    picture = dag_svg(graph, schedule_by_hand(graph, machine(6, gpus=2)))
    assert count(picture, "task") == 150
    assert any("arrows are drawn without their labels" in line for line in words(picture))


def test_151_tasks_are_not() -> None:
    graph = layers(151, 1)
    assert "Hidden: the 151 tasks and 150 edges" in dag_svg(graph)


def test_1000_tasks_become_groups_that_add_up() -> None:
    graph = layers(10, 100)
    picture = dag_svg(graph, schedule_by_hand(graph, machine(6, gpus=2)))
    assert len(picture) < 1_000_000
    sizes = [int(line.split()[0]) for line in words(picture) if re.fullmatch(r"\d+ tasks", line)]
    assert sum(sizes) == 1000
    assert any(
        line.startswith("1,000 tasks and 1,800 edges are drawn as 20 groups")
        for line in words(picture)
    )


@pytest.mark.quick("10000-1", "1-10000")
@pytest.mark.parametrize(("depth", "width"), [(100, 100), (10_000, 1), (1, 10_000)])
def test_10000_tasks_are_counted_and_what_is_hidden_is_said(depth: int, width: int) -> None:
    graph = layers(depth, width)
    picture = dag_svg(graph, schedule_by_hand(graph, machine(6, gpus=2)))
    assert len(picture) < 1_000_000
    shown = " ".join(words(picture))
    assert "10,000 tasks" in shown
    assert "Hidden:" in shown or "are drawn as" in shown
    bars = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) tasks? · ", shown)]
    assert not bars or sum(bars) == 10_000


def test_the_empty_graph_has_a_picture() -> None:
    assert "no tasks" in words(dag_svg(TaskGraph((), (), (), ())))


@pytest.mark.parametrize("engine", ["built-in", None])
def test_a_line_runs_between_its_own_boxes_and_its_label_lies_on_it(engine: str | None) -> None:
    """Lines in any order: `dot` numbers them by the boxes they leave."""
    boxes = [Box(100, 40, level) for level in (0, 0, 1, 2)]
    lines = [Line(0, 2, 30, 10), Line(1, 2, 30, 10), Line(0, 3, 30, 10), Line(2, 3, 30, 10)]
    layout = lay_out(boxes, lines, engine=engine)
    for line, curve, label in zip(lines, layout.curves, layout.labels, strict=True):
        for point, box in ((curve[0], line.tail), (curve[-1], line.head)):
            x, y = layout.centers[box]
            assert abs(point[0] - x) <= 55, (line, point)
            assert abs(point[1] - y) <= 25, (line, point)
        assert label is not None
        across = [x for x, _ in curve]
        assert min(across) - 40 <= label[0] <= max(across) + 40


@pytest.mark.parametrize("engine", ["built-in", None])
def test_boxes_of_a_level_stand_in_a_row_and_apart(engine: str | None) -> None:
    boxes = [Box(100, 40, level) for level in (0, 0, 0, 1, 1, 2)]
    lines = [Line(0, 3), Line(1, 3), Line(2, 4), Line(3, 5), Line(4, 5), Line(0, 5)]
    layout = lay_out(boxes, lines, engine=engine)
    rows: dict[int, list[tuple[float, float]]] = {}
    for box, center in zip(boxes, layout.centers, strict=True):
        rows.setdefault(box.level, []).append(center)
    heights = [row[0][1] for _, row in sorted(rows.items())]
    assert heights == sorted(heights)
    for row in rows.values():
        assert len({round(y) for _, y in row}) == 1
        across = sorted(x for x, _ in row)
        assert all(b - a >= 100 for a, b in itertools.pairwise(across))
    assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in layout.centers)

"""What the views are given to draw, and that they ask nobody else for anything."""

from __future__ import annotations

import base64
import json
import re
import zlib
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import avial_lab
from avial_lab.notebook.display import EXPLORED, MOST_EXPLORED_BYTES, show_schedule
from avial_lab.planning.critical_path import critical_path
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot.palette import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    contrast,
    ink_on,
)
from avial_lab.plot.views import source
from avial_lab.plot.views.graph import graph_data
from tests.plot import by_hand
from tests.plot.by_hand import layers, machine, schedule_by_hand

PACKAGE = Path(avial_lab.__file__).parent


def columns(data: dict[str, Any]) -> dict[str, Any]:
    if "columns" in data:
        return data["columns"]
    return json.loads(zlib.decompress(base64.b64decode(data["packed"])))


def names(data: dict[str, Any]) -> list[str]:
    """As `graph.js` puts them together."""
    tasks, whole = columns(data)["tasks"], [""]
    for shared, rest in zip(tasks["shared"], tasks["name"], strict=True):
        whole.append(whole[-1][:shared] + rest)
    return whole[1:]


def edges(data: dict[str, Any]) -> list[tuple[str, str, str]]:
    found, called = columns(data), names(data)
    table = found["edges"]
    after = list(accumulate(table["after"]))
    before = [head - back for head, back in zip(after, table["before"], strict=True)]
    hazards = [found["strings"][k] for k in table["hazard"]]
    return [(called[b], called[a], h) for b, a, h in zip(before, after, hazards, strict=True)]


@pytest.mark.parametrize(("depth", "width"), [(1, 1), (4, 5), (40, 25), (70, 100)])
def test_every_task_and_edge_is_carried(depth: int, width: int) -> None:
    graph = layers(depth, width)
    data = graph_data(graph, schedule_by_hand(graph, machine(4, gpus=1)))
    assert json.loads(json.dumps(data)) == data
    assert names(data) == [task.name for task in graph.tasks]
    assert edges(data) == [(e.before, e.after, e.hazard.value) for e in graph.dependencies]
    assert data["totals"]["tasks"] == depth * width
    assert [names(data)[k] for k in data["path"]["tasks"]] == list(graph.critical.path)


def test_the_same_graph_is_the_same_bytes() -> None:
    first, again = (
        json.dumps(graph_data(graph, schedule_by_hand(graph, machine(3, gpus=1))))
        for graph in (layers(30, 40), layers(30, 40))
    )
    assert first == again


def test_what_there_is_no_room_for_is_said() -> None:
    graph = layers(60, 60)
    whole = graph_data(graph)
    assert whole["hidden"] == ""
    part = graph_data(graph, most_bytes=500)
    assert "3,600 tasks" in part["hidden"]
    kept = names(part)
    assert 0 < len(kept) <= 1500
    assert set(graph.critical.path) <= set(kept)
    assert sum(map(sum, part["runs"]["rows"])) == 3600  # levels count all the same


@pytest.mark.slow
def test_a_hundred_thousand_tasks_are_small() -> None:
    graph = layers(400, 250)
    bundle = show_schedule(schedule_by_hand(graph, machine(16, gpus=4)))
    assert len(bundle["text/html"]) < 1_000_000
    assert len(bundle["text/plain"]) < 100_000
    assert len(json.dumps(bundle[EXPLORED])) < MOST_EXPLORED_BYTES
    assert len(names(bundle[EXPLORED]["views"][0]["data"])) == 100_000


def test_lanes_of_a_divided_task_are_all_its_devices() -> None:
    schedule = by_hand.heat_schedule()
    tasks = columns(graph_data(schedule.graph, schedule))["tasks"]
    assert tasks["lanes"] == [1, [0, 1, 2], [0, 1, 2]]
    assert tasks["group"] == [-1, 0, 0]


def test_measured_costs_are_those_of_the_trace(deck_schedule: Schedule) -> None:
    data = graph_data(deck_schedule.graph, deck_schedule, by_hand.deck_trace())
    tasks = columns(data)["tasks"]
    assert tasks["cost"] == pytest.approx([40e-6, 53e-6, 35e-6])
    assert tasks["slack"] == pytest.approx([13e-6, 0, 0])
    assert data["path"]["unit"] == "s"
    assert "88 µs of 128 µs" in data["path"]["words"]


def test_the_empty_graph_has_a_view() -> None:
    data = graph_data(TaskGraph((), (), (), ()))
    assert data["totals"] == {"tasks": 0, "edges": 0, "levels": 0}


# The critical path --------------------------------------------------------------------------------

DAGS = st.integers(1, 9).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 9), min_size=n, max_size=n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))),
    )
)


@given(DAGS)
def test_no_chain_is_longer_and_slack_is_what_a_task_may_lose(
    drawn: tuple[list[int], set[tuple[int, int]]],
) -> None:
    """Against all chains, one by one; a task that starts its slack later changes nothing, one more
    does.
    """
    costs, pairs = drawn
    cost = {str(k): value for k, value in enumerate(costs)}
    forward = [(str(a), str(b)) for a, b in sorted(pairs) if a < b]
    found = critical_path(cost, forward)

    def longest(extra: dict[str, int]) -> int:
        end: dict[str, int] = {}
        for name in cost:
            start = max((end[a] for a, b in forward if b == name), default=0)
            end[name] = start + extra.get(name, 0) + cost[name]
        return max(end.values())

    assert found.length == longest({}) == sum(cost[name] for name in found.path)
    assert all(step in forward for step in zip(found.path, found.path[1:], strict=False))
    for name in cost:
        slack = int(found.slack[name])
        assert longest({name: slack}) == found.length
        assert longest({name: slack + 1}) == found.length + 1


# Colours ------------------------------------------------------------------------------------------

# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
BLINDNESS = {
    "protanopia": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "deuteranopia": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "tritanopia": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}


def linear(colour: str) -> list[float]:
    channels = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def lab(rgb: list[float]) -> list[float]:
    matrix = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    x, y, z = (
        sum(m * c for m, c in zip(row, rgb, strict=True)) / w
        for row, w in zip(matrix, white, strict=True)
    )
    fx, fy, fz = (
        max(t, 0.0) ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)
    )
    return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)]


def seen(colour: str, blindness: str) -> list[float]:
    rgb = linear(colour)
    return lab([sum(m * c for m, c in zip(row, rgb, strict=True)) for row in BLINDNESS[blindness]])


@pytest.mark.parametrize("blindness", BLINDNESS)
@pytest.mark.parametrize(
    "colours", [(BLUE, VERMILION), (GREEN, GREY), (ORANGE, GREEN, VERMILION)], ids=str
)
def test_colours_that_stand_together_are_told_apart(
    blindness: str, colours: tuple[str, ...]
) -> None:
    """CPU and GPU; sent and kept; running, done and failed: a difference of 10 is seen at a
    glance.
    """
    for k, first in enumerate(colours):
        for second in colours[k + 1 :]:
            pair = zip(seen(first, blindness), seen(second, blindness), strict=True)
            assert sum((a - b) ** 2 for a, b in pair) ** 0.5 > 10, (first, second)


@pytest.mark.parametrize("colour", [BLUE, VERMILION, GREEN, ORANGE, GREY])
def test_the_better_ink_can_be_read(colour: str) -> None:
    assert contrast(ink_on(colour), colour) >= 4.5


def test_the_views_colours_are_okabe_and_itos() -> None:
    _, style = source("graph")
    okabe_ito = {BLUE, VERMILION, GREEN, ORANGE, "#56b4e9", "#cc79a7"}
    neutral = {"#ffffff", "#000000", "#111827"}
    assert set(re.findall(r"#[0-9a-f]{6}\b", style.lower())) <= okabe_ito | neutral
    script, _ = source("graph")
    assert not re.findall(r"#[0-9a-fA-F]{3,6}\b", script)


# Nothing from elsewhere ---------------------------------------------------------------------------

WRITTEN = sorted(
    path
    for path in (*PACKAGE.rglob("*"), *(PACKAGE.parent / "extensions").rglob("*"))
    if path.suffix in (".js", ".css", ".html")
)
OUTSIDE = re.compile(
    r"""(?:https?:)?//(?!www\.w3\.org/)[\w-]+\.[\w./-]+|@import\b|\bimportScripts\b"""
)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_no_file_of_the_page_names_another_host(path: Path) -> None:
    code = re.sub(r"^\s*(//|/?\*).*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert OUTSIDE.findall(code) == []


def test_the_pattern_finds_an_address() -> None:
    assert OUTSIDE.findall('import x from "https://cdn.example.org/x.js"')
    assert OUTSIDE.findall('src="//unpkg.com/d3"')
    assert not OUTSIDE.findall('"http://www.w3.org/2000/svg"')


@pytest.mark.parametrize(
    "kind", ["graph", "live", "parallel", "stepper", "timeline", "topology", "what_if"]
)
def test_a_view_in_a_page_imports_nothing(kind: str) -> None:
    """There is no file beside it."""
    script, _ = source(kind)
    assert not re.search(r"^import ", script, re.M)
    assert script.count("function element(") <= 1

"""Runs predicted on machines that are a little different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from avial_lab.core.errors import OptionError
from avial_lab.machine.devices import CPU
from avial_lab.machine.platform import Link, Node, Platform
from avial_lab.machine.topology import Device, Topology
from avial_lab.planning import what_if
from avial_lab.planning.imports.workflow import Given, workflow
from avial_lab.planning.planned import plan
from avial_lab.planning.what_if import Answer, Change, WhatIf, what_if_of_loops, what_if_placed
from avial_lab.plot.views.what_if import answer_data, what_if_data
from avial_lab.trace import Trace


@pytest.fixture(autouse=True)
def _any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends by itself, however busy the machine is."""
    monkeypatch.setattr(what_if, "SEARCH_S", 60.0)


def _machine() -> Topology:
    """Two nodes of one core each, and a wire of a gigabyte a second between them."""
    nodes = tuple(Node(f"n{k}", 1, 1e9, 1e9, 1e9, 0) for k in range(2))
    wire = Link("wire", 1e9, 0.0, "ethernet")
    platform = Platform(nodes, (wire,), "a test", routes={("n0", "n1"): ("wire",)})
    devices = tuple(Device(f"cpu{k}", CPU, k, "x86_64", f"n{k}") for k in range(2))
    return Topology(2, devices, platform)


def asked() -> WhatIf:
    """`join` reads half a gigabyte of each of two tasks; all three take a second."""
    tasks = (
        Given("left", 1.0, makes=("l",)),
        Given("right", 1.0, makes=("r",)),
        Given("join", 1.0, reads=("l", "r")),
    )
    graph = workflow(Path("three.json"), tasks, {"l": 500_000_000, "r": 500_000_000})
    return what_if_placed(plan(graph, _machine(), policy="heft"))


@pytest.mark.parametrize(
    ("change", "seconds", "kept_s", "moved"),
    [
        (Change(), 2.5, 2.5, 0),  # 1, then half a second on the wire, then 1
        (Change(bandwidth=2.0), 2.25, 2.25, 0),
        (Change(latency=3.0), 2.5, 2.5, 0),
        (Change(speed=2.0), 1.5, 1.5, 0),  # 0.5, 0.5 on the wire, 0.5: not slower than one core
        (Change(bandwidth=0.0625), 3.0, 10.0, 1),  # all on one core, as the wire takes 8 s
        (Change(ranks=1), 3.0, None, 0),
    ],
)  # fmt: skip
def test_tasks_by_hand(change: Change, seconds: float, kept_s: float | None, moved: int) -> None:
    answer = asked().answer(change)
    assert answer.trace.makespan_s == pytest.approx(seconds)
    assert answer.kept_s == (None if kept_s is None else pytest.approx(kept_s))
    assert answer.moved == moved


@pytest.mark.parametrize(
    "change", [Change(bandwidth=0), Change(speed=-1), Change(memory=float("nan")), Change(ranks=3)]
)
def test_what_cannot_be_is_refused(change: Change) -> None:
    with pytest.raises(OptionError):
        asked().answer(change)


def test_loops_are_asked_of_the_changed_machine() -> None:
    seen: list[Topology] = []

    def simulate(topology: Topology) -> Trace:
        seen.append(topology)
        return Trace(topology.ranks, (), "nothing")

    asked = what_if_of_loops(simulate, _machine())
    assert isinstance(asked.answer(Change(speed=4.0, ranks=1)), Answer)
    assert seen[0].ranks == 1
    assert seen[0].speeds.nodes[0].core_flops_per_s == 4e9
    assert seen[0].speeds.links == _machine().speeds.links


def test_the_page_is_told_in_words() -> None:
    data = what_if_data(asked(), "What if?")
    assert [slider["name"] for slider in data["sliders"]] == [
        "ranks", "bandwidth", "latency", "speed", "memory",
    ]  # fmt: skip
    assert data["answer"]["words"] == ["2.5 s predicted"]
    answer = answer_data(asked(), {"bandwidth": 0.0625})
    assert answer["words"] == [
        "3 s predicted, 1.20 × of 2.5 s on the machine as it is",
        "1 task placed elsewhere; where they were it would be 10 s",
    ]
    assert "Timeline: " in answer["picture"]


@pytest.mark.parametrize(
    "values", [{"bandwidth": 3.0}, {"ranks": 7}, {"<b>": 1.0}, {"speed": "1"}, {"memory": None}]
)
def test_a_page_gets_no_other_values(values: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        answer_data(asked(), values)

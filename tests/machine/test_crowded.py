"""Ranks that share cores: what their messages wait for, and what they compute with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avial_lab.machine.measured import MeasuredNode, node_in
from avial_lab.machine.platform import Link, Node, Platform
from avial_lab.machine.presets import topology_on
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.placement import schedule_by_hand
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import Task, build_dag

NODE = Node("n", 2, 1e9, 1e9, 2e9, 0, crowded_s=((2.0, 30e-6), (4.0, 120e-6)))


def _machine(ranks: int) -> Topology:
    node, link = replace(NODE, ranks=ranks), Link("shm", 1e9, 2e-6)
    return topology_on(Platform((node,), (link,), "a test", inside={"n": "shm"}))


@pytest.mark.parametrize(
    ("ranks", "seconds"),
    [(1, 0.0), (2, 0.0), (3, 30e-6 * 0.75**2), (4, 30e-6), (8, 120e-6), (16, 480e-6)],
)
def test_a_message_waits_for_a_core_where_ranks_share_it(ranks: int, seconds: float) -> None:
    assert _machine(ranks).speeds.nodes[0].delay_s(ranks) == pytest.approx(seconds)


def test_without_waiting_for_a_core_messages_come_at_once() -> None:
    assert _machine(2).never_waiting is None
    free = _machine(4).never_waiting
    assert free is not None
    assert free.speeds.nodes[0].delay_s(4) == 0
    assert free.share_of_core.tolist() == [0.5] * 4


def test_who_waits_keeps_its_part_of_a_core() -> None:
    """One task on one of the ranks, the others have nothing to do but look for messages."""
    graph = build_dag([Task("t", Target("any"), (), ())], (), ())
    for ranks, seconds in ((2, 1.0), (4, 2.0), (8, 4.0)):
        schedule = schedule_by_hand(graph, _machine(ranks), {"t": "cpu0"})
        trace = simulated(schedule, Costs(given={"t": 1.0}))
        assert trace.makespan_s == pytest.approx(seconds)


def test_what_was_measured_of_it_is_kept() -> None:
    node = MeasuredNode(1e9, 1e9, 1e9, ((1, 2.0),), 1e-6, ((2.0, 3e-5),))
    told = {
        "core_flops_per_s": 1e9, "core_bytes_per_s": 1e9, "memory_bytes_per_s": 1e9,
        "caches": [[1, 2.0]], "team_s": 1e-6, "crowded_s": [[2.0, 3e-5]],
    }  # fmt: skip
    assert node_in(told) == node
    assert node.node("n", cores=1, memory_bytes=0).team_s == 1e-6

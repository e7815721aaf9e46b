"""Programs of tasks, simulated step by step: by hand, and what holds of all schedules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avial_lab import plot
from avial_lab.core.buffers import Buffer, Storage
from avial_lab.core.errors import ScheduleError
from avial_lab.core.regions import Box
from avial_lab.machine.constants import EAGER_BYTES, FOREIGN_CACHE_RATE, MESSAGE_STEP_S
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.platform import Link, Node, Platform
from avial_lab.machine.topology import Target, Topology
from avial_lab.planning.costs import Costs
from avial_lab.planning.memory import first_touched
from avial_lab.planning.placement import schedule_by_hand, schedule_tasks
from avial_lab.planning.schedule import Schedule, StepKind, Sync
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import Access, Task, TaskGraph, build_dag
from avial_lab.trace import EventKind, Trace
from tests.plot import by_hand
from tests.quick import examples
from tests.strategies import task_graphs, topologies

BYTES_PER_S, LATENCY_S, CORE_BYTES_PER_S = 1e9, 1e-5, 1e9


def _cluster(ranks: int, eager_bytes: int = EAGER_BYTES, gpus: int = 0) -> Topology:
    """A node for each rank, of one core, on one switch; with emulated GPUs."""
    names = [f"n{k}" for k in range(ranks)]
    nodes = tuple(Node(name, 1, 1e9, CORE_BYTES_PER_S, 1e9, 0) for name in names)
    links = tuple(
        Link(f"l{k}", BYTES_PER_S, LATENCY_S / 2, eager_bytes=eager_bytes) for k in range(ranks)
    )
    uplinks = {name: (("switch", f"l{k}"),) for k, name in enumerate(names)}
    platform = Platform(nodes, links, "a test", uplinks=uplinks)
    devices = tuple(
        replace(device, node=names[device.rank])
        for device in Topology.local(ranks, gpus=gpus).devices
    )
    return Topology(ranks, devices, platform)


def _two_tasks(nbytes: int, eager_bytes: int = EAGER_BYTES, on: str = "cpu") -> Schedule:
    """t0 on rank 0 writes what t1 on rank 1 reads."""
    storage = Storage("a", (nbytes,), 1, ("a",))
    a = Access("a", "a", (Box((0,), (nbytes,)),))
    target = Target("any") if on == "cpu" else Target(on, on)
    tasks = (Task("t0", target, (), (a,)), Task("t1", target, (a,), ()))
    graph = build_dag(tasks, (Buffer("a", (nbytes,), "i8", "a", (1,)),), (storage,))
    devices = {"t0": f"{on}0", "t1": f"{on}1"}
    return schedule_by_hand(graph, _cluster(2, eager_bytes, 2 if on == "gpu" else 0), devices)


def _of(trace: Trace, kind: EventKind, rank: int) -> list[tuple[float, float]]:
    return [(e.start_s, e.end_s) for e in trace.events if e.kind is kind and e.rank == rank]


def test_a_message_takes_its_latency_and_its_bytes() -> None:
    schedule = _two_tasks(1000)
    trace = simulated(schedule, Costs(given={"t0": 2.0, "t1": 3.0}))
    arrived = 2.0 + MESSAGE_STEP_S + LATENCY_S + 1000 / BYTES_PER_S
    assert trace.label == "simulated on a test"
    assert _of(trace, EventKind.TASK, 0) == [(0.0, 2.0)]
    ((begin, end),) = _of(trace, EventKind.TASK, 1)
    assert begin == pytest.approx(arrived, abs=1e-12)
    assert end == pytest.approx(arrived + 3.0, abs=1e-12)
    assert trace.bytes_sent == 1000


def test_a_message_between_gpus_goes_through_both_ranks_memory() -> None:
    schedule = _two_tasks(1000, on="gpu")
    (message,) = schedule.transfers
    assert message.devices(2) == "gpu0 → gpu1"
    trace = simulated(schedule, Costs(given={"t0": 2.0, "t1": 3.0}))
    ((_, sent),), ((_, waited),) = _of(trace, EventKind.SEND, 0), _of(trace, EventKind.WAIT, 1)
    assert sent == pytest.approx(2.0 + MESSAGE_STEP_S + 1000 / CORE_BYTES_PER_S, abs=1e-12)
    there = sent + LATENCY_S + 1000 / BYTES_PER_S
    assert waited == pytest.approx(there + 1000 / CORE_BYTES_PER_S, abs=1e-12)


def test_only_a_long_message_waits_for_its_receiver() -> None:
    """Rank 1 computes for 5 s, then posts the receive and waits."""
    for nbytes, most in ((EAGER_BYTES, EAGER_BYTES), (EAGER_BYTES + 8, EAGER_BYTES), (800, 796)):
        schedule = _two_tasks(nbytes, most)
        post = next(s for s in schedule.programs[1] if s.kind is StepKind.POST)
        run = post._replace(kind=StepKind.RUN, task="t1", transfer=-1)
        late = (run, *schedule.programs[1][:-1])
        late_schedule = replace(schedule, programs=(schedule.programs[0], late))
        trace = simulated(late_schedule, Costs(given={"t0": 1.0, "t1": 5.0}))
        ((_, end),) = _of(trace, EventKind.WAIT, 1)[-1:]
        moved = LATENCY_S + nbytes / BYTES_PER_S
        if nbytes <= most:
            assert end == pytest.approx(5.0 + MESSAGE_STEP_S, abs=1e-12)
        else:
            assert end == pytest.approx(5.0 + MESSAGE_STEP_S + moved, abs=1e-12)


@pytest.mark.parametrize(("others", "rate"), [(1, 1e11 * FOREIGN_CACHE_RATE), (10, 1e9)])
def test_what_a_rank_first_touches_comes_from_where_all_that_the_caller_wrote_lies(
    others: int, rate: float
) -> None:
    """Not what a message brings, or a task before it touched; what was measured stays."""
    nbytes = 10**6
    schedule = _two_tasks(nbytes)
    other = replace(schedule.graph.storages[0], name="other", shape=(others * nbytes,))
    storages = (*schedule.graph.storages, other)
    schedule = replace(schedule, graph=replace(schedule.graph, storages=storages))
    demands = {"t0": Demand(8, nbytes), "t1": Demand(8, nbytes)}
    room = ((10 * nbytes, 1e11),)  # they fit a cache, which is the second
    nodes = tuple(replace(n, caches=((100, 1e12), *room)) for n in schedule.topology.speeds.nodes)
    platform = replace(schedule.topology.speeds, nodes=nodes)
    schedule = replace(schedule, topology=replace(schedule.topology, platform=platform))
    assert first_touched(schedule) == {"t0": nbytes, "t1": 0}
    loops = {1: {"t0": CoreTime(1.0), "t1": CoreTime(1.0)}}
    trace = simulated(schedule, Costs(demands, loops=loops))
    assert [e.duration_s for e in trace.events if e.kind is EventKind.TASK] == pytest.approx(
        [nbytes / rate, nbytes / 1e11]
    )
    measured = Costs(demands, {("t0", "cpu0"): 1e-7, ("t1", "cpu1"): 1e-7}, loops=loops)
    assert {e.duration_s for e in simulated(schedule, measured).events if e.name == "t0"} == {1e-7}


def test_a_machine_without_a_way_is_told() -> None:
    schedule = _two_tasks(8)
    platform = replace(schedule.topology.speeds, uplinks={})
    cut = replace(schedule, topology=replace(schedule.topology, platform=platform))
    with pytest.raises(ScheduleError, match="no link leads from node 'n0' to node 'n1'"):
        simulated(cut, Costs())


@given(task_graphs(), topologies(), st.sampled_from(Sync))
@settings(max_examples=examples(40), deadline=None)
def test_a_simulated_run_is_the_schedule_with_times(
    graph: TaskGraph, topology: Topology, sync: Sync
) -> None:
    """Every step once and in its order, no rank in two at once, nothing read before it is there,
    and the bytes of the schedule.
    """
    schedule = schedule_tasks(graph, topology, sync=sync)
    trace = simulated(schedule, Costs(given={task.name: 1.0 for task in graph.tasks}))
    for rank, program in enumerate(schedule.programs):
        events = [e for e in trace.events if e.rank == rank]
        assert Counter(e.kind for e in events) == Counter(s.kind.event for s in program)
        ordered = sorted(events, key=lambda e: (e.start_s, e.end_s))
        assert all(a.end_s <= b.start_s + 1e-12 for a, b in pairwise(ordered))
        tasks = [e.name for e in ordered if e.kind is EventKind.TASK]
        assert tasks == [s.task for s in program if s.kind is StepKind.RUN]
    at = {e.name: e for e in trace.events if e.kind is EventKind.TASK}
    for edge in graph.dependencies:
        if schedule.placement_of[edge.before].rank == schedule.placement_of[edge.after].rank:
            assert at[edge.before].end_s <= at[edge.after].start_s
    for transfer in schedule.transfers:
        assert at[transfer.producer].end_s < at[transfer.consumer].start_s
    assert trace.bytes_sent == schedule.bytes_moved
    assert trace.makespan_s >= len(graph.tasks) / topology.ranks - 1e-9
    assert plot.timeline_svg(trace, schedule).startswith("<svg")


def test_one_device_takes_the_sum_of_its_tasks() -> None:
    graph = by_hand.heat_graph()
    schedule = schedule_tasks(graph, Topology.local(1))
    trace = simulated(schedule, Costs(given={task.name: 0.5 for task in graph.tasks}))
    assert trace.makespan_s == 0.5 * len(graph.tasks)

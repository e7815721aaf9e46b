"""Seconds of tasks, and where they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from avial_lab.core.cache import Cache
from avial_lab.machine.constants import (
    GPU_CACHE_BYTES_PER_FLOP,
    REACHED_OF_GPU_MEMORY,
    REACHED_OF_PEAK,
)
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.demand import CoreTime, Demand
from avial_lab.machine.devices import CPU
from avial_lab.machine.platform import Accelerator, Node, Platform
from avial_lab.machine.topology import Device, Topology
from avial_lab.planning.costs import Costs, CostSource, seconds_on_gpu
from avial_lab.planning.profile import KEPT, Profile
from avial_lab.trace import Event, EventKind, Trace
from tests.plot import by_hand

NODE = Node("n", 4, 1e9, 1e9, 2e9, 0, caches=((1000, 8e9),))


def _machine(ranks: int) -> Topology:
    platform = Platform((NODE,), (), "a test")
    devices = tuple(Device(f"cpu{r}", CPU, r, "x86_64", "n") for r in range(ranks))
    return Topology(ranks, devices, platform)


@pytest.mark.parametrize(
    ("demand", "ranks", "seconds"),
    [
        (Demand(10**9, 8, "f64"), 1, 0.5),  # 4 cores, half of their peak
        (Demand(10**9, 8, "f64"), 4, 2.0),  # a core for each rank
        (Demand(10**9, 8, "f32"), 4, 1.0),
        (Demand(0, 10**9, "f64"), 4, 1.0),  # one core's share of the memory
        (Demand(0, 10**9, "f64"), 1, 0.5),  # all that the memory gives
        (Demand(0, 800, "f64"), 4, 1e-7),  # from the cache
    ],
)
def test_the_roofline_of_a_rank(demand: Demand, ranks: int, seconds: float) -> None:
    graph, machine = by_hand.heat_graph(), _machine(ranks)
    task = graph.tasks[0]
    cost = Costs({task.name: demand}).of(task, machine.devices[0], graph, machine)
    assert cost.source is CostSource.ROOFLINE
    assert cost.seconds == pytest.approx(seconds)
    assert cost.memory_bytes == (10**9 if demand.nbytes == 10**9 else 0)


def test_compiled_loops_say_how_long_a_task_takes() -> None:
    graph, machine = by_hand.heat_graph(), _machine(2)
    task, cycle_s = graph.tasks[0], this_cpu().flops_per_cycle / NODE.core_flops_per_s
    chain = CoreTime(1e6 / cycle_s, teams=10)  # a second in steps that wait for each other

    def seconds(demand: Demand, *loops: int) -> float:
        known = {cores: {task.name: chain.times(1e-6 * 2 / cores)} for cores in loops}
        costs = Costs({task.name: demand}, loops=known)
        return costs.of(task, machine.devices[0], graph, machine).seconds

    team_s = 10 * 1e-6 * NODE.team_s
    assert seconds(Demand(10, 80), 1, 2) == pytest.approx(1 + team_s)  # a rank has two cores
    assert seconds(Demand(10, 80), 1) == pytest.approx(2 + 2 * team_s)  # nobody asked for two
    assert seconds(Demand(10, 4 * 10**9), 1, 2) == 2.0  # bound by memory
    assert seconds(Demand(6 * 10**9, 8), 1, 2) == 3.0  # never beyond what cores compute


def test_a_profile_overrides_the_roofline_and_says_so() -> None:
    graph, machine = by_hand.heat_graph(), _machine(2)
    task = graph.tasks[0]
    costs = Costs({task.name: Demand(10**9, 8)}, {(task.name, "cpu1"): 3.0})
    for device in machine.devices:  # of the same kind
        cost = costs.of(task, device, graph, machine)
        assert (cost.seconds, cost.source) == (3.0, CostSource.PROFILE)


def test_what_nothing_is_known_of_is_a_guess() -> None:
    graph, machine = by_hand.heat_graph(), _machine(2)
    cost = Costs().of(graph.tasks[1], machine.devices[0], graph, machine)
    assert cost.source is CostSource.GUESSED
    assert "operations not known" in cost.why


# Profiles -----------------------------------------------------------------------------------------


def _run(seconds: float, label: str = "measured") -> Trace:
    return Trace(1, (Event(EventKind.TASK, "t", 0, "cpu0", 0.0, seconds),), label)


def test_one_spike_changes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    profile = Profile("key")
    for seconds in (1.0, 1.25, 100.0, 1.25, 1.0, 1.25):
        profile.add(_run(seconds))
    profile.add(_run(7.0, "simulated on a test"))  # which is none
    assert profile.seconds == {("t", "cpu0"): 1.25}
    profile.save()
    again = Profile("key")
    assert again.seconds == {("t", "cpu0"): 1.25}
    assert not Profile("another program").seconds
    for _ in range(3 * KEPT):
        again.add(_run(2.0))
    assert again.runs == KEPT
    assert again.seconds == {("t", "cpu0"): 2.0}


@pytest.mark.parametrize("stored", [b"[[1]]", b"{", b'[["t", "cpu0", -1.0]]', b'[["t", "cpu0"]]'])
def test_what_another_version_has_stored_is_nothing(
    stored: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Cache(tmp_path / "avial_lab" / "profile").put("key", stored)
    assert not Profile("key").seconds


def test_runs_at_another_size_scale_and_say_so() -> None:
    graph, machine = by_hand.heat_graph(), _machine(2)
    task = graph.tasks[0]
    costs = Costs({task.name: Demand(10**9, 8)}, {(task.name, "cpu0"): 3.0}, other_size=True)
    cost = costs.of(task, machine.devices[0], graph, machine)
    assert (cost.seconds, cost.source) == (3.0, CostSource.SCALED)


def test_a_gpu_is_bound_by_arithmetic_its_memory_or_its_caches() -> None:
    gpu = Accelerator("gpu", "sm_90", 10e12, 1e12, 1 << 36)
    by_memory = seconds_on_gpu(1e6, 1e9, 1e9, "f64", gpu)
    assert by_memory == pytest.approx(1e-3 / REACHED_OF_GPU_MEMORY)
    by_arithmetic = seconds_on_gpu(1e12, 1e6, 1e6, "f32", gpu)
    assert by_arithmetic == pytest.approx(1e12 / (20e12 * REACHED_OF_PEAK))
    # A product whose threads load both factors for each multiply-add.
    by_caches = seconds_on_gpu(2e12, 1e6, 16e12, "f64", gpu)
    assert by_caches == pytest.approx(16 / (10 * GPU_CACHE_BYTES_PER_FLOP))

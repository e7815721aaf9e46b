"""What a machine was measured to do: kept for it, written as a file, used as a platform."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from avial_lab.cli.main import main
from avial_lab.core.cache import Cache
from avial_lab.core.errors import OptionError
from avial_lab.core.toolchain import run
from avial_lab.machine import measured
from avial_lab.machine.host import CacheLevel, Machine
from avial_lab.machine.measure import _caches, _sizes
from avial_lab.machine.measured import (
    Measured,
    MeasuredHosts,
    MeasuredMessages,
    MeasuredNode,
    collectives_through,
    keep,
    kept,
    line_through,
)
from avial_lab.machine.platform import Collective, CollectiveTime
from avial_lab.machine.roofline import Ceilings
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology_file import TopologyError, topology_in, topology_text
from avial_lab.runtime.launch.discovery import _ranks_here, measure_machine

NODE = MeasuredNode(40e9, 10e9, 15e9, ((1 << 20, 80e9),))
CALLS = (
    CollectiveTime(Collective.BARRIER, 2, 1, 3e-6),
    CollectiveTime(Collective.ALL_GATHER, 2, 1, 4e-6, 8e9),
    CollectiveTime(Collective.ALL_GATHER, 8, 1, 12e-6, 4e9),
)
FOUND = Measured(NODE, MeasuredMessages(2e-6, 5e9, 0.1, 1 << 15), CALLS, ("told",), 9e3)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "cache_folder", lambda: tmp_path / "cache")


def test_it_is_kept_for_this_machine() -> None:
    assert kept() is None
    with pytest.raises(OptionError, match="was not measured yet"):
        topology_called("here")
    keep(FOUND)
    assert kept() == FOUND
    here = topology_called("here")
    assert here.speeds.label == "this machine, measured"
    assert here.speeds.source == "measured here, on a busy machine"
    assert replace(FOUND, notes=()).platform().source == "measured here"
    assert here.speeds.latency_s(here.speeds.hops("localhost", "localhost") or ()) == 2e-6


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{}", '{"caches": 3}', '{"latency_s": "x"}', json.dumps({"latency_s": 1})],
)
def test_an_entry_of_another_form_is_none(text: str) -> None:
    store, key = measured._store(), measured._key()
    assert isinstance(store, Cache)
    store.put(key, text.encode())
    assert kept() is None


def test_caches_are_measured_at_sizes_between_and_a_larger_one_is_never_faster() -> None:
    levels = (CacheLevel(1, 32 << 10, 1), CacheLevel(2, 1 << 20, 1), CacheLevel(3, 8 << 20, 2))
    sizes = _sizes(Machine("p", "a", 2, 2, levels))
    assert sizes == [1 << 19, 1 << 20, 1 << 21, 1 << 22]
    assert _sizes(Machine("p", "a", 1, 1, levels[:1])) == []
    rates = (9e10, 7e10, 8e10, 1e9)  # the last is no faster than memory
    one = Ceilings(1, "f64", 1e10, 1e10, streams=tuple(zip(sizes, rates, strict=True)))
    assert _caches(one) == ((1 << 19, 9e10), (1 << 21, 8e10))


def test_a_file_of_it_is_the_same_machine() -> None:
    read = topology_in(topology_text(FOUND.topology(2)), "here.yaml")
    node, link = read.speeds.nodes[0], read.speeds.links[0]
    ours = FOUND.platform().nodes[0]
    assert read.ranks == 2
    assert (node.cores, node.core_flops_per_s) == (ours.cores, 40e9)
    assert (node.core_bytes_per_s, node.memory_bytes_per_s) == (10e9, 15e9)
    assert link.latency_s == pytest.approx(2e-6)
    assert link.bandwidth_bytes_per_s == 5e9
    assert link.eager_bytes == 1 << 15
    assert read.speeds.collectives == CALLS


def test_a_file_of_hosts_has_a_link_for_each_and_a_line_for_each_class() -> None:
    nodes = tuple(
        replace(NODE.node(name, cores=8, memory_bytes=1 << 34), ranks=2) for name in ("a", "b")
    )
    inside, between = FOUND.messages, MeasuredMessages(50e-6, 1e9, 0.2, 1 << 14)
    found = MeasuredHosts(nodes, inside, between)
    read = topology_in(topology_text(found.topology()), "hosts.yaml")
    assert read.ranks == 4
    assert read.node_of == ("a", "a", "b", "b")
    latency, rate = read.speeds.between(["a", "b"])
    assert latency == pytest.approx(np.array([[2e-6, 50e-6], [50e-6, 2e-6]]))
    assert rate.tolist() == [[5e9, 1e9], [1e9, 5e9]]
    across = read.speeds.hops("a", "b") or ()
    assert [read.speeds.eager_bytes(hops) for hops in (across, ())] == [1 << 14, 1 << 16]
    assert "messages between hosts: 50 µs and 1.00 GB/s" in str(found)
    assert MeasuredHosts(nodes[:1], None, None).topology().ranks == 2


def test_a_line_that_one_size_leaves_is_hardly_moved() -> None:
    sizes = [1 << k for k in range(3, 23)]
    took = [1e-6 + n / 1e9 for n in sizes]
    took[10] *= 1.5
    latency, rate, off = line_through(sizes, took)
    assert latency == pytest.approx(1e-6, rel=0.2)
    assert rate == pytest.approx(1e9, rel=0.2)
    assert off < 0.1


def test_each_call_of_each_group_has_a_line_of_its_own() -> None:
    rows = [("barrier", ranks, 1, 0, 1e-6 * ranks) for ranks in (2, 4)]
    for ranks, rate in ((2, 8e9), (4, 4e9)):
        rows += [("all-reduce", ranks, 1, n, 5e-6 + n / rate) for n in (64, 1 << 14, 1 << 22)]
    found = {(each.call, each.ranks): each for each in collectives_through(rows)}
    assert found[Collective.BARRIER, 4] == CollectiveTime(Collective.BARRIER, 4, 1, 4e-6)
    for ranks, rate in ((2, 8e9), (4, 4e9)):
        line = found[Collective.ALL_REDUCE, ranks]
        assert (line.latency_s, line.bytes_per_s) == pytest.approx((5e-6, rate))


def test_between_two_groups_a_call_is_on_the_line_through_both_and_beyond_it_is_not_known() -> None:
    platform = FOUND.platform()
    four = platform.collective(Collective.ALL_GATHER, 4, 1)
    assert four is not None
    assert four.latency_s == pytest.approx(8e-6)
    assert 1 / four.bytes_per_s == pytest.approx((1 / 8e9 + 1 / 4e9) / 2)
    assert platform.collective(Collective.ALL_GATHER, 16, 1) is None
    assert platform.collective(Collective.ALL_GATHER, 4, 2) is None
    assert platform.collective(Collective.BROADCAST, 2, 1) is None
    assert platform.collective(Collective.BARRIER, 2, 1) == CALLS[0]


def test_what_if_the_links_were_others_the_calls_are_too() -> None:
    there = FOUND.topology(2).with_links(bandwidth=2, latency=0.5).speeds.collectives
    assert there[1] == CollectiveTime(Collective.ALL_GATHER, 2, 1, 2e-6, 16e9)
    there = FOUND.topology(2).with_links("shared memory", latency=3).speeds.collectives
    assert there[0].latency_s == pytest.approx(9e-6)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{call: all-gathr, ranks: 2, latency: 1 us, bandwidth: 1 GB/s}", "mean 'all-gather'"),
        ("{call: all-gather, ranks: 2, latency: 1 us}", "all collectives but a barrier"),
        ("{call: barrier, ranks: 2, latency: 1 us, bandwidth: 1 GB/s}", "but a barrier"),
        ("{call: barrier, ranks: 2, latency: 1}", "latency"),
        ("{call: barrier, latency: 1 us}", "a collective lacks 'ranks'"),
        ("{call: barrier, ranks: 2, nodes: 1, latency: 1 us}", "stands twice"),
    ],
)
def test_a_collective_of_a_file_that_is_none(line: str, words: str) -> None:
    text = topology_text(FOUND.topology(2)) + f"  - {line}\n"
    with pytest.raises(TopologyError, match=words) as told:
        topology_in(text, "here.yaml")
    assert told.value.span is not None


@pytest.mark.mpi
def test_calls_of_two_ranks_are_measured() -> None:
    command = [*_ranks_here(2), sys.executable, "-m", "avial_lab.runtime.rank.collective_times"]
    told = run(command, limit_s=60)
    assert told.returncode == 0, told.complaint
    found = collectives_through(json.loads(told.stdout)["collectives"])
    assert {each.call for each in found} == set(Collective)
    assert {(each.ranks, each.nodes) for each in found} == {(2, 1)}
    assert all(each.latency_s > 0 for each in found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["topology", "preset:laptop", "--measure"], "only this machine, or hosts, can be"),
        (["topology", "--hosts", "a,b"], "--hosts and --ppn say what is measured"),
        (["topology", "--measure", "--hosts", "a,a"], "a host is named twice"),
        (["topology", "-o", "x.yaml"], "-o takes a machine to write"),
    ],
)
def test_what_cannot_be_measured(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    assert words in capsys.readouterr().err


@pytest.mark.mpi
@pytest.mark.slow
def test_this_machine_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "here.yaml"
    assert main(["topology", "--measure", "-o", str(file)]) == 0
    assert "GFLOP/s" in capsys.readouterr().out
    assert topology_called(file).ranks == topology_called("here").ranks
    assert measure_machine().node.core_flops_per_s > 0

"""Machines from files and presets: what is read, what ways messages take, what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from avial_lab.core.errors import AvialError, OptionError
from avial_lab.machine.constants import HOST_LINK_BYTES_PER_S
from avial_lab.machine.presets import PRESETS, preset
from avial_lab.machine.simgrid_platform import read_platform
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Target
from avial_lab.machine.topology_file import LikelyBitsWarning, topology_in

LAB = """\
name: lab
nodes:
  - {name: n, count: 3, cores: 4, core_flops: 40 GFLOP/s, core_bandwidth: 12 GB/s,
     memory_bandwidth: 100 GB/s, memory: 64 GiB, ranks: 2}
links:
  - {name: eth, kind: ethernet, bandwidth: 25 Gbit/s, latency: 10 us}
  - {name: shm, kind: shared memory, bandwidth: 5 GB/s, latency: 1 us}
inside: shm
switch: eth
"""


def test_a_file_becomes_ranks_and_ways() -> None:
    found = topology_in(LAB, "lab.yaml")
    assert found.ranks == 6
    assert found.node_of == ("n0", "n0", "n1", "n1", "n2", "n2")
    assert found.cores_of_rank == (2,) * 6
    platform = found.speeds
    assert platform.hops("n0", "n2") == (("n0-eth", False), ("n2-eth", True))
    assert platform.hops("n1", "n1") == (("shm", False),)
    latency, rate = platform.between(["n0", "n1"])
    assert np.allclose(latency, [[1e-6, 2e-5], [2e-5, 1e-6]])
    assert np.allclose(rate, [[5e9, 3.125e9], [3.125e9, 5e9]])
    assert platform.node("n1").memory_bytes == 64 << 30


ROUTES = """\
routes:
  - {from: n0, to: n1, links: [eth]}
  - {from: n1, to: n2, links: [eth, shm]}
"""


def test_routes_in_place_of_a_switch() -> None:
    """Both ways; and none where none is given."""
    platform = topology_in(LAB.replace("switch: eth\n", ROUTES), "lab.yaml").speeds
    assert platform.hops("n1", "n0") == (("eth", True),)
    assert platform.hops("n1", "n2") == (("eth", False), ("shm", False))
    assert platform.hops("n0", "n2") is None
    assert np.isinf(platform.between(["n0", "n1", "n2"])[0][0, 2])


@pytest.mark.parametrize(
    ("old", "new", "words", "line"),
    [
        ("latency: 10 us", "latency: 10", "'10' has no unit", 6),
        ("25 Gbit/s", "25 Gbits", "is not a unit for this", 6),
        ("cores: 4", "coers: 4", "a node has no 'coers'", 3),
        ("cores: 4", "cores: 0", "cores is 0", 3),
        ("count: 3", "count: many", "a whole number, not 'many'", 3),
        ("inside: shm", "inside: sham", "there is no link 'sham'", 8),
        ("latency: 1 us}", "latency: 0 us}", "is not more than 0", 7),
        ("name: lab", "name: [lab", "this is not YAML", None),
        ("name: lab", "name: lab\nname: lab", "'name' stands twice", 2),
    ],
)
def test_what_is_wrong_has_a_place(old: str, new: str, words: str, line: int | None) -> None:
    with pytest.raises(AvialError, match=words) as caught:
        topology_in(LAB.replace(old, new), "lab.yaml")
    assert caught.value.span is not None
    if line is not None:
        assert caught.value.span.line == line


def test_bytes_where_bits_were_meant() -> None:
    with pytest.warns(LikelyBitsWarning, match=r"100 GB/s is 800 Gbit/s"):
        topology_in(LAB.replace("25 Gbit/s", "100 GB/s"), "lab.yaml")


@pytest.mark.parametrize("text", ["", "nodes: []", "nodes: 3", "[1, 2]", "{}"])
def test_no_machine_at_all(text: str) -> None:
    with pytest.raises(AvialError):
        topology_in(text, "lab.yaml")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_a_way_between_all_ranks(name: str) -> None:
    found = preset(name)
    names = list(dict.fromkeys(found.node_of))
    latency, rate = found.speeds.between(names)
    assert np.isfinite(latency).all()
    assert (rate > 0).all()
    # In arrays as one by one.
    for a, b in ((0, 0), (0, len(names) - 1), (0, min(1, len(names) - 1))):
        hops = found.speeds.hops(names[a], names[b])
        assert hops is not None
        assert latency[a, b] == pytest.approx(found.speeds.latency_s(hops))
        assert rate[a, b] == found.speeds.bandwidth_bytes_per_s(hops)


def test_a_preset_with_gpus_takes_gpu_tasks() -> None:
    found = preset("8-gpu-node")
    assert len(found.satisfying(Target("g", "sm_90"))) == 8
    assert not any(device.emulated for device in found.devices)
    assert found.cores_of_rank == (8,) * 8


def test_gpus_of_a_file_have_links_to_their_host(tmp_path: Path) -> None:
    node = (
        "name: n, cores: 4, core_flops: 40 GFLOP/s, core_bandwidth: 12 GB/s, "
        "memory_bandwidth: 100 GB/s, memory: 64 GiB"
    )
    gpu = "arch: sm_90, flops: 30 TFLOP/s, bandwidth: 3 TB/s, memory: 80 GiB"
    for more, rate in (
        ("", HOST_LINK_BYTES_PER_S),
        (", host_bandwidth: 50 GB/s, host_latency: 3 us", 50e9),
    ):
        path = tmp_path / "gpus.yaml"
        path.write_text(f"nodes:\n  - {{{node}, gpus: {{{gpu}{more}}}}}\n")
        found = topology_called(path)
        (known,) = found.speeds.nodes[0].accelerators
        assert known.host_bytes_per_s == rate
        assert found.accelerator_of(found.accelerators[0]) == known


SIMGRID = """<?xml version='1.0'?>
<platform version="4.1">
  <zone id="z" routing="Full">
    <host id="a" speed="1Gf" core="2"/>
    <host id="b" speed="500Mf"/>
    <link id="l" bandwidth="125MBps" latency="50us"/>
    <route src="a" dst="b"><link_ctn id="l"/></route>
  </zone>
</platform>
"""


def _platform(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "platform.xml"
    path.write_text(text)
    return path


def test_a_platform_of_simgrid(tmp_path: Path) -> None:
    found = topology_called(_platform(tmp_path, SIMGRID))
    platform = found.speeds
    assert found.ranks == 2
    assert platform.node("b").core_flops_per_s == 5e8
    assert platform.hops("b", "a") == (("l", True),)
    assert platform.between(["a", "b"])[1][0, 1] == 1.25e8


def test_a_cluster_of_simgrid(tmp_path: Path) -> None:
    cluster = (
        '<cluster id="c" prefix="n" suffix="" radical="0-2,7" speed="1Gf" bw="1GBps" lat="10us" '
        'bb_bw="2GBps" bb_lat="1us"/>'
    )
    found = read_platform(_platform(tmp_path, f"<platform>{cluster}</platform>"))
    assert found.node_of == ("n0", "n1", "n2", "n7")
    hops = found.speeds.hops("n0", "n7")
    assert hops == (("n0-link", False), ("c-backbone", False), ("n7-link", True))
    assert found.speeds.between(["n0", "n7"])[0][0, 1] == pytest.approx(2.1e-5)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("</zone>", "", "is not XML"),
        (
            "<platform v",
            "<!DOCTYPE x [<!ENTITY y 'z'>]><platform v",
            r"declares entities, .*\n.*:\d:\d+\n",
        ),
        ('src="a"', 'src="c"', "which is no host"),
        ('<link_ctn id="l"/>', '<link_ctn id="m"/>', "has no link 'm'"),
        ("50us", "50", "has no unit"),
        ('<host id="b"', '<host id="a" speed="1Gf"/><host id="b"', "two hosts have the same id"),
    ],
)
def test_a_platform_that_is_none(tmp_path: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(AvialError) as refused:
        read_platform(_platform(tmp_path, SIMGRID.replace(old, new)))
    assert re.search(words, str(refused.value))


def test_the_first_ranks_of_a_machine() -> None:
    whole = preset("8-gpu-node")
    some = whole.first(3)
    assert some.ranks == 3
    assert some.gpus == 3
    assert some.platform is whole.platform
    assert some.cores_of_rank == (21, 21, 21)
    assert whole.first(8) is whole
    for ranks in (0, 9):
        with pytest.raises(OptionError, match=r"ranks? asked for of a machine of 8"):
            whole.first(ranks)


def test_ranks_of_equal_nodes_have_the_same_hardware() -> None:
    kinds, hardware = preset("fat-tree-1024").rank_hardware
    assert set(kinds.tolist()) == {0}
    ((node, cores),) = hardware
    assert (node.cores, cores) == (32, 32)


def test_what_if_links_were_others() -> None:
    laptop = preset("laptop")
    slow = laptop.with_links(bandwidth=0.5, latency=10)
    ((before,), (after,)) = (each.speeds.links for each in (laptop, slow))
    assert after.bandwidth_bytes_per_s == before.bandwidth_bytes_per_s / 2
    assert after.latency_s == pytest.approx(10 * before.latency_s)
    assert slow.speeds.label != laptop.speeds.label
    tree = preset("fat-tree-1024").with_links("infiniband", latency=2)
    assert {link.latency_s for link in tree.speeds.links} == {1e-6}
    with pytest.raises(OptionError, match="no link of kind 'ethernet'"):
        laptop.with_links("ethernet")
    with pytest.raises(OptionError, match="more than 0"):
        laptop.with_links(bandwidth=0)

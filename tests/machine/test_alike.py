"""A machine with some of it changed, and written as a file."""

from __future__ import annotations

import pytest

from avial_lab.core.errors import OptionError
from avial_lab.machine.alike import changed, groups_of, link_kinds, node_kinds
from avial_lab.machine.presets import PRESETS, preset
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import topology_in, topology_text


def values(topology: Topology) -> dict[str, str]:
    return {each.key: each.value for group in groups_of(topology) for each in group.fields}


@pytest.mark.parametrize(
    "machine",
    [*map(preset, PRESETS), Topology.local(3, gpus=1)],
    ids=lambda each: each.speeds.label,
)
def test_what_is_not_changed_is_the_same(machine: Topology) -> None:
    assert changed(machine, values(machine)) is machine


def test_a_link_and_a_core_and_the_number_of_nodes() -> None:
    laptop = preset("laptop")
    four = changed(laptop, {"nodes": "4", "node0.core_flops_per_s": "80 GFLOP/s"})
    assert four.speeds.label == "a laptop, edited"
    assert (four.ranks, len(four.speeds.nodes)) == (16, 4)
    assert {node.core_flops_per_s for node in four.speeds.nodes} == {80e9}
    hops = four.speeds.hops("laptop0", "laptop3") or ()
    assert four.speeds.bandwidth_bytes_per_s(hops) == 25e9 / 8
    slow = changed(four, {"link1.bandwidth_bytes_per_s": "1 Gbit/s", "link1.latency_s": "50 us"})
    assert slow.speeds.bandwidth_bytes_per_s(hops) == 1e9 / 8
    assert slow.speeds.latency_s(hops) == pytest.approx(100e-6)
    assert slow.speeds.label == "a laptop, edited"
    one = changed(slow, {"nodes": "1"})
    assert (one.ranks, len(one.speeds.links)) == (4, 1)


def test_each_level_of_a_fat_tree_is_a_kind_of_link() -> None:
    tree = preset("fat-tree-1024")
    assert [len(kind.names) for kind in link_kinds(tree.speeds)] == [1, 1024, 32]
    assert [len(kind.names) for kind in node_kinds(tree.speeds)] == [1024]
    assert "nodes" not in values(tree)
    slow = changed(tree, {"link2.bandwidth_bytes_per_s": "1 GB/s"})
    hops = slow.speeds.hops("n0", "n1000") or ()
    assert slow.speeds.bandwidth_bytes_per_s(hops) == 1e9
    assert slow.ranks == tree.ranks


def test_emulated_devices_stay_and_so_do_the_ranks() -> None:
    """They are none of the nodes': neither may be changed there."""
    local = Topology.local(3, gpus=1)
    assert not {"nodes", "node0.ranks"} & values(local).keys()
    fast = changed(local, {"node0.core_flops_per_s": "1 TFLOP/s"})
    assert fast.devices == local.devices
    assert fast.speeds.nodes[0].core_flops_per_s == 1e12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nodes": "0"}, "nodes is 0; expected 1 to 100,000"),
        ({"nodes": "two"}, "nodes is a whole number, not 'two'"),
        ({"link0.latency_s": "5"}, "latency: '5' has no unit"),
        ({"link0.bandwidth_bytes_per_s": "5 GB"}, "bandwidth: 'GB' is not a unit for this"),
        ({"link7.latency_s": "5 us"}, "this machine has no 'link7.latency_s'"),
    ],
)
def test_what_is_no_number_is_told_by_its_field(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        changed(preset("laptop"), given)


@pytest.mark.parametrize(
    "machine",
    [
        preset("laptop"), preset("8-gpu-node"), preset("fat-tree-1024"), Topology.local(2),
        changed(preset("laptop"), {"nodes": "3"}),
    ],
    ids=lambda each: each.speeds.label,
)  # fmt: skip
def test_a_file_of_it_is_the_same_machine(machine: Topology) -> None:
    read = topology_in(topology_text(machine), "m.yaml")
    there, back = machine.speeds, read.speeds
    assert [device.name for device in read.devices] == [d.name for d in machine.devices]
    assert [(n.name, n.cores, n.sockets) for n in back.nodes] == [
        (n.name, n.cores, n.sockets) for n in there.nodes
    ]
    first, last = there.nodes[0].name, there.nodes[-1].name
    for platform, other in ((there, back), (back, there)):
        for k, cache in enumerate(platform.nodes[0].caches):
            assert cache == pytest.approx(other.nodes[0].caches[k], rel=1e-5)
    for pair in ((first, first), (first, last)):
        ways = [platform.hops(*pair) or () for platform in (there, back)]
        assert there.latency_s(ways[0]) == pytest.approx(back.latency_s(ways[1]), rel=1e-5)
        assert there.bandwidth_bytes_per_s(ways[0]) == pytest.approx(
            back.bandwidth_bytes_per_s(ways[1]), rel=1e-5
        )
    assert topology_text(read) == topology_text(machine).replace(
        f"name: {there.label}", f"name: {back.label}"
    )


def test_names_are_quoted_where_yaml_would_read_something_else() -> None:
    text = """
name: "yes"
nodes:
  - {name: "a: [b]", cores: 2, core_flops: 1 GFLOP/s, core_bandwidth: 1 GB/s,
     memory_bandwidth: 1 GB/s}
links:
  - {name: "[eth]", bandwidth: 1 GB/s, latency: 1 us, shared: no}
inside: "[eth]"
"""
    machine = topology_in(text, "m.yaml")
    read = topology_in(topology_text(machine), "m.yaml")
    assert read.speeds.nodes == machine.speeds.nodes
    assert read.speeds.links == machine.speeds.links
    assert read.speeds.inside == machine.speeds.inside

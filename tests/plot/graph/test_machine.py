"""The machine as a picture: everything is there, within it, and escaped."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from avial_lab.machine.presets import PRESETS, preset
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import topology_in
from avial_lab.plot import topology_svg
from avial_lab.plot.svg import text_width

ROUTED = """
name: <script>alert(1)</script>
nodes:
  - {name: "a<i>", cores: 200, sockets: 4, ranks: 3, core_flops: 40 GFLOP/s,
     core_bandwidth: 12 GB/s, memory_bandwidth: 100 GB/s, memory: 64 GiB}
  - {name: b, cores: 8, core_flops: 40 GFLOP/s, core_bandwidth: 12 GB/s,
     memory_bandwidth: 100 GB/s, ranks: 2,
     gpus: {count: 12, arch: sm_90, flops: 30 TFLOP/s, bandwidth: 3 TB/s, memory: 80 GiB}}
links:
  - {name: "&eth", kind: ethernet, bandwidth: 25 Gbit/s, latency: 10 us}
routes:
  - {from: "a<i>", to: b, links: ["&eth"]}
"""

MACHINES = [*map(preset, PRESETS), Topology.local(2, gpus=1), topology_in(ROUTED, "r.yaml")]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda each: each.speeds.label[:12])
def test_all_that_is_said_lies_on_the_card(machine: Topology) -> None:
    picture = topology_svg(machine)
    assert len(picture) < 100_000
    root = ElementTree.fromstring(picture)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    assert width <= 880

    def walk(part: ElementTree.Element, x: float, y: float) -> None:
        moved = re.match(r"translate\((\S+) (\S+)\)", part.get("transform", ""))
        if moved:
            x, y = x + float(moved[1]), y + float(moved[2])
        if part.tag.endswith("text") and part.get("text-anchor", "start") == "start":
            size = float(part.get("font-size", "12"))
            assert x + float(part.get("x", "0")) + text_width(part.text or "", size) <= width
            assert 0 <= y + float(part.get("y", "0")) <= height
        for below in part:
            walk(below, x, y)

    walk(root, 0, 0)


def test_its_parts_are_named_with_their_numbers() -> None:
    words = topology_svg(preset("8-gpu-node"))
    for said in (
        "64 cores in 2 sockets", "memory 1 TiB, 400 GB/s", "near to 512 GiB, 200 GB/s",
        "8 GPUs (sm_90), 33.5 TFLOP/s",
        "each with 80 GiB, 3.35 TB/s", "its link to the node", "shared memory: 50 GB/s, 1 µs",
    ):  # fmt: skip
        assert said in words
    words = topology_svg(preset("fat-tree-1024"))
    for said in ("spine", "leaf31", "12.5 GB/s, 500 ns", "Drawn: 3 of 1,024 nodes"):
        assert said in words


def test_names_are_escaped() -> None:
    words = topology_svg(topology_in(ROUTED, "r.yaml"))
    assert "<script>" not in words
    assert "&lt;script&gt;alert(1)" in words
    assert "a&lt;i&gt;" in words
    assert "&amp;eth: 3.125 GB/s, 10 µs" in words

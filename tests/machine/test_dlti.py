"""Machines as attributes of a module, held against MLIR's own reading and against files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mlir import ir

from avial_lab.cli.main import main
from avial_lab.core.errors import AvialError
from avial_lab.machine.dlti import module_text, topology_in_module
from avial_lab.machine.presets import preset
from avial_lab.machine.topologies import topology_called
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import topology_in, topology_text

NODE = '"n" = #dlti.target_device_spec<"cores" = 4 : i64, "core_flops" = "40 GFLOP/s", '
NODE += '"core_bandwidth" = "12 GB/s", "memory_bandwidth" = "40 GB/s">'
MODULE = (
    f"module attributes {{dlti.target_system_spec = #dlti.target_system_spec<{NODE}>}} {{\n}}\n"
)
NETWORK = '"avial.network" = #dlti.target_device_spec<"name" = "lab", "links" = '
NETWORK += '[#dlti.map<"name" = "l", "bandwidth" = "1 GB/s", "latency" = "5 us">], "inside" = "l">'


def _same(one: Topology, other: Topology) -> bool:
    """But for what the sources are called."""
    platforms = [replace(each.speeds, label="", source="") for each in (one, other)]
    return platforms[0] == platforms[1] and one.devices == other.devices


def _by_mlir(text: str) -> str:
    """Parsed and printed by MLIR."""
    with ir.Context():
        return str(ir.Module.parse(text))


FILE = """
name: a "tree", große
nodes: [{name: n, count: 2, cores: 4, core_flops: 40 GFLOP/s, core_bandwidth: 12 GB/s,
  memory_bandwidth: 40 GB/s, caches: [{size: 1 MiB, bandwidth: 80 GB/s}]}]
links: [{name: l, bandwidth: 1 GB/s, latency: 5 us, duplex: no}]
uplinks: [{node: n0, group: g, link: l}, {node: n1, group: g, link: l}]
crossings: [{group: g, link: l}]
collectives: [{call: barrier, ranks: 2, nodes: 2, latency: 9 us}]
"""


@pytest.mark.parametrize("name", ["preset:laptop", "preset:8-gpu-node", FILE])
def test_a_module_says_what_a_file_says(name: str) -> None:
    machine = topology_called(name) if name != FILE else topology_in(FILE, "a file")
    by_file = topology_in(topology_text(machine), "a file")
    for text in (module_text(machine), _by_mlir(module_text(machine))):
        assert _same(topology_in_module(text, "a module"), by_file)


def test_an_alias_and_a_comment_are_read() -> None:
    text = f"// a machine\n#lab = #dlti.target_system_spec<{NODE}, {NETWORK}>\n"
    text += "module attributes {dlti.target_system_spec = #lab} {\n}\n"
    for each in (text, _by_mlir(text)):
        machine = topology_in_module(each, "m.mlir")
        assert machine.speeds.label == "lab"
        assert machine.speeds.inside == {"n": "l"}
        assert machine.speeds.nodes[0].core_flops_per_s == 40e9


@pytest.mark.parametrize(
    ("old", "new", "words", "column"),
    [
        ("dlti.target_system_spec =", "other =", "has no attribute dlti.target_system_spec", 0),
        ("cores", "cors", "a node has no 'cors'", 0),
        ("12 GB/s", "12", "has no unit", 0),
        (">}", "}", "expected , or >, not }", 0),
        ("4 : i64", "0 : i64", "cores is 0; expected 1 to", 0),
        (f"<{NODE}>", "<>", "there are no nodes", 0),
        (f"#dlti.target_system_spec<{NODE}>", "#gone", "#gone is not known here", 46),
        (f"#dlti.target_system_spec<{NODE}>", "[" * 99, "nest too deep", 0),
        (f"#dlti.target_system_spec<{NODE}>}} {{\n}}", "", "ends too early", 0),
    ],
)
def test_a_module_that_says_no_machine(old: str, new: str, words: str, column: int) -> None:
    with pytest.raises(AvialError) as refused:
        topology_in_module(MODULE.replace(old, new), "m.mlir")
    assert words in str(refused.value)
    if "no attribute" not in words:
        assert refused.value.span is not None
        assert refused.value.span.cell == "m.mlir"
        assert not column or refused.value.span.column == column


def test_the_command_writes_and_reads_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.mlir"
    assert main(["topology", "preset:laptop", "-o", str(path)]) == 0
    assert _same(topology_called(path), topology_in(topology_text(preset("laptop")), ""))
    assert main(["topology", str(path)]) == 0
    assert "laptop" in capsys.readouterr().out

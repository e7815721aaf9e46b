"""Memory in several domains: found, written, and shared by those that are near."""

from __future__ import annotations

from pathlib import Path

import pytest

from avial_lab.machine.alike import changed
from avial_lab.machine.cpu import domains_of
from avial_lab.machine.demand import Demand
from avial_lab.machine.dlti import module_text, topology_in_module
from avial_lab.machine.presets import preset
from avial_lab.machine.topology import Target, Topology
from avial_lab.machine.topology_file import TopologyError, topology_in, topology_text
from avial_lab.planning.costs import Costs
from avial_lab.planning.placement import schedule_by_hand
from avial_lab.planning.simulator.ranks import simulated
from avial_lab.planning.task_graph import Task, build_dag

NODE = """
nodes:
  - {{name: n, cores: 8, core_flops: 1 GFLOP/s, core_bandwidth: 10 GB/s, ranks: {ranks},
     memory_bandwidth: 20 GB/s, memory: 8 GiB, domains: {domains}}}
links: []
"""
UNEVEN = (
    "[{cores: 0-1, memory_bandwidth: 4 GB/s}, {cores: '2-5,7,6', memory_bandwidth: 16 GB/s,"
    " memory: 6 GiB}]"
)


def _machine(domains: str, ranks: int = 1) -> Topology:
    return topology_in(NODE.format(domains=domains, ranks=ranks), "m.yaml")


@pytest.mark.parametrize(
    ("domains", "ranks", "of_ranks"),
    [
        ("2", 1, [0]), ("2", 2, [0, 1]), ("2", 4, [0, 0, 1, 1]), ("2", 8, [0] * 4 + [1] * 4),
        ("3", 8, [0, 0, 1, 1, 1, 2, 2, 2]), (UNEVEN, 4, [0, 1, 1, 1]),
        ("2", 12, [0] * 4 + [1] * 4 + [0] * 4),  # more ranks than cores begin anew
    ],
)  # fmt: skip
def test_a_rank_is_near_to_the_memory_of_its_first_core(
    domains: str, ranks: int, of_ranks: list[int]
) -> None:
    machine = _machine(domains, ranks)
    assert list(machine.domain_of) == of_ranks
    near = machine.speeds.nodes[0].domains[of_ranks[-1]].memory_bytes_per_s
    assert machine.seen_by(ranks - 1).memory_bytes_per_s == near


@pytest.mark.parametrize("machine", [_machine("2", 4), _machine(UNEVEN), preset("8-gpu-node")])
def test_files_and_modules_say_the_same_domains(machine: Topology) -> None:
    text = topology_text(machine)
    back = topology_in(text, "m.yaml")
    assert back.speeds.nodes[0].domains == machine.speeds.nodes[0].domains
    module = topology_in_module(module_text(back), "m.yaml")
    assert topology_text(module) == topology_text(back)


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        ("9", "domains is 9; expected 1 to 8"),
        ("0", "domains is 0"),
        ("[{cores: 0-3, memory_bandwidth: 4 GB/s}]", "have the cores 0-3, and the node has 0-7"),
        ("[{cores: 0-7, memory_bandwidth: 4}]", "memory_bandwidth: "),
        ("[{cores: 0-7}]", "a domain lacks 'memory_bandwidth'"),
        ("[{cores: 3-, memory_bandwidth: 4 GB/s}]", "cores is a list of their numbers, not '3-'"),
        ("[{core: 0-7, memory_bandwidth: 4 GB/s}]", "a domain has no 'core'"),
        ("{}", "domains is a list"),
    ],
)
def test_domains_that_are_none_are_told_with_their_place(domains: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as caught:
        _machine(domains)
    assert caught.value.span is not None
    assert caught.value.span.line in (3, 4)


def test_what_an_editor_changes_keeps_its_domains() -> None:
    edited = changed(preset("8-gpu-node"), {"node0.memory_bytes_per_s": "100 GB/s"})
    assert [d.memory_bytes_per_s for d in edited.speeds.nodes[0].domains] == [50e9, 50e9]
    edited = changed(preset("8-gpu-node"), {"node0.sockets": "4"})
    assert len(edited.speeds.nodes[0].domains) == 4


def test_domains_are_found_where_linux_tells_them(tmp_path: Path) -> None:
    """Numbers in turn, a domain without cores, hardware threads of one core."""
    for k, (cpus, kib) in enumerate((("0,2,4,6", 2048), ("1,3,5,7", 1024), ("", 512))):
        folder = tmp_path / f"node{k}"
        folder.mkdir()
        (folder / "cpulist").write_text(f"{cpus}\n", encoding="utf-8")
        told = f"Node {k} MemTotal:       {kib} kB\nNode {k} MemFree: 1 kB\n"
        (folder / "meminfo").write_text(told, encoding="utf-8")
    (tmp_path / "nodelist").write_text("0-2", encoding="utf-8")
    cores = ((0, 4), (1, 5), (2, 6), (3, 7))
    assert domains_of(cores, tmp_path) == (((0, 2), 2 << 20), ((1, 3), 1 << 20))
    assert domains_of(cores, tmp_path / "none") == ()
    divided = preset("laptop").speeds.nodes[0].divided(domains_of(cores, tmp_path))
    assert [domain.memory_bytes_per_s for domain in divided.domains] == [25e9, 25e9]


@pytest.mark.parametrize(
    ("domains", "ranks", "seconds"),
    [
        ("2", (0, 4), 2.0),  # each in its own domain, whose 10 GB/s a core takes
        ("2", (0, 1), 4.0),  # both through one
        ("1", (0, 1), 2.0),  # one memory for both, of 20 GB/s
    ],
)
def test_memory_is_shared_by_those_that_are_near(
    domains: str, ranks: tuple[int, int], seconds: float
) -> None:
    machine = _machine(domains, ranks=8)
    tasks = [Task(f"t{k}", Target("any"), (), ()) for k in range(2)]
    devices = {f"t{k}": f"cpu{rank}" for k, rank in enumerate(ranks)}
    schedule = schedule_by_hand(build_dag(tasks, (), ()), machine, devices)
    costs = Costs({task.name: Demand(0, 20 * 10**9) for task in tasks})
    assert simulated(schedule, costs).makespan_s == pytest.approx(seconds)

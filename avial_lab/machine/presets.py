"""Machines that one can plan for without having them.

Name -> Topology. The numbers are round ones of hardware of about 2024, from vendors' data sheets; a
file (`topology_file.py`) is the way to say one's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches

from avial_lab.core.errors import OptionError
from avial_lab.machine.devices import CPU
from avial_lab.machine.devices.cuda import CUDA
from avial_lab.machine.platform import Accelerator, Link, Node, Platform
from avial_lab.machine.topology import Device, Topology

GIB = 1 << 30
SOURCE = "a preset"

PRESET = "preset:"
"""How the name of a preset begins where a file would do as well."""


def topology_on(platform: Platform, *, arch: str = "x86_64") -> Topology:
    """As many ranks on each node as it says, a CPU device for each of them; a node's GPUs are
    driven by its ranks in turn.
    """
    devices: list[Device] = []
    gpus: list[Device] = []
    rank = 0
    for node in platform.nodes:
        first = rank
        for _ in range(node.ranks):
            name = CPU.device_name(rank)
            devices.append(Device(name, CPU, rank, arch, node.name))
            rank += 1
        for k, gpu in enumerate(node.accelerators):
            name = CUDA.device_name(len(gpus))
            gpus.append(Device(name, CUDA, first + k % node.ranks, gpu.arch, node.name))
    return Topology(rank, (*devices, *gpus), platform)


def preset(name: str) -> Topology:
    """OptionError for a name that is none, with the near one."""
    if name in PRESETS:
        return PRESETS[name]()
    near = get_close_matches(name, PRESETS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(PRESETS)}"
    raise OptionError(f"there is no preset '{name}'", hint=hint)


def _laptop() -> Topology:
    """8 cores, a rank for each of four pairs."""
    node = Node(
        "laptop", 8, 40e9, 15e9, 50e9, 16 * GIB, ((1 << 20, 80e9), (2 << 20, 40e9)), ranks=4
    )
    memory = Link("shared memory", 5e9, 1e-6, "shared memory")
    inside = {node.name: memory.name}
    return topology_on(Platform((node,), (memory,), "a laptop", SOURCE, inside))


GPUS = {
    "H100": Accelerator("", "sm_90", 33.5e12, 3.35e12, 80 * GIB, 55e9),
    "H200": Accelerator("", "sm_90", 33.5e12, 4.8e12, 141 * GIB, 55e9),
}
"""Cards with SXM: 33 TFLOP/s f64, PCIe 5.0."""


def gpu_node(card: str, count: int = 8) -> Topology:
    """So many cards of `GPUS`, a rank of 8 cores for each."""
    gpus = tuple(replace(GPUS[card], name=CUDA.device_name(k)) for k in range(count))
    node = Node(
        "node", 8 * count, 50e9, 15e9, 400e9, 1024 * GIB, ((1 << 20, 80e9), (4 << 20, 40e9)),
        sockets=2, accelerators=gpus, ranks=count,
    ).in_domains(2)  # fmt: skip
    memory = Link("shared memory", 50e9, 1e-6, "shared memory")
    return topology_on(
        Platform((node,), (memory,), f"a node of {count} GPUs", SOURCE, {node.name: memory.name})
    )


def _fat_tree() -> Topology:
    """1,024 nodes of 32 cores, 32 to a leaf switch, 100 Gbit/s."""
    return topology_on(fat_tree(32, 32))


def fat_tree(leaves: int, nodes_per_leaf: int, *, label: str = "") -> Platform:
    """Two levels, no bottleneck: each leaf's uplinks, taken together, carry all that its nodes send
    (Leiserson 1985).
    """
    nodes: list[Node] = []
    links = [Link("shared memory", 10e9, 1e-6, "shared memory", shared=False)]
    uplinks: dict[str, tuple[tuple[str, str], ...]] = {}
    for leaf in range(leaves):
        up = Link(f"leaf{leaf}", nodes_per_leaf * 12.5e9, 5e-7, "infiniband")
        links.append(up)
        for _ in range(nodes_per_leaf):
            name = f"n{len(nodes)}"
            caches = ((1 << 20, 80e9), (4 << 20, 40e9))
            node = Node(name, 32, 50e9, 12e9, 200e9, 256 * GIB, caches, sockets=2)
            nodes.append(node.in_domains(2))
            links.append(Link(f"{name}-leaf{leaf}", 12.5e9, 5e-7, "infiniband"))
            uplinks[name] = ((f"leaf{leaf}", links[-1].name), ("spine", up.name))
    inside = {node.name: "shared memory" for node in nodes}
    label = label or f"a fat tree of {len(nodes):,} nodes"
    return Platform(tuple(nodes), tuple(links), label, SOURCE, inside, uplinks)


PRESETS: dict[str, Callable[[], Topology]] = {
    "laptop": _laptop,
    "8-gpu-node": lambda: gpu_node("H100"),
    "fat-tree-1024": _fat_tree,
}

"""The machine: devices, which rank drives each, and what a target may be placed on.

Ranks, GPUs -> Topology. A device is the unit of placement (design.md, decision 9): a CPU rank with
its cores, or one GPU, real or emulated.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from avial_lab.core.errors import OptionError
from avial_lab.core.table import PRINTED_ROWS, Table, left_out
from avial_lab.core.words import brief, count, names_range
from avial_lab.machine.devices import (
    CPU,
    CUDA,
    GPU_FAMILY,
    KINDS,
    DeviceKind,
    accepts,
    kind_for,
    runnable_gpu,
)
from avial_lab.machine.devices.cpu import canonical_cpu
from avial_lab.machine.platform import Accelerator, Node, Platform, assumed_platform


@dataclass(frozen=True)
class Target:
    """A constraint on the device, from `avial.target {arch = …, node = …, rank = …}`; `name` is its
    SSA name without the %. device: the very one that a plan pins a task to.
    """

    name: str
    arch: str = "cpu"
    node: str | None = None
    device: str | None = None
    rank: int | None = None

    @property
    def kind(self) -> DeviceKind:
        """What it asks for; where it is placed may be an emulated one of the same family."""
        return kind_for(self.arch)

    def __str__(self) -> str:
        rank = None if self.rank is None else f"rank {self.rank}"
        where = " and ".join(filter(None, (self.node, rank, self.device)))
        return f"{self.arch} on {where}" if where else self.arch

    def __repr__(self) -> str:
        return brief(self, f"%{self.name}: {self}")


@dataclass(frozen=True)
class Device:
    """One device of the machine, driven by MPI rank `rank`.

    arch is the CPU's (`x86_64`, `aarch64`) or the GPU's compute capability (`sm_90`); an emulated
    GPU has arch `gpu` and satisfies every GPU target.
    """

    name: str
    kind: DeviceKind
    rank: int
    arch: str
    node: str = "localhost"

    @property
    def emulated(self) -> bool:
        return self.kind.emulated

    def satisfies(self, target: Target) -> bool:
        """Whether a task with that target may run here."""
        here = target.node in (None, self.node) and target.rank in (None, self.rank)
        here = here and target.device in (None, self.name)
        return here and accepts(self.kind, self.arch, target.arch)

    def __str__(self) -> str:
        emulated = ", emulated" if self.emulated else ""
        return f"{self.name} ({self.arch}{emulated}, rank {self.rank} on {self.node})"

    def __repr__(self) -> str:
        return brief(self, str(self))


@dataclass(frozen=True)
class Topology:
    """All devices of one run; `ranks` MPI ranks, numbered from 0. `platform` says how fast they and
    the links between them are; None where nobody has said. `cpu` is what machine code for all of
    them is made for (a level: machine/cpu.py), where their CPUs lack something that this one has.
    """

    ranks: int
    devices: tuple[Device, ...]
    platform: Platform | None = None
    cpu: str = ""

    @staticmethod
    def local(
        ranks: int, *, gpus: int = 0, node: str = "localhost", arch: str | None = None
    ) -> Topology:
        """`ranks` CPU ranks on this machine, and `gpus` emulated GPUs: the last ranks drive one
        each; where there are more GPUs than ranks, every rank drives several.

        >>> [str(device) for device in Topology.local(2, gpus=1, arch="x86_64").devices]
        ... # doctest: +NORMALIZE_WHITESPACE
        ['cpu0 (x86_64, rank 0 on localhost)', 'cpu1 (x86_64, rank 1 on localhost)',
         'gpu0 (gpu, emulated, rank 1 on localhost)']
        """
        arch = canonical_cpu(arch or platform.machine())
        cpus = tuple(Device(CPU.device_name(r), CPU, r, arch, node) for r in range(ranks))
        return Topology(ranks, cpus + gpus_driven([(r, node) for r in drivers(ranks, gpus)]))

    @cached_property
    def speeds(self) -> Platform:
        """The platform; where there is none, what is assumed of nodes of these names."""
        if self.platform is not None:
            return self.platform
        return assumed_platform(tuple(dict.fromkeys(device.node for device in self.devices)))

    @cached_property
    def node_of(self) -> tuple[str, ...]:
        """The node of each rank."""
        there = {device.rank: device.node for device in reversed(self.devices)}
        return tuple(there[rank] for rank in range(self.ranks))

    @cached_property
    def ranks_on(self) -> Counter[str]:
        """How many ranks each node has."""
        return Counter(self.node_of)

    @cached_property
    def cores_of_rank(self) -> tuple[int, ...]:
        """How many cores each rank has: those of its node, divided by the ranks there."""
        ranks_on = self.ranks_on
        return tuple(max(1, self.speeds.node(n).cores // ranks_on[n]) for n in self.node_of)

    @cached_property
    def share_of_core(self) -> np.ndarray:
        """The part of a core that each rank gets, (ranks,): who waits for a message keeps its part,
        as it looks for it all the time.
        """
        shares = {n: self.speeds.node(n).cores / ranks for n, ranks in self.ranks_on.items()}
        return np.array([min(1.0, shares[name]) for name in self.node_of])

    @property
    def never_waiting(self) -> Topology | None:
        """As it would be if no rank waited for a core that another one has; None where none does:
        how long they wait hangs on the system's scheduler, which a mean alone is known of.
        """
        if self.share_of_core.min() >= 1:
            return None
        nodes = tuple(replace(node, crowded_s=()) for node in self.speeds.nodes)
        return replace(self, platform=replace(self.speeds, nodes=nodes))

    @cached_property
    def domain_of(self) -> tuple[int, ...]:
        """The memory domain of each rank on its node: that of its first core. (A node's ranks
        divide its cores in their order, as a run binds them.)
        """
        found: list[int] = []
        seen: Counter[str] = Counter()
        for name, cores in zip(self.node_of, self.cores_of_rank, strict=True):
            node = self.speeds.node(name)
            found.append(node.domain_of(seen[name] * cores % node.cores))
            seen[name] += 1
        return tuple(found)

    def seen_by(self, rank: int) -> Node:
        """The node of that rank, with the memory that is near to it."""
        key = self.node_of[rank], self.domain_of[rank]
        if key not in self._near:
            self._near[key] = self.speeds.node(key[0]).near(key[1])
        return self._near[key]

    @cached_property
    def _near(self) -> dict[tuple[str, int], Node]:
        return {}

    def with_links(
        self, kind: str = "", *, bandwidth: float = 1.0, latency: float = 1.0
    ) -> Topology:
        """What if its links (of that kind, `ethernet` say; else all) were so many times as fast,
        and took so many times as long to begin?

        Raises OptionError for a kind that it has not, and for factors that are not positive.
        """
        platform = self.speeds
        kinds = list(dict.fromkeys(link.kind for link in platform.links))
        if kind and kind not in kinds:
            raise OptionError(f"there is no link of kind '{kind}'", hint=f"there are: {kinds}")
        if not (bandwidth > 0 and latency >= 0):
            raise OptionError("bandwidth takes a factor of more than 0, latency one of 0 or more")
        links = tuple(
            replace(
                link,
                bandwidth_bytes_per_s=link.bandwidth_bytes_per_s * bandwidth,
                latency_s=link.latency_s * latency,
            )
            if kind in ("", link.kind)
            else link
            for link in platform.links
        )
        inside = {platform.link(name).kind for name in platform.inside.values()}
        outside = {
            link.kind for link in platform.links if link.name not in platform.inside.values()
        }
        collectives = tuple(
            each.changed(bandwidth, latency)
            if kind in ("", *(inside if each.nodes == 1 else outside))
            else each
            for each in platform.collectives
        )
        label = f"{platform.label} with other links"
        changed = replace(platform, links=links, label=label, collectives=collectives)
        return replace(self, platform=changed)

    def with_nodes(self, *, speed: float = 1.0, memory: float = 1.0) -> Topology:
        """What if its cores and GPUs computed so many times as fast, and their memories and caches
        were so many times as fast?

        Raises OptionError for factors that are not positive.
        """
        if not (speed > 0 and memory > 0):
            raise OptionError("speed and memory take factors of more than 0")
        nodes = tuple(node.changed(speed, memory) for node in self.speeds.nodes)
        label = f"{self.speeds.label} with other nodes"
        return replace(self, platform=replace(self.speeds, nodes=nodes, label=label))

    @cached_property
    def rank_hardware(self) -> tuple[np.ndarray, tuple[tuple[Node, int], ...]]:
        """For each rank the number of its hardware, and those: a node as it sees it, and its cores
        there.
        """
        kinds: dict[tuple[Node, int], int] = {}
        nodes: dict[tuple[Node, int], tuple[Node, int]] = {}
        of_rank: list[int] = []
        for rank, cores in enumerate(self.cores_of_rank):
            node = self.seen_by(rank)
            key = node.hardware, cores
            nodes.setdefault(key, (node, cores))
            of_rank.append(kinds.setdefault(key, len(kinds)))
        return np.array(of_rank), tuple(nodes.values())

    def first(self, ranks: int) -> Topology:
        """Its first ranks with what they drive; of all of them, itself.

        Raises OptionError where it has fewer.
        """
        if not 1 <= ranks <= self.ranks:
            raise OptionError(
                f"{count(ranks, 'rank')} asked for of a machine of {self.ranks:,}",
                hint="a topology says how many ranks each node has (`ranks:`)",
            )
        if ranks == self.ranks:
            return self
        devices = tuple(device for device in self.devices if device.rank < ranks)
        return replace(self, ranks=ranks, devices=devices)

    @property
    def gpus(self) -> int:
        """How many of the devices are GPUs, real or emulated."""
        return sum(device.kind.family == GPU_FAMILY for device in self.devices)

    @property
    def accelerators(self) -> tuple[Device, ...]:
        """The devices with memory of their own, which is a place: the k-th is place `ranks` + k."""
        return tuple(device for device in self.devices if device.kind.apart)

    def accelerator_of(self, device: Device) -> Accelerator | None:
        """What is known of a GPU that is one, not an emulated one."""
        if device.kind.family != GPU_FAMILY or device.emulated:
            return None
        there = self.speeds.node(device.node).accelerators
        return next((each for each in there if each.name == device.name), next(iter(there), None))

    def place_of(self, name: str) -> int:
        """The number of the memory that the device of that name works in: of its rank, or its
        own.

        >>> topology = Topology.local(2, gpus=1)
        >>> topology.place_of("cpu1"), topology.place_of("gpu0")
        (1, 2)
        """
        device = self.device(name)
        return self._own_places.get(name, device.rank)

    @property
    def drivers(self) -> tuple[int, ...]:
        """Which rank drives each of the `accelerators`."""
        return tuple(device.rank for device in self.accelerators)

    @cached_property
    def _own_places(self) -> dict[str, int]:
        return {each.name: self.ranks + k for k, each in enumerate(self.accelerators)}

    def satisfying(self, target: Target) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.satisfies(target))

    def device(self, name: str) -> Device:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Device]:
        return {device.name: device for device in self.devices}

    @property
    def kinds(self) -> str:
        """`2 CPUs, 1 GPU (emulated)`."""
        found = Counter(device.kind for device in self.devices)
        return ", ".join(
            count(found[kind], kind.noun) + " (emulated)" * kind.emulated
            for kind in KINDS
            if found[kind]
        )

    @property
    def summary(self) -> str:
        """`2 CPUs, 1 GPU (emulated) on localhost (x86_64)`: what times and places are of."""
        nodes = list(dict.fromkeys(device.node for device in self.devices))
        where = names_range(nodes) if 0 < len(nodes) < 3 else f"{len(nodes):,} nodes"
        arches = dict.fromkeys(device.arch for device in self.devices if not device.emulated)
        return f"{self.kinds} on {where} ({', '.join(list(arches)[:4])})"

    @property
    def table(self) -> Table:
        """The first devices, one a row."""
        rows = tuple(
            (each.name, each.arch + ", emulated" * each.emulated, str(each.rank), each.node)
            for each in self.devices[:PRINTED_ROWS]
        )
        head = ("device", "architecture", "rank", "node")
        note = left_out(len(self.devices), "device", PRINTED_ROWS)
        title = f"{count(self.ranks, 'rank')}: {self.summary}"
        return Table(title, head, rows, frozenset({"rank"}), note)

    def __str__(self) -> str:
        return self.table.to_text()

    def __repr__(self) -> str:
        return brief(self, f"of {count(self.ranks, 'rank')}: {self.summary}")


def drivers(ranks: int, gpus: int) -> tuple[int, ...]:
    """Which rank drives each of so many GPUs: the last ones, or every rank as many as the others.

    >>> drivers(3, 2), drivers(2, 4)
    ((1, 2), (0, 0, 1, 1))
    """
    if gpus <= ranks:
        return tuple(range(ranks - gpus, ranks))
    return tuple(k * ranks // gpus for k in range(gpus))


def with_real_gpus(topology: Topology, chips: Sequence[str]) -> Topology:
    """The GPUs of this machine among its devices are no longer emulated ones but those of these
    architectures; several are the same GPU where there are not as many.

    >>> with_real_gpus(Topology.local(1, gpus=2), ["sm_90"]).kinds
    '1 CPU, 2 GPUs'
    """
    if not chips:
        return topology
    here = ("localhost", platform.node())
    numbers = iter(range(len(topology.devices)))
    devices = tuple(
        replace(each, kind=CUDA, arch=chips[next(numbers) % len(chips)])
        if each.kind is runnable_gpu() and each.node in here
        else each
        for each in topology.devices
    )
    return replace(topology, devices=devices)


def gpus_driven(ranks: Sequence[tuple[int, str]]) -> tuple[Device, ...]:
    """An emulated GPU for each of these ranks, given with their nodes."""
    kind = runnable_gpu()
    return tuple(
        Device(kind.device_name(k), kind, rank, kind.family, node)
        for k, (rank, node) in enumerate(ranks)
    )

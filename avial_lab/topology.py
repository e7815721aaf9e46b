"""The machine: devices, which rank drives each, and what a target may be placed on.

Ranks, GPUs -> Topology. A device is the unit of placement (design.md, decision 9): a CPU rank with
its cores, or one GPU, real or emulated.
"""

from __future__ import annotations

import enum
import platform
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from avial_lab.table import PRINTED_ROWS, Table, left_out
from avial_lab.words import brief, count, names_range


class DeviceKind(enum.Enum):
    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True)
class Target:
    """A constraint on the device, from `avial.target {arch = …, node = …}`; `name` is its SSA name
    without the %.
    """

    name: str
    arch: str = "cpu"
    node: str | None = None

    @property
    def kind(self) -> DeviceKind:
        return DeviceKind.GPU if is_gpu_arch(self.arch) else DeviceKind.CPU

    def __str__(self) -> str:
        return self.arch if self.node is None else f"{self.arch} on {self.node}"

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
    emulated: bool = False

    def satisfies(self, target: Target) -> bool:
        """Whether a task with that target may run here."""
        if target.node is not None and target.node != self.node:
            return False
        if target.kind is not self.kind:
            return False
        if target.arch in ("cpu", "gpu") or self.emulated:
            return True
        if self.kind is DeviceKind.GPU:
            return _capability(self.arch) >= _capability(target.arch)
        return canonical_cpu(target.arch) == canonical_cpu(self.arch)

    def __str__(self) -> str:
        emulated = ", emulated" if self.emulated else ""
        return f"{self.name} ({self.arch}{emulated}, rank {self.rank} on {self.node})"

    def __repr__(self) -> str:
        return brief(self, str(self))


@dataclass(frozen=True)
class Topology:
    """All devices of one run; `ranks` MPI ranks, numbered from 0."""

    ranks: int
    devices: tuple[Device, ...]

    @staticmethod
    def local(
        ranks: int, *, gpus: int = 0, node: str = "localhost", arch: str | None = None
    ) -> Topology:
        """`ranks` CPU ranks on this machine; the last `gpus` of them each drive an emulated GPU as
        well.

        >>> [str(device) for device in Topology.local(2, gpus=1, arch="x86_64").devices]
        ... # doctest: +NORMALIZE_WHITESPACE
        ['cpu0 (x86_64, rank 0 on localhost)', 'cpu1 (x86_64, rank 1 on localhost)',
         'gpu0 (gpu, emulated, rank 1 on localhost)']
        """
        arch = canonical_cpu(arch or platform.machine())
        cpus = tuple(Device(f"cpu{r}", DeviceKind.CPU, r, arch, node) for r in range(ranks))
        emulated = tuple(
            Device(f"gpu{k}", DeviceKind.GPU, ranks - gpus + k, "gpu", node, emulated=True)
            for k in range(gpus)
        )
        return Topology(ranks, cpus + emulated)

    @property
    def gpus(self) -> int:
        """How many of the devices are GPUs, real or emulated."""
        return sum(device.kind is DeviceKind.GPU for device in self.devices)

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
        found = Counter((device.kind, device.emulated) for device in self.devices)
        order = ((DeviceKind.CPU, False), (DeviceKind.GPU, False), (DeviceKind.GPU, True))
        return ", ".join(
            count(found[kind, emulated], kind.name) + (" (emulated)" if emulated else "")
            for kind, emulated in order
            if found[kind, emulated]
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


def is_gpu_arch(arch: str) -> bool:
    """Whether `arch` names GPUs: `gpu`, `cuda`, `nvptx…`, or a compute capability (`sm_90`,
    `sm_90a`).
    """
    return arch in ("gpu", "cuda") or arch.startswith(("sm_", "nvptx"))


def canonical_cpu(arch: str) -> str:
    """One name for one instruction set: `amd64` is `x86_64`, `arm64` is `aarch64`."""
    arch = arch.lower()
    return {
        "amd64": "x86_64",
        "x86-64": "x86_64",
        "arm64": "aarch64",
        "host": platform.machine().lower(),
    }.get(arch, arch)


def _capability(arch: str) -> int:
    """90 for `sm_90` and `sm_90a`; 0 where the architecture names no compute capability."""
    digits = re.match(r"sm_(\d+)", arch)
    return int(digits.group(1)) if digits else 0

"""The machine: devices, which rank drives each, and what a target may be placed on.

Ranks, GPUs -> Topology. A device is the unit of placement (design.md, decision 9): a CPU rank with
its cores, or one GPU, real or emulated.
"""

from __future__ import annotations

import enum
import platform
import re
from dataclasses import dataclass
from functools import cached_property


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

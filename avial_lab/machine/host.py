"""The machine that a race is run on: its processor, caches and cores, and who runs on which.

Nothing -> Machine; a number of threads -> the cores that everybody's threads are pinned to.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from avial_lab.core.toolchain import run
from avial_lab.machine.cpu import SYSTEM, allowed, cores_of, data_caches, in_turn


@dataclass(frozen=True)
class CacheLevel:
    """A data cache: how much each has, and how many logical cores share one."""

    level: int
    nbytes: int
    shared_by: int

    def __str__(self) -> str:
        shared = f" for {self.shared_by} cores" if self.shared_by > 1 else ""
        return f"L{self.level} {_binary(self.nbytes)}{shared}"


@dataclass(frozen=True)
class Machine:
    """`cores` are those that this process may use, `threads` counts what runs beside one another on
    them. No name by which others could find it.
    """

    processor: str
    architecture: str
    cores: int
    threads: int
    caches: tuple[CacheLevel, ...]

    def facts(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' if self.cores > 1 else ''}"
        if self.threads > self.cores:
            cores += f" ({self.threads} threads)"
        return ", ".join([self.processor, self.architecture, cores, *map(str, self.caches)])


def this_machine(*, system: Path = SYSTEM) -> Machine:
    """What is known of the machine this process runs on."""
    caches = data_caches(system / f"cpu{allowed()[0]}/cache")
    return Machine(
        processor=_processor(),
        architecture=platform.machine(),
        cores=len(cores_of(allowed(), system)),
        threads=len(allowed()),
        caches=tuple(CacheLevel(level, *found) for level, found in sorted(caches.items())),
    )


def busy() -> tuple[str, ...]:
    """Why not to trust times that are taken now; nothing where nobody else is at work."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load <= cores / 2:
        return ()
    return (
        f"other processes are running (load {load:.1f} on {cores} cores): "
        "these times are unreliable",
    )


def pins(threads: int, *, system: Path = SYSTEM) -> tuple[int, ...]:
    """The hardware threads for so many threads, a core of its own for each as long as there are
    any; none where they cannot be chosen (macOS).
    """
    if not hasattr(os, "sched_setaffinity"):
        return ()
    return in_turn(cores_of(allowed(), system))[:threads]


def pinned_environment(cores: Sequence[int]) -> dict[str, str]:
    """For OpenMP: thread k stays on `cores[k]`."""
    if not cores:
        return {}
    return {"OMP_PROC_BIND": "true", "OMP_PLACES": ",".join(f"{{{cpu}}}" for cpu in cores)}


def _processor() -> str:
    """Its name as its maker gives it."""
    for line in _read(Path("/proc/cpuinfo")).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    brand = run(["sysctl", "-n", "machdep.cpu.brand_string"])
    if brand.returncode == 0 and brand.stdout.strip():
        return brand.stdout.strip()
    return platform.processor() or "unknown processor"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _binary(nbytes: int) -> str:
    """
    >>> _binary(32 << 10), _binary(1 << 20)
    ('32 KiB', '1 MiB')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:g} {unit}"
    return f"{nbytes} B"

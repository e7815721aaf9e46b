"""What this machine was measured to do, kept for it: a Platform in place of what is assumed.

Measured -> Platform, YAML, and an entry of the cache; `runtime/launch/discovery.py` measures.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

import numpy as np

from avial_lab.core.cache import Cache, digest, fingerprint
from avial_lab.core.files import cache_folder
from avial_lab.core.words import brief, format_bytes, format_seconds
from avial_lab.machine.cpu import this_cpu
from avial_lab.machine.host import this_machine
from avial_lab.machine.platform import Link, Node, Platform
from avial_lab.machine.topology import Topology

HERE = "here"
"""What this machine, measured, is called where a topology is asked for."""


@dataclass(frozen=True)
class Measured:
    """Rates of one core but for memory_bytes_per_s, of all at once; caches as of a `Node`. A
    message of n bytes takes latency_s + n / bytes_per_s; residual: the median of what that is off,
    relative.
    """

    core_flops_per_s: float
    core_bytes_per_s: float
    memory_bytes_per_s: float
    caches: tuple[tuple[int, float], ...]
    latency_s: float
    bytes_per_s: float
    residual: float

    def platform(self) -> Platform:
        node = Node(
            "localhost",
            cores=this_cpu().cores,
            core_flops_per_s=self.core_flops_per_s,
            core_bytes_per_s=self.core_bytes_per_s,
            memory_bytes_per_s=self.memory_bytes_per_s,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            caches=self.caches,
        )
        link = Link("messages", self.bytes_per_s, self.latency_s, "shared memory")
        inside = {node.name: link.name}
        return Platform((node,), (link,), "this machine, measured", "measured here", inside)

    def topology(self, ranks: int) -> Topology:
        """So many ranks of it."""
        local = Topology.local(ranks)
        return Topology(ranks, local.devices, self.platform())

    def __str__(self) -> str:
        caches = "".join(
            f", {rate / 1e9:.1f} GB/s up to {format_bytes(room)}" for room, rate in self.caches
        )
        return (
            f"a core: {self.core_flops_per_s / 1e9:.1f} GFLOP/s on f64, "
            f"{self.core_bytes_per_s / 1e9:.1f} GB/s from memory{caches}\n"
            f"all {this_cpu().cores} cores: {self.memory_bytes_per_s / 1e9:.1f} GB/s from memory\n"
            f"messages: {format_seconds(self.latency_s)} and {self.bytes_per_s / 1e9:.2f} GB/s "
            f"(a line through all sizes; half of them within {100 * self.residual:.0f} %)"
        )

    def __repr__(self) -> str:
        return brief(self, "of this machine")


def line_through(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float, float]:
    """Latency, bytes a second and residual of the line that is nearest to all sizes, relative to
    what each takes (Hockney 1994).

    >>> latency, rate, off = line_through([8, 1 << 20], [1e-6 + 8e-9, 1e-6 + (1 << 20) * 1e-9])
    >>> round(latency * 1e9), round(rate / 1e6), off < 1e-9
    (1000, 1000, True)
    """
    n, took = np.array(sizes, np.float64), np.array(seconds, np.float64)
    rows = np.stack([1 / took, n / took], 1)
    (latency, each), *_ = np.linalg.lstsq(rows, np.ones(n.size), rcond=None)
    latency, each = max(float(latency), 0.0), max(float(each), 1e-15)
    off = np.abs((latency + n * each) / took - 1)
    return latency, 1 / each, float(np.median(off))


# Kept ---------------------------------------------------------------------------------------------


def keep(measured: Measured) -> None:
    """For this machine as it is; a cache that cannot be written keeps nothing."""
    _store().put(_key(), json.dumps(asdict(measured)).encode())


def kept() -> Measured | None:
    """What was measured here before."""
    data = _store().get(_key())
    try:
        told = cast("dict[str, Any]", json.loads(data)) if data is not None else {}
        caches = tuple((int(room), float(rate)) for room, rate in told.pop("caches", ()))
        numbers = {name: float(value) for name, value in told.items()}
    except (ValueError, TypeError, AttributeError):
        return None
    known = {each.name for each in fields(Measured)} - {"caches"}
    if set(numbers) != known or not all(value >= 0 for value in numbers.values()):
        return None
    return Measured(caches=caches, **numbers)


def _store() -> Cache:
    return Cache(cache_folder() / "machine")


def _key() -> str:
    return digest("measured", repr(fingerprint()), repr(this_machine()))

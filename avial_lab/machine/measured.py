"""What this machine was measured to do, kept for it: a Platform in place of what is assumed.

Measured -> Platform, YAML, and an entry of the cache; `runtime/launch/discovery.py` measures.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, cast

import numpy as np

from avial_lab.core.cache import Cache, digest, fingerprint
from avial_lab.core.files import cache_folder
from avial_lab.core.words import brief, count, format_bytes, format_seconds, listed
from avial_lab.machine.constants import CROWDED_MESSAGE_S, THREADS_MEET_S
from avial_lab.machine.cpu import allowed, cores_of, domains_of, this_cpu
from avial_lab.machine.host import this_machine
from avial_lab.machine.platform import Collective, CollectiveTime, Link, Node, Platform
from avial_lab.machine.presets import topology_on
from avial_lab.machine.topology import Topology

HERE = "here"
"""What this machine, measured, is called where a topology is asked for."""


@dataclass(frozen=True)
class MeasuredNode:
    """Rates of one core but for memory_bytes_per_s, of all at once; caches as of a `Node`."""

    core_flops_per_s: float
    core_bytes_per_s: float
    memory_bytes_per_s: float
    caches: tuple[tuple[int, float], ...]
    team_s: float = THREADS_MEET_S
    crowded_s: tuple[tuple[float, float], ...] = CROWDED_MESSAGE_S

    def node(self, name: str, *, cores: int, memory_bytes: int) -> Node:
        return Node(
            name,
            cores=cores,
            core_flops_per_s=self.core_flops_per_s,
            core_bytes_per_s=self.core_bytes_per_s,
            memory_bytes_per_s=self.memory_bytes_per_s,
            memory_bytes=memory_bytes,
            caches=self.caches,
            team_s=self.team_s,
            crowded_s=self.crowded_s,
        )


@dataclass(frozen=True)
class MeasuredMessages:
    """A message of n bytes takes latency_s + n / bytes_per_s; residual: the median of what that is
    off, relative. One of at most eager_bytes is sent before its receiver is ready.
    """

    latency_s: float
    bytes_per_s: float
    residual: float
    eager_bytes: int

    def __str__(self) -> str:
        return (
            f"{format_seconds(self.latency_s)} and {self.bytes_per_s / 1e9:.2f} GB/s "
            f"(a line through all sizes; half of them within {100 * self.residual:.0f} %), "
            f"eager up to {format_bytes(self.eager_bytes)}"
        )


@dataclass(frozen=True)
class Measured:
    """This machine: a core, its memory, messages between two of its ranks, and calls of several;
    `notes` say why that may be off: others computed meanwhile. pace: of its clock, as a `Probe` has
    it, by which later times are known to be of a slower one.
    """

    node: MeasuredNode
    messages: MeasuredMessages
    collectives: tuple[CollectiveTime, ...] = ()
    notes: tuple[str, ...] = ()
    pace: float = 0.0

    def platform(self) -> Platform:
        node = self.node.node("localhost", cores=this_cpu().cores, memory_bytes=memory_here())
        node = node.divided(domains_of(cores_of(allowed())[: node.cores]))
        link = _link("messages", self.messages, "shared memory")
        inside = {node.name: link.name}
        source = "measured here" + ", on a busy machine" * bool(self.notes)
        return Platform(
            (node,), (link,), "this machine, measured", source, inside,
            collectives=self.collectives,
        )  # fmt: skip

    def topology(self, ranks: int) -> Topology:
        """So many ranks of it."""
        local = Topology.local(ranks)
        return Topology(ranks, local.devices, self.platform())

    def __str__(self) -> str:
        lines = [node_words(self.node, this_cpu().cores), f"messages: {self.messages}"]
        return "\n".join([*lines, *_collective_words(self.collectives), *self.notes])

    def __repr__(self) -> str:
        return brief(self, "of this machine")


@dataclass(frozen=True)
class MeasuredHosts:
    """Hosts as they were measured; `inside` where one of them had two ranks, `between` where there
    are two hosts.
    """

    nodes: tuple[Node, ...]
    inside: MeasuredMessages | None
    between: MeasuredMessages | None
    collectives: tuple[CollectiveTime, ...] = ()

    def topology(self) -> Topology:
        """One switch, to which each host has a link; a message goes over two."""
        links: list[Link] = []
        inside: dict[str, str] = {}
        uplinks: dict[str, tuple[tuple[str, str], ...]] = {}
        if self.inside is not None:
            link = _link("messages", self.inside, "shared memory")
            links.append(link)
            inside = {node.name: link.name for node in self.nodes}
        if self.between is not None:
            half = replace(self.between, latency_s=self.between.latency_s / 2)
            for node in self.nodes:
                link = _link(f"{node.name}-network", half, "ethernet")
                links.append(link)
                uplinks[node.name] = (("switch", link.name),)
        names = ", ".join(node.name for node in self.nodes)
        platform = Platform(
            self.nodes, tuple(links), f"{names}, measured", "measured", inside, uplinks,
            collectives=self.collectives,
        )  # fmt: skip
        return topology_on(platform)

    def __str__(self) -> str:
        lines = [
            f"{node.name}: {count(node.ranks, 'rank')}; {node_words(node, node.cores)}"
            for node in self.nodes
        ]
        for where, found in (("on a host", self.inside), ("between hosts", self.between)):
            if found is not None:
                lines.append(f"messages {where}: {found}")
        return "\n".join([*lines, *_collective_words(self.collectives)])

    def __repr__(self) -> str:
        return brief(self, f"of {count(len(self.nodes), 'host')}")


def node_words(node: MeasuredNode | Node, cores: int) -> str:
    """What a core does, and what all of them do."""
    caches = "".join(
        f", {rate / 1e9:.1f} GB/s up to {format_bytes(room)}" for room, rate in node.caches
    )
    crowded = listed(
        [f"{format_seconds(s)} ({on_a_core:g} on each)" for on_a_core, s in node.crowded_s]
    )
    return (
        f"a core: {node.core_flops_per_s / 1e9:.1f} GFLOP/s on f64, "
        f"{node.core_bytes_per_s / 1e9:.1f} GB/s from memory{caches}\n"
        f"all {cores} cores: {node.memory_bytes_per_s / 1e9:.1f} GB/s from memory; "
        f"threads begin together in {format_seconds(node.team_s)}; "
        f"messages of ranks that share a core take {crowded}"
    )


def _collective_words(collectives: Sequence[CollectiveTime]) -> Iterator[str]:
    """A line for each group."""
    groups = dict.fromkeys((each.ranks, each.nodes) for each in collectives)
    for ranks, nodes in groups:
        calls = ", ".join(
            f"{each.call.value} {each}"
            for each in collectives
            if (each.ranks, each.nodes) == (ranks, nodes)
        )
        where = f" on {count(nodes, 'host')}" if nodes > 1 else ""
        yield f"{count(ranks, 'rank')}{where}: {calls}"


def collectives_through(
    rows: Iterable[tuple[str, int, int, int, float]],
) -> tuple[CollectiveTime, ...]:
    """The line through all sizes of each call of each group; rows: call, ranks, nodes, bytes,
    seconds.
    """
    sizes: dict[tuple[str, int, int], dict[int, float]] = {}
    for call, ranks, nodes, nbytes, seconds in rows:
        sizes.setdefault((call, ranks, nodes), {})[nbytes] = seconds
    found: list[CollectiveTime] = []
    for (call, ranks, nodes), took in sizes.items():
        group = Collective(call), ranks, nodes
        if len(took) == 1:
            found.append(CollectiveTime(*group, next(iter(took.values()))))
        else:
            found.append(CollectiveTime(*group, *line_through(list(took), list(took.values()))))
    return tuple(found)


def _link(name: str, messages: MeasuredMessages, kind: str) -> Link:
    rate, latency_s = messages.bytes_per_s, messages.latency_s
    return Link(name, rate, latency_s, kind, eager_bytes=messages.eager_bytes)


def memory_here() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def line_through(sizes: Sequence[int], seconds: Sequence[float]) -> tuple[float, float, float]:
    """Latency, bytes a second and residual of the line (Hockney 1994) that is nearest to all sizes
    in the logarithm of what each takes: half as long is as wrong as twice as long.

    >>> latency, rate, off = line_through([8, 1 << 20], [1e-6 + 8e-9, 1e-6 + (1 << 20) * 1e-9])
    >>> round(latency * 1e9), round(rate / 1e6), off < 1e-9
    (1000, 1000, True)
    """
    n, took = np.array(sizes, np.float64), np.array(seconds, np.float64)
    line = np.log([took.min(), took.max() / n.max()])  # of latency and of seconds a byte
    for _ in range(_FIT_STEPS):
        latency, each = np.exp(line)
        told = latency + n * each
        slopes = np.stack([latency / told, n * each / told], 1)
        step = np.array(np.linalg.lstsq(slopes, np.log(took / told), rcond=None)[0], np.float64)
        line = np.maximum(line + step.clip(-1, 1), np.log(_LEAST_S))
    latency, each = np.exp(line)
    off = np.abs((latency + n * each) / took - 1)
    return float(latency), float(1 / each), float(np.median(off))


_FIT_STEPS = 50
_LEAST_S = 1e-15
"""A latency, and a byte's time: where the sizes do not tell it, it is nothing."""


# Kept ---------------------------------------------------------------------------------------------


def keep(measured: Measured) -> None:
    """For this machine as it is; a cache that cannot be written keeps nothing."""
    calls = [[each.call.value, *astuple(each)[1:]] for each in measured.collectives]
    _store().put(_key(), json.dumps(asdict(measured) | {"collectives": calls}).encode())


def kept() -> Measured | None:
    """What was measured here before."""
    data = _store().get(_key())
    try:
        told = cast("dict[str, Any]", json.loads(data)) if data is not None else {}
        calls = tuple(
            CollectiveTime(Collective(call), *numbers) for call, *numbers in told["collectives"]
        )
        notes = tuple(map(str, told["notes"]))
        messages = MeasuredMessages(**told["messages"])
        found = Measured(node_in(told["node"]), messages, calls, notes, told["pace"])
        rates = asdict(found.node) | {"caches": 0, "crowded_s": 0}
        numbers = [*asdict(messages).values(), *rates.values()]
        numbers += [found.pace] + [
            value for each in calls for value in (each.ranks, each.latency_s, each.bytes_per_s)
        ]
        right = all(isinstance(value, int | float) and value >= 0 for value in numbers)
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
    return found if right else None


def node_in(told: dict[str, Any]) -> MeasuredNode:
    """What `asdict` made of it, from JSON. Raises TypeError and ValueError for another form."""
    caches = tuple((int(room), float(rate)) for room, rate in told["caches"])
    crowded = tuple((float(ranks), float(s)) for ranks, s in told["crowded_s"])
    rates = {n: float(value) for n, value in told.items() if n not in ("caches", "crowded_s")}
    return MeasuredNode(**rates, caches=caches, crowded_s=crowded)


def _store() -> Cache:
    return Cache(cache_folder() / "machine")


def _key() -> str:
    return digest("measured", repr(fingerprint()), repr(this_machine()))

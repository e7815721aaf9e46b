"""What a machine can do: nodes with cores, memories and accelerators, and the links between them.

A file, a preset or the machine at hand -> Platform. `Topology` says which devices a run has and who
drives them; the platform, how fast they are and what they share. Every rate is of one thing (one
core, one direction of a link) unless its name says otherwise.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from avial_lab.core.words import brief, count, format_bytes, format_seconds, listed
from avial_lab.machine.constants import (
    CLOCK_HZ,
    CORE_CACHE_BYTES_PER_S,
    CORES_THAT_FILL_MEMORY,
    CROWDED_MESSAGE_S,
    EAGER_BYTES,
    FOREIGN_CACHE_RATE,
    HOST_LINK_BYTES_PER_S,
    HOST_LINK_LATENCY_S,
    LAST_CACHE_BYTES_PER_S,
    MEMORY_BYTES_PER_S,
    MESSAGE_BYTES_PER_S,
    MESSAGE_LATENCY_S,
    NETWORK_BYTES_PER_S,
    NETWORK_LATENCY_S,
    THREADS_MEET_S,
)
from avial_lab.machine.cpu import Cpu, this_cpu

ASSUMED = "assumed"
"""Where numbers come from that nobody measured or gave: the constants of `constants.py`."""


@dataclass(frozen=True)
class Accelerator:
    """A GPU of a node.

    flops_per_s: of fused multiply-adds on f64; on f32 twice that is taken for granted. host_…: of
    its link to the node's memory, each way for itself.
    """

    name: str
    arch: str
    flops_per_s: float
    memory_bytes_per_s: float
    memory_bytes: int
    host_bytes_per_s: float = HOST_LINK_BYTES_PER_S
    host_latency_s: float = HOST_LINK_LATENCY_S

    def __repr__(self) -> str:
        memory = format_bytes(self.memory_bytes)
        return brief(self, f"{self.name} ({self.arch}, {memory}): {_rate(self.flops_per_s)}FLOP/s")


@dataclass(frozen=True)
class Domain:
    """A part of a node's memory and the cores that are near it (a NUMA domain). cores: their
    numbers on the node; memory_bytes: 0 where nobody knows.
    """

    cores: tuple[int, ...]
    memory_bytes_per_s: float
    memory_bytes: int = 0

    def __repr__(self) -> str:
        rate = f"{_rate(self.memory_bytes_per_s)}B/s"
        return brief(self, f"of {count(len(self.cores), 'core')}: {rate}")


@dataclass(frozen=True)
class Node:
    """A computer with one memory. core_flops_per_s: multiply-adds on f64, on f32 twice that.

    core_bytes_per_s: what one core gets of the memory; memory_bytes_per_s: what all of them get
    together, in all `domains` where the memory has several: a rank's arrays lie in one, that of its
    first core. caches: (bytes, bytes a second) that a core has, the fastest first.
    """

    name: str
    cores: int
    core_flops_per_s: float
    core_bytes_per_s: float
    memory_bytes_per_s: float
    memory_bytes: int
    caches: tuple[tuple[int, float], ...] = ()
    sockets: int = 1
    arch: str = "cpu"
    accelerators: tuple[Accelerator, ...] = ()
    ranks: int = 1
    """How many MPI ranks it has by default."""
    team_s: float = THREADS_MEET_S
    """Until threads of a rank have begun together, and until the last of them is done."""
    domains: tuple[Domain, ...] = ()
    crowded_s: tuple[tuple[float, float], ...] = CROWDED_MESSAGE_S
    """Seconds until a short message is there, in the mean, where so many ranks share a core."""

    def delay_s(self, ranks: int) -> float:
        """What a message to one of so many ranks here waits for a core: nothing where each has one
        of its own; else along the lines between what is known, in the logarithms of both.
        """
        on_a_core = ranks / self.cores
        if on_a_core <= 1 or not self.crowded_s:
            return 0.0
        known = [(math.log(n), math.log(seconds)) for n, seconds in self.crowded_s]
        if len(known) == 1:
            return self.crowded_s[0][1]
        place = math.log(on_a_core)
        at = min(max(bisect([n for n, _ in known], place), 1), len(known) - 1)
        (x, low), (end, high) = known[at - 1], known[at]
        return math.exp(low + (high - low) * (place - x) / (end - x))

    def domain_of(self, core: int) -> int:
        """The number of the domain that has that core; 0 where there is one memory."""
        return next((k for k, domain in enumerate(self.domains) if core in domain.cores), 0)

    def near(self, domain: int) -> Node:
        """As who computes there sees it: with the memory of that domain alone."""
        if not self.domains:
            return self
        rate = self.domains[domain].memory_bytes_per_s
        return replace(self, memory_bytes_per_s=rate, domains=())

    def in_domains(self, number: int) -> Node:
        """With so many domains that have equal parts of it; not more than cores."""
        number = min(number, self.cores)
        if number < 2:
            return replace(self, domains=())
        ends = [k * self.cores // number for k in range(number + 1)]
        return self.divided(
            [(tuple(range(a, b)), self.memory_bytes // number) for a, b in pairwise(ends)]
        )

    def divided(self, domains: Sequence[tuple[tuple[int, ...], int]]) -> Node:
        """With domains of these cores and bytes, of which each has a part of the bandwidth as its
        cores are of all; one domain is none.
        """
        cores = sum(len(own) for own, _ in domains)
        made = tuple(
            Domain(own, self.memory_bytes_per_s * len(own) / cores, nbytes)
            for own, nbytes in domains
        )
        return replace(self, domains=made if len(made) > 1 else ())

    def stream_bytes_per_s(self, nbytes: float, cores: int) -> float:
        """How fast that many cores go through so much memory, all of it in turn."""
        for room, rate in self.caches:
            if nbytes <= room * cores:
                return rate * cores
        return min(self.core_bytes_per_s * cores, self.memory_bytes_per_s)

    def foreign_bytes_per_s(self, nbytes: float, cores: int) -> float:
        """The same of what another process has just written: from the cache of the core that it
        was on, however many there are that read it, or from memory.
        """
        memory = min(self.core_bytes_per_s * cores, self.memory_bytes_per_s)
        return max(memory, self.stream_bytes_per_s(nbytes, 1) * FOREIGN_CACHE_RATE)

    @cached_property
    def hardware(self) -> Node:
        """The node without its name: those that are equal are as fast."""
        return replace(self, name="")

    def changed(self, speed: float, memory: float) -> Node:
        """What it would be if it computed, and went through memory, so many times as fast."""
        return replace(
            self,
            core_flops_per_s=self.core_flops_per_s * speed,
            core_bytes_per_s=self.core_bytes_per_s * memory,
            memory_bytes_per_s=self.memory_bytes_per_s * memory,
            caches=tuple((room, rate * memory) for room, rate in self.caches),
            domains=tuple(
                replace(each, memory_bytes_per_s=each.memory_bytes_per_s * memory)
                for each in self.domains
            ),
            accelerators=tuple(
                replace(
                    each,
                    flops_per_s=each.flops_per_s * speed,
                    memory_bytes_per_s=each.memory_bytes_per_s * memory,
                )
                for each in self.accelerators
            ),
        )

    def in_memory(self, nbytes: float, cores: int) -> bool:
        """Whether so much is more than the caches of so many cores hold."""
        return all(nbytes > room * cores for room, _ in self.caches)

    def __repr__(self) -> str:
        gpus = f", {count(len(self.accelerators), 'GPU')}" if self.accelerators else ""
        memory = format_bytes(self.memory_bytes)
        return brief(self, f"{self.name}: {count(self.cores, 'core')}, {memory}{gpus}")


@dataclass(frozen=True)
class Link:
    """What messages share: `bandwidth_bytes_per_s` one way, or both ways together where it is not
    `duplex`. kind: `shared memory`, `ethernet`, `infiniband`, `pcie`, `nvlink` …
    """

    name: str
    bandwidth_bytes_per_s: float
    latency_s: float
    kind: str = "link"
    duplex: bool = True
    shared: bool = True
    """Whether messages slow each other: not on a switch's own inside, which SimGrid calls a
    fatpipe."""
    eager_bytes: int = EAGER_BYTES
    """A message of at most so much is sent before its receiver is ready for it."""

    def __repr__(self) -> str:
        rate = f"{_rate(self.bandwidth_bytes_per_s)}B/s"
        return brief(self, f"{self.name}, {self.kind}: {rate}, {format_seconds(self.latency_s)}")


class Collective(enum.Enum):
    """A call of all ranks of a group."""

    BARRIER = "barrier"
    BROADCAST = "broadcast"
    ALL_GATHER = "all-gather"
    ALL_REDUCE = "all-reduce"


@dataclass(frozen=True)
class CollectiveTime:
    """What a call by `ranks` ranks on so many nodes was measured to take: latency_s + n /
    bytes_per_s for the n bytes that each rank has in the end (of a barrier there are none).
    """

    call: Collective
    ranks: int
    nodes: int
    latency_s: float
    bytes_per_s: float = math.inf
    residual: float = field(default=0.0, compare=False)
    """The median of what the line through all sizes is off, relative; of a barrier, and of what is
    not measured, 0."""

    def changed(self, bandwidth: float, latency: float) -> CollectiveTime:
        """On links that are so many times as fast, and take so many times as long to begin."""
        rate, latency_s = self.bytes_per_s * bandwidth, self.latency_s * latency
        return replace(self, bytes_per_s=rate, latency_s=latency_s)

    def __repr__(self) -> str:
        where = f"{count(self.ranks, 'rank')} on {count(self.nodes, 'node')}"
        return brief(self, f"{self.call.value} of {where}: {self}")

    def __str__(self) -> str:
        rate = f" and {_rate(self.bytes_per_s)}B/s" if math.isfinite(self.bytes_per_s) else ""
        off = f" (half of the sizes within {100 * self.residual:.0f} %)" if self.residual else ""
        return f"{format_seconds(self.latency_s)}{rate}{off}"


Hop = tuple[str, bool]
"""A link's name, and whether it is gone through from its far end to its near one."""


@dataclass(frozen=True)
class Platform:
    """Nodes and links. `label` names it for people; `source` says where its numbers come from.

    Between two nodes a message goes the way of `routes` where there is one for the pair (and the
    same way back, where there is none for the way back). Else each node has `uplinks`, from itself
    to ever larger groups: (group, link) from the nearest on; a message goes up to the first group
    that both nodes are in, over the link that `crossings` has for that group, if any, and down
    again. On a node it goes over the link that `inside` names for it.

        n0 ──a──┐ leaf0 ──x──┐           n0 → n3: a, x, y, d
        n1 ──b──┘            ├ spine
        n3 ──d── leaf1 ──y───┘
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    label: str
    source: str = ASSUMED
    inside: Mapping[str, str] = field(default_factory=dict[str, str])
    uplinks: Mapping[str, tuple[tuple[str, str], ...]] = field(
        default_factory=dict[str, tuple[tuple[str, str], ...]]
    )
    crossings: Mapping[str, str] = field(default_factory=dict[str, str])
    routes: Mapping[tuple[str, str], tuple[str, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[str, ...]]
    )

    collectives: tuple[CollectiveTime, ...] = ()
    """What calls of all ranks were measured to take; of those that are not there an algorithm is
    simulated (`simulator/collectives.py`)."""

    def collective(self, call: Collective, ranks: int, nodes: int) -> CollectiveTime | None:
        """As measured; between two sizes of a group on as many nodes on the line through both, over
        the logarithm of the size: calls go in rounds, of which there are so many. None beyond what
        was measured.
        """
        known = {
            each.ranks: each
            for each in self.collectives
            if each.call is call and each.nodes == nodes
        }
        if ranks in known or not known or not min(known) < ranks < max(known):
            return known.get(ranks)
        less, more = (
            known[max(n for n in known if n < ranks)],
            known[min(n for n in known if n > ranks)],
        )
        part = math.log2(ranks / less.ranks) / math.log2(more.ranks / less.ranks)
        latency_s = less.latency_s + part * (more.latency_s - less.latency_s)
        each_s = 1 / less.bytes_per_s + part * (1 / more.bytes_per_s - 1 / less.bytes_per_s)
        rate = 1 / each_s if each_s > 0 else math.inf
        return CollectiveTime(call, ranks, nodes, latency_s, rate)

    @cached_property
    def _nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def _links(self) -> dict[str, Link]:
        return {link.name: link for link in self.links}

    @cached_property
    def fastest_flops_per_s(self) -> float:
        """Of a core of the fastest node."""
        return max(node.core_flops_per_s for node in self.nodes)

    def node(self, name: str) -> Node:
        """The node of that name; the only one answers to any."""
        return self._nodes.get(name, self.nodes[0])

    def link(self, name: str) -> Link:
        return self._links[name]

    def hops(self, source: str, dest: str) -> tuple[Hop, ...] | None:
        """The links from node to node, in their order; None where there is no way."""
        if source == dest:
            inside = self.inside.get(source)
            return ((inside, False),) if inside is not None else ()
        known = self.routes.get((source, dest))
        if known is not None:
            return tuple((name, False) for name in known)
        back = self.routes.get((dest, source))
        if back is not None:
            return tuple((name, True) for name in reversed(back))
        return self._by_groups(source, dest)

    def _by_groups(self, source: str, dest: str) -> tuple[Hop, ...] | None:
        ups, downs = self.uplinks.get(source, ()), self.uplinks.get(dest, ())
        depth = {group: k for k, (group, _) in enumerate(downs)}
        for k, (group, _) in enumerate(ups):
            if group in depth:
                up = tuple((link, False) for _, link in ups[: k + 1] if link)
                down = downs[: depth[group] + 1]
                across = ((self.crossings[group], False),) if group in self.crossings else ()
                return (*up, *across, *((link, True) for _, link in reversed(down) if link))
        return None

    def between(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Latency and bytes a second from node to node, of a message that is alone; (n, n) each.
        Where there is no way the latency is infinite.
        """
        n = len(names)
        latency, rate = np.full((n, n), np.inf), np.ones((n, n))
        if not self.routes:
            self._fill_by_groups(names, latency, rate)
            pairs = [(k, k) for k in range(n)]
        else:
            pairs = [(a, b) for a in range(n) for b in range(n)]
        for a, b in pairs:
            hops = self.hops(names[a], names[b])
            if hops is not None:
                latency[a, b] = self.latency_s(hops)
                rate[a, b] = self.bandwidth_bytes_per_s(hops)
        return latency, rate

    def _fill_by_groups(self, names: Sequence[str], latency: np.ndarray, rate: np.ndarray) -> None:
        """From the largest groups to the smallest: what is nearer overwrites."""
        ways = [self.uplinks.get(name, ()) for name in names]
        number: dict[str, int] = {}
        for level in reversed(range(max(map(len, ways), default=0))):
            group = np.full(len(names), -1)
            up_s, up_rate = np.zeros(len(names)), np.full(len(names), np.inf)
            for k, way in enumerate(ways):
                if level < len(way):
                    group[k] = number.setdefault(way[level][0], len(number))
                    hops = tuple((link, False) for _, link in way[: level + 1] if link)
                    up_s[k], up_rate[k] = self.latency_s(hops), self.bandwidth_bytes_per_s(hops)
            across_s, across_rate = self._across(
                [way[level][0] if level < len(way) else "" for way in ways]
            )
            same = (group[:, None] == group[None, :]) & (group[:, None] >= 0)
            latency[same] = (up_s[:, None] + up_s[None, :] + across_s[:, None])[same]
            up_rate = np.minimum(up_rate, across_rate)
            rate[same] = np.minimum(up_rate[:, None], up_rate[None, :])[same]

    def _across(self, groups: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Latency and rate of what is crossed in each of these groups."""
        links = [self._links.get(self.crossings.get(group, "")) for group in groups]
        return (
            np.array([0.0 if link is None else link.latency_s for link in links]),
            np.array([np.inf if link is None else link.bandwidth_bytes_per_s for link in links]),
        )

    def latency_s(self, hops: tuple[Hop, ...]) -> float:
        return sum(self._links[name].latency_s for name, _ in hops)

    def bandwidth_bytes_per_s(self, hops: tuple[Hop, ...]) -> float:
        """Of one message that has all links for itself."""
        rates = (self._links[name].bandwidth_bytes_per_s for name, _ in hops)
        return min(rates, default=float("inf"))

    def eager_bytes(self, hops: tuple[Hop, ...]) -> int:
        """What the most wary of them lets go at once."""
        return min((self._links[name].eager_bytes for name, _ in hops), default=EAGER_BYTES)

    def __str__(self) -> str:
        kinds = dict.fromkeys(link.kind for link in self.links)
        links = listed(list(kinds)) if kinds else "no links"
        return f"{self.label}: {count(len(self.nodes), 'node')}, {links} ({self.source})"

    def __repr__(self) -> str:
        nodes, links = count(len(self.nodes), "node"), count(len(self.links), "link")
        return brief(self, f"{self.label}: {nodes}, {links} ({self.source})")


def assumed_platform(
    nodes: tuple[str, ...] = ("localhost",), *, cpu: Cpu | None = None
) -> Platform:
    """Nodes like this one, with the rates of `constants.py`: always the same on one machine, which
    a placement has to be.
    """
    cpu = cpu or this_cpu()
    # Half of a cache: the other half is for what else is there.
    caches = (
        (cpu.l2_bytes, CORE_CACHE_BYTES_PER_S),
        (cpu.last_bytes // 2, LAST_CACHE_BYTES_PER_S),
    )
    made = tuple(
        Node(
            name,
            cores=cpu.cores,
            core_flops_per_s=cpu.flops_per_cycle * CLOCK_HZ,
            core_bytes_per_s=MEMORY_BYTES_PER_S,
            memory_bytes_per_s=CORES_THAT_FILL_MEMORY * MEMORY_BYTES_PER_S,
            memory_bytes=0,
            caches=caches,
        )
        for name in nodes
    )
    link = Link("messages", MESSAGE_BYTES_PER_S, MESSAGE_LATENCY_S, "shared memory", shared=False)
    between = Link("network", NETWORK_BYTES_PER_S, NETWORK_LATENCY_S, "ethernet", shared=False)
    return Platform(
        made,
        (link, between) if len(nodes) > 1 else (link,),
        label="this machine" if len(nodes) == 1 else f"{count(len(nodes), 'node')} like this one",
        inside=dict.fromkeys(nodes, link.name),
        uplinks=dict.fromkeys(nodes, (("all", between.name),)) if len(nodes) > 1 else {},
    )


def _rate(value: float) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "

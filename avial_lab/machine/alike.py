"""What of a machine is alike, and a machine with some of it changed.

Platform -> its kinds of nodes and links, each once; Topology, values in named units -> Topology.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from avial_lab.core.errors import OptionError
from avial_lab.machine.platform import Accelerator, Link, Node, Platform
from avial_lab.machine.presets import topology_on
from avial_lab.machine.topology import Topology
from avial_lab.machine.topology_file import MOST_NODES
from avial_lab.machine.units import Quantity, UnitError, parsed, written

Thing = TypeVar("Thing", Node, Link)

NODES = "nodes"
"""The field that says how many nodes there are."""


@dataclass(frozen=True)
class NodeKind:
    """Nodes that differ in their names alone."""

    node: Node
    names: tuple[str, ...]


@dataclass(frozen=True)
class LinkKind:
    """Links that differ in their names alone. `inside`: within a node; `level`: from a node to the
    nearest group is 0, from there to the next one is 1; None for those on routes of their own.
    """

    link: Link
    names: tuple[str, ...]
    inside: bool
    level: int | None


def node_kinds(platform: Platform) -> tuple[NodeKind, ...]:
    found = _alike(platform.nodes)
    return tuple(NodeKind(each[0], tuple(node.name for node in each)) for each in found)


def link_kinds(platform: Platform) -> tuple[LinkKind, ...]:
    """The innermost first."""
    inside = set(platform.inside.values())
    level = {
        link: k
        for way in platform.uplinks.values()
        for k, (_, link) in enumerate(way)
        if link
    }  # fmt: skip
    kinds = [
        LinkKind(links[0], tuple(link.name for link in links), here, at)
        for (here, at), those in _by_place(platform.links, inside, level).items()
        for links in _alike(those)
    ]
    return tuple(sorted(kinds, key=lambda kind: (not kind.inside, kind.level or 0)))


def _by_place(
    links: Iterable[Link], inside: set[str], level: Mapping[str, int]
) -> dict[tuple[bool, int | None], list[Link]]:
    places: dict[tuple[bool, int | None], list[Link]] = {}
    for link in links:
        places.setdefault((link.name in inside, level.get(link.name)), []).append(link)
    return places


def _alike(things: Iterable[Thing]) -> list[list[Thing]]:
    groups: dict[Any, list[Thing]] = {}
    for thing in things:
        groups.setdefault(replace(thing, name=""), []).append(thing)
    return list(groups.values())


# Changed ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """What can be changed: `key` of the kind numbered so, what people call it, its value now; of
    whole numbers there is no quantity.
    """

    key: str
    label: str
    value: str
    quantity: Quantity | None = None


@dataclass(frozen=True)
class Group:
    """The fields of one kind of node or link."""

    title: str
    fields: tuple[Field, ...]


_WHOLE = ("cores", "sockets", "ranks")
_OF_NODE = {
    "core_flops_per_s": ("a core computes", Quantity.FLOPS),
    "core_bytes_per_s": ("a core's share of memory", Quantity.BYTES_PER_S),
    "memory_bytes_per_s": ("memory, all cores", Quantity.BYTES_PER_S),
    "memory_bytes": ("memory", Quantity.BYTES),
}
_OF_GPU = {
    "flops_per_s": ("a GPU computes", Quantity.FLOPS),
    "memory_bytes_per_s": ("a GPU's memory", Quantity.BYTES_PER_S),
    "host_bytes_per_s": ("a GPU's link: bandwidth", Quantity.BYTES_PER_S),
    "host_latency_s": ("a GPU's link: latency", Quantity.SECONDS),
}
_OF_LINK = {
    "bandwidth_bytes_per_s": ("bandwidth", Quantity.BYTES_PER_S),
    "latency_s": ("latency", Quantity.SECONDS),
}


def groups_of(topology: Topology) -> tuple[Group, ...]:
    """What can be changed of a machine, kind by kind: how many nodes and ranks, too, where its
    devices are those that its nodes have.
    """
    platform, groups = _with_its_ranks(topology), list[Group]()
    kinds, its_own = node_kinds(platform), _follows(topology, platform)
    if its_own and _can_grow(platform):
        count = Field(NODES, "nodes", str(len(platform.nodes)))
        groups.append(Group("machine", (count,)))
    for k, kind in enumerate(kinds):
        node, key = kind.node, f"node{k}"
        names = [name for name in _WHOLE if its_own or name != "ranks"]
        whole = [Field(f"{key}.{name}", name, str(getattr(node, name))) for name in names]
        gpu = node.accelerators[0] if node.accelerators else None
        fields = [*whole, *_fields(key, node, _OF_NODE)]
        fields += _fields(f"{key}.gpu", gpu, _OF_GPU) if gpu else ()
        groups.append(Group(named(kind.names, "node"), tuple(fields)))
    for k, kind in enumerate(link_kinds(platform)):
        title = f"{kind.link.kind}: {named(kind.names, 'link')}"
        groups.append(Group(title, _fields(f"link{k}", kind.link, _OF_LINK)))
    return tuple(groups)


def _fields(key: str, thing: object, of: Mapping[str, tuple[str, Quantity]]) -> tuple[Field, ...]:
    return tuple(
        Field(f"{key}.{name}", label, written(getattr(thing, name), quantity), quantity)
        for name, (label, quantity) in of.items()
        if getattr(thing, name) > 0  # a memory of which nobody knows how large it is
    )


def named(names: tuple[str, ...], noun: str) -> str:
    """`n0`, `1,024 nodes, n0 to n1023`."""
    if len(names) == 1:
        return f"{noun} {names[0]}"
    return f"{len(names):,} {noun}s, {names[0]} to {names[-1]}"


def changed(topology: Topology, values: Mapping[str, str]) -> Topology:
    """The machine with other values in some of the fields of `groups_of`.

    Raises OptionError with the field's name for what is no number in its unit.
    """
    fields = {each.key: each for group in groups_of(topology) for each in group.fields}
    meant: dict[str, float] = {}
    for key, text in values.items():
        if key not in fields:
            raise OptionError(f"this machine has no '{str(key)[:40]}'")
        if str(text).strip() != fields[key].value:
            meant[key] = _number(fields[key], str(text))
    if not meant:
        return topology
    platform = _with_its_ranks(topology)
    nodes = _changed_nodes(platform, meant)
    links = _changed_links(platform, meant)
    label = platform.label
    if not label.endswith(_EDITED):
        label += _EDITED
    made = replace(platform, nodes=nodes, links=links, label=label)
    if not _follows(topology, platform):
        return replace(topology, platform=made)
    if NODES in meant:
        made = _with_count(made, int(meant[NODES]))
    return topology_on(made, arch=topology.devices[0].arch)


def _with_its_ranks(topology: Topology) -> Platform:
    """Its platform, of nodes that have as many ranks as it has there."""
    platform, ranks = topology.speeds, Counter(topology.node_of)
    nodes = (replace(node, ranks=ranks[node.name] or node.ranks) for node in platform.nodes)
    return replace(platform, nodes=tuple(nodes))


def _follows(topology: Topology, platform: Platform) -> bool:
    """Whether its devices are those of the platform's nodes: none emulated, none left out."""
    return topology_on(platform, arch=topology.devices[0].arch).devices == topology.devices


_EDITED = ", edited"


def _number(field: Field, text: str) -> float:
    if field.quantity is not None:
        try:
            return parsed(text, field.quantity)
        except UnitError as error:
            raise OptionError(f"{field.label}: {error}") from None
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"{field.label} is a whole number, not '{text.strip()[:40]}'") from None
    if not 1 <= value <= MOST_NODES:
        raise OptionError(f"{field.label} is {value}; expected 1 to {MOST_NODES:,}")
    return value


def _changed_nodes(platform: Platform, meant: Mapping[str, float]) -> tuple[Node, ...]:
    number = {name: k for k, kind in enumerate(node_kinds(platform)) for name in kind.names}
    return tuple(_changed_node(node, f"node{number[node.name]}", meant) for node in platform.nodes)


def _changed_node(node: Node, key: str, meant: Mapping[str, float]) -> Node:
    whole = {n: int(meant[f"{key}.{n}"]) for n in _WHOLE if f"{key}.{n}" in meant}
    rates = {n: meant[f"{key}.{n}"] for n in _OF_NODE if f"{key}.{n}" in meant}
    if "memory_bytes" in rates:
        rates["memory_bytes"] = int(rates["memory_bytes"])
    of_gpu = {n: meant[f"{key}.gpu.{n}"] for n in _OF_GPU if f"{key}.gpu.{n}" in meant}
    gpus: tuple[Accelerator, ...] = node.accelerators
    if of_gpu:
        gpus = tuple(replace(gpu, **of_gpu) for gpu in gpus)
    made = replace(node, accelerators=gpus, **whole, **rates)  # type: ignore[arg-type]
    # One domain a socket stays that.
    domains = made.sockets if len(node.domains) == node.sockets > 1 else len(node.domains)
    return made.in_domains(domains) if whole or rates else made


def _changed_links(platform: Platform, meant: Mapping[str, float]) -> tuple[Link, ...]:
    others: dict[str, Link] = {}
    links = {link.name: link for link in platform.links}
    for k, kind in enumerate(link_kinds(platform)):
        values = {n: meant[f"link{k}.{n}"] for n in _OF_LINK if f"link{k}.{n}" in meant}
        others |= {name: replace(links[name], **values) for name in kind.names}
    return tuple(others[link.name] for link in platform.links)


# More nodes, or fewer -----------------------------------------------------------------------------

_NETWORK = Link("network", 25e9 / 8, 10e-6, "ethernet")
"""Between nodes of a machine that had one: 25 Gbit/s."""

_SWITCH = "switch"


def _can_grow(platform: Platform) -> bool:
    """Whether all nodes are alike, each with a link like the others' to one switch."""
    alike = len(node_kinds(platform)) == 1 and not platform.routes and not platform.crossings
    if not alike or len(platform.nodes) == 1:
        return alike
    ways = list(platform.uplinks.values())
    one_step = len(ways) == len(platform.nodes) and all(len(way) == 1 for way in ways)
    return one_step and len({way[0][0] for way in ways}) == 1 and _uplink(platform) is not None


def _uplink(platform: Platform) -> Link | None:
    """That which every node has one of; None where they differ."""
    ups = _alike(platform.link(way[0][1]) for way in platform.uplinks.values())
    return ups[0][0] if len(ups) == 1 else None


def _with_count(platform: Platform, count: int) -> Platform:
    first = platform.nodes[0]
    stem = first.name.rstrip("0123456789") or first.name
    names = [f"{stem}{k}" for k in range(count)] if count > 1 else [first.name]
    nodes = tuple(replace(first, name=name) for name in names)
    inside = platform.inside.get(first.name)
    kept = [link for link in platform.links if link.name == inside]
    up = (_uplink(platform) if platform.uplinks else None) or _NETWORK
    # One that all share (a network that nothing slows) stays one.
    one = len(platform.nodes) > 1 and len(set(platform.uplinks.values())) == 1
    own = [up] if one else [replace(up, name=f"{name}-{_SWITCH}") for name in names]
    if count == 1:
        own = []
    ways = own * count if one else own
    return replace(
        platform,
        nodes=nodes,
        links=(*kept, *own),
        inside=dict.fromkeys(names, inside) if inside is not None else {},
        uplinks={n: ((_SWITCH, link.name),) for n, link in zip(names, ways, strict=False)},
    )

"""A machine from a file in YAML.

    name: lab
    nodes:
      - {name: n, count: 4, cores: 16, core_flops: 40 GFLOP/s, core_bandwidth: 12 GB/s,
         memory_bandwidth: 100 GB/s, memory: 64 GiB, ranks: 2}
    links:
      - {name: eth, kind: ethernet, bandwidth: 25 Gbit/s, latency: 10 us}
      - {name: shm, kind: shared memory, bandwidth: 5 GB/s, latency: 1 us}
    inside: shm          # between ranks of a node
    switch: eth          # every node has a link like it to one switch
    routes:              # in place of `switch`, or for pairs that have a way of their own
      - {from: n0, to: n1, links: [eth]}
    uplinks:             # in place of `switch`: to ever larger groups, from the nearest on
      - {node: n0, group: leaf0, link: eth}
    crossings:           # what a message goes through in such a group
      - {group: leaf0, link: eth}
    collectives:         # calls of so many ranks, as measured; else an algorithm is simulated
      - {call: all-gather, ranks: 4, nodes: 2, latency: 30 us, bandwidth: 2 GB/s}

A node may have `caches: [{size: 1 MiB, bandwidth: 80 GB/s}]`, of a core; `domains: 2` where its
memory is in parts, near some of its cores each (NUMA), or, where those are not alike, a list of
them: `domains: [{cores: 0-7, memory_bandwidth: 60 GB/s, memory: 32 GiB}, …]`; `threads_meet: 3 us`,
which a rank's threads take to begin together; and GPUs, the last two of which, of a GPU's link to
its host, may be left out. Links may be not `shared` by their messages, or not
`duplex`; messages up to `eager: 64 KiB` leave before their receiver is ready.

        gpus: {count: 2, arch: sm_90, flops: 30 TFLOP/s, bandwidth: 3 TB/s, memory: 80 GiB,
               host_bandwidth: 50 GB/s, host_latency: 8 us}

Path -> Topology, and back. Every number has a unit. Unknown keys are refused with the near one;
what is wrong is told with line and column. Nothing in the file is evaluated.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from avial_lab.core.errors import AvialError, CellSpan
from avial_lab.core.files import text_of
from avial_lab.machine.constants import (
    EAGER_BYTES,
    MOST_ETHERNET_BYTES_PER_S,
    THREADS_MEET_S,
)
from avial_lab.machine.cpu import listed_numbers, numbers_in
from avial_lab.machine.platform import (
    Accelerator,
    Collective,
    CollectiveTime,
    Domain,
    Link,
    Node,
    Platform,
)
from avial_lab.machine.presets import topology_on
from avial_lab.machine.topology import Topology
from avial_lab.machine.units import Quantity, UnitError, parsed, written

MOST_NODES = 100_000


class TopologyError(AvialError):
    """A topology file that does not say what it has to."""


class LikelyBitsWarning(UserWarning):
    """A link whose bandwidth is that of eight like it: bits were probably meant, not bytes."""


def read_topology(path: Path) -> Topology:
    """Raises TopologyError with the place of what is wrong."""
    text = text_of(path, TopologyError)
    return topology_in(text, str(path))


def topology_in(text: str, name: str) -> Topology:
    """The same of a text; `name` is what errors call it."""
    import yaml  # takes some 30 ms to load

    compose: Callable[..., Any] = cast("Any", yaml).compose
    try:
        root = compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark
        span = CellSpan(name, text, mark.line + 1, mark.column + 1) if mark else None
        raise TopologyError(f"this is not YAML: {error.problem}", span=span) from None
    except (yaml.YAMLError, RecursionError):
        raise TopologyError(f"{name} is not YAML") from None
    if root is None:
        raise TopologyError(f"{name} is empty", hint="a topology has nodes and links")
    return topology_at(root, text, name)


def topology_at(root: Any, text: str, name: str) -> Topology:  # noqa: ANN401  PyYAML's
    """Of what was read, nodes like PyYAML's; `text` is shown where something in it is wrong."""
    return _topology(_Reader(name, text, root))


class _Reader:
    """A node of the file and where it stands."""

    def __init__(self, name: str, text: str, node: Any) -> None:  # noqa: ANN401  PyYAML's
        self.name, self.text, self.node = name, text, node

    def error(self, message: str, hint: str | None = None) -> TopologyError:
        mark = self.node.start_mark
        span = CellSpan(self.name, self.text, mark.line + 1, mark.column + 1)
        return TopologyError(message, span=span, hint=hint)

    def mapping(self, what: str, known: Sequence[str]) -> Mapping[str, _Reader]:
        """Its members; a key that is not known is refused, and one that stands twice."""
        if self.node.id != "mapping":
            raise self.error(f"{what} has keys: {', '.join(known)}")
        found: dict[str, _Reader] = {}
        for key_node, value in self.node.value:
            key, at = str(key_node.value), _Reader(self.name, self.text, key_node)
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known)}"
                raise at.error(f"{what} has no '{key}'", hint)
            if key in found:
                raise at.error(f"'{key}' stands twice")
            found[key] = _Reader(self.name, self.text, value)
        return found

    def items(self, what: str) -> list[_Reader]:
        if self.node.id != "sequence":
            raise self.error(f"{what} is a list")
        return [_Reader(self.name, self.text, each) for each in self.node.value]

    def word(self, what: str) -> str:
        if self.node.id != "scalar" or not str(self.node.value).strip():
            raise self.error(f"{what} is a name")
        return str(self.node.value).strip()

    def whole(self, what: str, *, most: int = MOST_NODES) -> int:
        try:
            value = int(self.word(what))
        except ValueError:
            raise self.error(f"{what} is a whole number, not '{self.node.value}'") from None
        if not 1 <= value <= most:
            raise self.error(f"{what} is {value}; expected 1 to {most:,}")
        return value

    def truth(self, what: str) -> bool:
        word = self.word(what)
        if word not in ("yes", "no", "true", "false"):
            raise self.error(f"{what} is yes or no, not '{word}'")
        return word in ("yes", "true")

    def quantity(self, what: str, quantity: Quantity) -> float:
        try:
            return parsed(self.word(what), quantity)
        except UnitError as error:
            raise self.error(f"{what}: {error}") from None


_NODE = (
    "name", "count", "cores", "core_flops", "core_bandwidth", "memory_bandwidth", "memory",
    "sockets", "ranks", "gpus", "caches", "domains", "threads_meet",
)  # fmt: skip
_GPU = ("count", "arch", "flops", "bandwidth", "memory", "host_bandwidth", "host_latency")
_NEEDED_GPU = _GPU[1:5]
_LINK = ("name", "kind", "bandwidth", "latency", "shared", "duplex", "eager")
_CACHE = ("size", "bandwidth")
_DOMAIN = ("cores", "memory_bandwidth", "memory")
_COLLECTIVE = ("call", "ranks", "nodes", "latency", "bandwidth")
_MEMBERS = (
    "name", "nodes", "links", "inside", "switch", "routes", "uplinks", "crossings", "collectives",
)  # fmt: skip


def _topology(root: _Reader) -> Topology:
    members = root.mapping("a topology", _MEMBERS)
    if "nodes" not in members:
        raise root.error("a topology has nodes", "nodes: [{name: n, cores: 8, …}]")
    nodes = [node for each in members["nodes"].items("nodes") for node in _nodes(each)]
    if not nodes:
        raise members["nodes"].error("there are no nodes, and so no ranks")
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        raise members["nodes"].error("two nodes have the same name", "give each entry its own name")
    links = {
        link.name: link
        for each in (members["links"].items("links") if "links" in members else [])
        for link in [_link(each)]
    }
    label = members["name"].word("name") if "name" in members else root.name
    made, uplinks = list(links.values()), dict[str, tuple[tuple[str, str], ...]]()
    if "switch" in members:
        like = _known(members["switch"], links)
        for name in names:
            own = replace(like, name=f"{name}-{like.name}")
            made.append(own)
            uplinks[name] = (("switch", own.name),)
    if "uplinks" in members:
        if uplinks:
            raise members["uplinks"].error("a topology has a switch or uplinks, not both")
        uplinks = _uplinks(members["uplinks"], set(names), links)
    crossings = _crossings(members["crossings"], links) if "crossings" in members else {}
    inside: dict[str, str] = {}
    if "inside" in members:
        inside = dict.fromkeys(names, _known(members["inside"], links).name)
    routes = _routes(members["routes"], set(names), links) if "routes" in members else {}
    platform = Platform(
        tuple(nodes), tuple(made), label, f"from {root.name}",
        inside=inside, uplinks=uplinks, crossings=crossings, routes=routes,
        collectives=_collectives(members["collectives"]) if "collectives" in members else (),
    )  # fmt: skip
    return topology_on(platform)


def _nodes(entry: _Reader) -> list[Node]:
    """As many as its `count`, numbered from 0 where there are several."""
    members = entry.mapping("a node", _NODE)
    needed = ("name", "cores", "core_flops", "core_bandwidth", "memory_bandwidth")
    for key in needed:
        if key not in members:
            raise entry.error(f"a node lacks '{key}'", f"a node needs {', '.join(needed)}")
    name = members["name"].word("name")
    count = members["count"].whole("count") if "count" in members else 1
    made = Node(
        name,
        members["cores"].whole("cores"),
        members["core_flops"].quantity("core_flops", Quantity.FLOPS),
        members["core_bandwidth"].quantity("core_bandwidth", Quantity.BYTES_PER_S),
        members["memory_bandwidth"].quantity("memory_bandwidth", Quantity.BYTES_PER_S),
        int(members["memory"].quantity("memory", Quantity.BYTES)) if "memory" in members else 0,
        caches=_caches(members["caches"]) if "caches" in members else (),
        sockets=members["sockets"].whole("sockets") if "sockets" in members else 1,
        accelerators=_gpus(members["gpus"]) if "gpus" in members else (),
        ranks=members["ranks"].whole("ranks") if "ranks" in members else 1,
    )
    if "threads_meet" in members:
        meet_s = members["threads_meet"].quantity("threads_meet", Quantity.SECONDS)
        made = replace(made, team_s=meet_s)
    if "domains" in members:
        made = _in_domains(members["domains"], made)
    if count == 1:
        return [made]
    return [replace(made, name=f"{name}{k}") for k in range(count)]


def _caches(entry: _Reader) -> tuple[tuple[int, float], ...]:
    found: list[tuple[int, float]] = []
    for each in entry.items("caches"):
        members = each.mapping("a cache", _CACHE)
        for key in _CACHE:
            if key not in members:
                raise each.error(f"a cache lacks '{key}'", f"a cache needs {', '.join(_CACHE)}")
        size = int(members["size"].quantity("size", Quantity.BYTES))
        found.append((size, members["bandwidth"].quantity("bandwidth", Quantity.BYTES_PER_S)))
    return tuple(found)


def _in_domains(entry: _Reader, node: Node) -> Node:
    """So many alike, or each with its cores, which are all of the node's."""
    if entry.node.id == "scalar":
        return node.in_domains(entry.whole("domains", most=node.cores))
    found: list[Domain] = []
    for each in entry.items("domains"):
        members = each.mapping("a domain", _DOMAIN)
        for key in _DOMAIN[:2]:
            if key not in members:
                raise each.error(
                    f"a domain lacks '{key}'", f"a domain needs {', '.join(_DOMAIN[:2])}"
                )
        words = members["cores"].word("cores")
        if not re.fullmatch(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*", words):
            raise members["cores"].error(f"cores is a list of their numbers, not '{words}'", "0-7")
        rate = members["memory_bandwidth"].quantity("memory_bandwidth", Quantity.BYTES_PER_S)
        memory = members["memory"].quantity("memory", Quantity.BYTES) if "memory" in members else 0
        found.append(Domain(numbers_in(words), rate, int(memory)))
    cores = sorted(core for domain in found for core in domain.cores)
    if cores != list(range(node.cores)):
        raise entry.error(
            f"the domains have the cores {listed_numbers(cores) or 'none'}, "
            f"and the node has 0-{node.cores - 1}",
            "each core is in one domain",
        )
    return replace(node, domains=tuple(found) if len(found) > 1 else ())


def _gpus(entry: _Reader) -> tuple[Accelerator, ...]:
    members = entry.mapping("gpus", _GPU)
    for key in _NEEDED_GPU:
        if key not in members:
            raise entry.error(f"gpus have '{key}'", f"gpus need {', '.join(_NEEDED_GPU)}")
    gpu = Accelerator(
        "gpu",
        members["arch"].word("arch"),
        members["flops"].quantity("flops", Quantity.FLOPS),
        members["bandwidth"].quantity("bandwidth", Quantity.BYTES_PER_S),
        int(members["memory"].quantity("memory", Quantity.BYTES)),
    )
    if "host_bandwidth" in members:
        rate = members["host_bandwidth"].quantity("host_bandwidth", Quantity.BYTES_PER_S)
        gpu = replace(gpu, host_bytes_per_s=rate)
    if "host_latency" in members:
        latency = members["host_latency"].quantity("host_latency", Quantity.SECONDS)
        gpu = replace(gpu, host_latency_s=latency)
    return (gpu,) * (members["count"].whole("count") if "count" in members else 1)


def _link(entry: _Reader) -> Link:
    members = entry.mapping("a link", _LINK)
    for key in ("name", "bandwidth", "latency"):
        if key not in members:
            raise entry.error(f"a link lacks '{key}'", "a link needs name, bandwidth, latency")
    kind = members["kind"].word("kind") if "kind" in members else "link"
    rate = members["bandwidth"].quantity("bandwidth", Quantity.BYTES_PER_S)
    written = members["bandwidth"].word("bandwidth")
    if kind == "ethernet" and "bit" not in written and rate > MOST_ETHERNET_BYTES_PER_S:
        warnings.warn(
            f"{entry.name}: {written} is {8 * rate / 1e9:.0f} Gbit/s; was 'bit/s' meant?",
            LikelyBitsWarning,
            stacklevel=2,
        )
    latency_s = members["latency"].quantity("latency", Quantity.SECONDS)
    said = {key: members[key].truth(key) for key in ("shared", "duplex") if key in members}
    eager = EAGER_BYTES
    if "eager" in members:
        eager = int(members["eager"].quantity("eager", Quantity.BYTES))
    return Link(members["name"].word("name"), rate, latency_s, kind, eager_bytes=eager, **said)


def _known(entry: _Reader, links: Mapping[str, Link]) -> Link:
    name = entry.word("a link")
    if name not in links:
        near = get_close_matches(name, links, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(links) or 'none'}"
        raise entry.error(f"there is no link '{name}'", hint)
    return links[name]


def _routes(
    entry: _Reader, names: set[str], links: Mapping[str, Link]
) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for each in entry.items("routes"):
        members = each.mapping("a route", ("from", "to", "links"))
        if len(members) < 3:
            raise each.error("a route has from, to and links")
        ends: list[str] = []
        for key in ("from", "to"):
            name = members[key].word(key)
            if name not in names:
                raise members[key].error(f"there is no node '{name}'")
            ends.append(name)
        way = tuple(_known(link, links).name for link in members["links"].items("links"))
        found[ends[0], ends[1]] = way
    return found


def _uplinks(
    entry: _Reader, names: set[str], links: Mapping[str, Link]
) -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for each in entry.items("uplinks"):
        members = each.mapping("an uplink", ("node", "group", "link"))
        if len(members) < 3:
            raise each.error("an uplink has node, group and link")
        name = members["node"].word("node")
        if name not in names:
            raise members["node"].error(f"there is no node '{name}'")
        step = members["group"].word("group"), _known(members["link"], links).name
        found[name] = (*found.get(name, ()), step)
    return found


def _crossings(entry: _Reader, links: Mapping[str, Link]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in entry.items("crossings"):
        members = each.mapping("a crossing", ("group", "link"))
        if len(members) < 2:
            raise each.error("a crossing has group and link")
        found[members["group"].word("group")] = _known(members["link"], links).name
    return found


def _collectives(entry: _Reader) -> tuple[CollectiveTime, ...]:
    """Of one node unless it says so. A barrier moves nothing: it has no bandwidth."""
    found: dict[tuple[Collective, int, int], CollectiveTime] = {}
    calls = {call.value: call for call in Collective}
    for each in entry.items("collectives"):
        members = each.mapping("a collective", _COLLECTIVE)
        for key in ("call", "ranks", "latency"):
            if key not in members:
                raise each.error(f"a collective lacks '{key}'", "it needs call, ranks, latency")
        name = members["call"].word("call")
        if name not in calls:
            near = get_close_matches(name, calls, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(calls)}"
            raise members["call"].error(f"there is no call '{name}'", hint)
        call = calls[name]
        if (call is Collective.BARRIER) == ("bandwidth" in members):
            raise each.error("all collectives but a barrier have a bandwidth")
        made = CollectiveTime(
            call,
            members["ranks"].whole("ranks"),
            members["nodes"].whole("nodes") if "nodes" in members else 1,
            members["latency"].quantity("latency", Quantity.SECONDS),
        )
        if "bandwidth" in members:
            rate = members["bandwidth"].quantity("bandwidth", Quantity.BYTES_PER_S)
            made = replace(made, bytes_per_s=rate)
        key = call, made.ranks, made.nodes
        if key in found:
            raise each.error(f"{name} of {made.ranks} ranks on {made.nodes} nodes stands twice")
        found[key] = made
    return tuple(found.values())


# Written ------------------------------------------------------------------------------------------


def topology_text(topology: Topology) -> str:
    """A file of it, to be edited; numbers in six digits. Its devices are those of its nodes.

    Raises TopologyError where nodes have different links inside, which files do not say.
    """
    platform, ranks = topology.speeds, Counter(topology.node_of)
    inside = dict.fromkeys(platform.inside.values())
    if len(inside) > 1:
        raise TopologyError("its nodes have different links inside, which a file cannot say")
    nodes = [replace(node, ranks=ranks[node.name] or node.ranks) for node in platform.nodes]
    lines = [f"name: {_word(platform.label)}", "nodes:"]
    for first, count in _runs(nodes):
        lines.append(f"  - {_flow(_node_words(first, count))}")
    if platform.links:
        lines.append("links:")
    lines += [f"  - {_flow(_link_words(link))}" for link in platform.links]
    lines += [f"inside: {_word(name)}" for name in inside]
    if platform.routes:
        lines.append("routes:")
        lines += [
            f"  - {_flow({'from': a, 'to': b, 'links': _list(map(_word, way))})}"
            for (a, b), way in platform.routes.items()
        ]
    if platform.uplinks:
        lines.append("uplinks:")
        lines += [
            f"  - {_flow({'node': node, 'group': group, 'link': link})}"
            for node, way in platform.uplinks.items()
            for group, link in way
        ]
    if platform.crossings:
        lines.append("crossings:")
        lines += [
            f"  - {_flow({'group': group, 'link': link})}"
            for group, link in platform.crossings.items()
        ]
    if platform.collectives:
        lines.append("collectives:")
        lines += [f"  - {_flow(_collective_words(each))}" for each in platform.collectives]
    return "\n".join(lines) + "\n"


def _runs(nodes: Sequence[Node]) -> Iterator[tuple[Node, int]]:
    """Nodes that a `count` stands for: the first, without its number, and how many."""
    at = 0
    while at < len(nodes):
        stem, count = nodes[at].name.rstrip("0123456789"), 0
        while at + count < len(nodes) and nodes[at + count] == replace(
            nodes[at], name=f"{stem}{count}"
        ):
            count += 1
        if stem and count > 1:
            yield replace(nodes[at], name=stem), count
        else:
            yield nodes[at], (count := 1)
        at += count


def _node_words(node: Node, count: int) -> dict[str, str]:
    words = {"name": node.name, **({"count": str(count)} if count > 1 else {})}
    rate = Quantity.BYTES_PER_S
    words |= {
        "cores": str(node.cores), "sockets": str(node.sockets), "ranks": str(node.ranks),
        "core_flops": written(node.core_flops_per_s, Quantity.FLOPS),
        "core_bandwidth": written(node.core_bytes_per_s, rate),
        "memory_bandwidth": written(node.memory_bytes_per_s, rate),
    }  # fmt: skip
    if node.memory_bytes:
        words["memory"] = written(node.memory_bytes, Quantity.BYTES)
    if node.caches:
        caches = (
            _flow({"size": written(size, Quantity.BYTES), "bandwidth": written(each, rate)})
            for size, each in node.caches
        )
        words["caches"] = _list(caches)
    if node.team_s != THREADS_MEET_S:
        words["threads_meet"] = written(node.team_s, Quantity.SECONDS)
    if node.domains:
        alike = node == node.in_domains(len(node.domains))
        words["domains"] = str(len(node.domains)) if alike else _domain_words(node.domains)
    if node.accelerators:
        gpu = node.accelerators[0]
        words["gpus"] = _flow(
            {
                "count": str(len(node.accelerators)), "arch": gpu.arch,
                "flops": written(gpu.flops_per_s, Quantity.FLOPS),
                "bandwidth": written(gpu.memory_bytes_per_s, rate),
                "memory": written(gpu.memory_bytes, Quantity.BYTES),
                "host_bandwidth": written(gpu.host_bytes_per_s, rate),
                "host_latency": written(gpu.host_latency_s, Quantity.SECONDS),
            }
        )  # fmt: skip
    return words


def _domain_words(domains: Iterable[Domain]) -> _Flow:
    rate, size = Quantity.BYTES_PER_S, Quantity.BYTES
    return _list(
        _flow(
            {
                "cores": listed_numbers(each.cores),
                "memory_bandwidth": written(each.memory_bytes_per_s, rate),
                **({"memory": written(each.memory_bytes, size)} if each.memory_bytes else {}),
            }
        )
        for each in domains
    )


def _link_words(link: Link) -> dict[str, str]:
    words = {
        "name": link.name, "kind": link.kind,
        "bandwidth": written(link.bandwidth_bytes_per_s, Quantity.BYTES_PER_S),
        "latency": written(link.latency_s, Quantity.SECONDS),
    }  # fmt: skip
    said = {"shared": link.shared, "duplex": link.duplex}
    if link.eager_bytes != EAGER_BYTES:
        words["eager"] = written(link.eager_bytes, Quantity.BYTES)
    return words | {key: "no" for key, value in said.items() if not value}


def _collective_words(collective: CollectiveTime) -> dict[str, str]:
    words = {
        "call": collective.call.value, "ranks": str(collective.ranks),
        "nodes": str(collective.nodes),
        "latency": written(collective.latency_s, Quantity.SECONDS),
    }  # fmt: skip
    if collective.call is not Collective.BARRIER:
        words["bandwidth"] = written(collective.bytes_per_s, Quantity.BYTES_PER_S)
    return words


class _Flow(str):
    """YAML in one line, as it is to be written."""

    __slots__ = ()


def _flow(words: Mapping[str, str]) -> _Flow:
    pairs = (
        f"{key}: {text if isinstance(text, _Flow) else _word(text)}" for key, text in words.items()
    )
    return _Flow("{" + ", ".join(pairs) + "}")


def _list(items: Iterable[str]) -> _Flow:
    return _Flow("[" + ", ".join(items) + "]")


def _word(text: str) -> str:
    """A name or number as YAML has it: in quotes where it could be read as something else."""
    plain = re.fullmatch(r"[A-Za-z0-9](?:[\w .+/-]*[\w/])?", text)
    return text if plain else json.dumps(text)

"""A machine from a platform file of SimGrid: hosts, links, routes and clusters.

Path -> Topology: a rank on each host. XML with entities is refused, and nothing else is fetched.
What is not known, or changes over time, is refused with its line. Of a zone that is routed by
`Floyd` or `Dijkstra` the shortest ways are found here, over hosts and routers, in numbers of links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from avial_lab.core.errors import AvialError, CellSpan
from avial_lab.core.files import text_of
from avial_lab.machine.platform import Link, Node, Platform
from avial_lab.machine.presets import topology_on
from avial_lab.machine.topology import Topology
from avial_lab.machine.units import Quantity, UnitError, parsed

MOST_HOSTS = 100_000


class PlatformError(AvialError):
    """A platform file that cannot be read, or says what this version does not know."""


def read_platform(path: Path) -> Topology:
    """Raises PlatformError; a malformed file with line and column."""
    text = text_of(path, PlatformError)
    entity = re.search(r"<!ENTITY|<!DOCTYPE[^>]*\[", text)
    if entity is not None:
        span = CellSpan.at(entity.start(), text, str(path))
        raise PlatformError(f"{path} declares entities, which are not read", span=span)
    try:
        root = _parsed_with_lines(text)
    except expat.ExpatError as error:
        span = CellSpan(str(path), text, error.lineno, error.offset + 1)
        raise PlatformError(f"{path} is not XML: {error}", span=span) from None
    return topology_on(_Platform(str(path), text).read(root))


_PLACE = "\0place"
"""Of an element: the line and the column where it begins."""


def _parsed_with_lines(text: str) -> ElementTree.Element:
    """Elements that know where they stand, which ElementTree's own do not."""
    builder, parser = ElementTree.TreeBuilder(), expat.ParserCreate()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        place = f"{parser.CurrentLineNumber} {parser.CurrentColumnNumber + 1}"
        builder.start(tag, {**attributes, _PLACE: place})

    parser.StartElementHandler = begin
    parser.EndElementHandler = builder.end
    parser.Parse(text, True)
    return builder.close()


_ZONES = ("Full", "None", "Floyd", "Dijkstra", "DijkstraCache", "Cluster", "RuleBased")
_SHORTEST = ("Floyd", "Dijkstra", "DijkstraCache")
_KNOWN = (
    "platform", "AS", "zone", "host", "link", "cluster", "route", "link_ctn", "router", "config",
    "prop", "disk", "mount", "storage", "storage_type", "model_prop", "content",
)  # fmt: skip
"""(What is said of disks slows nobody here.)"""
_CHANGING = ("availability_file", "speed_file", "state_file", "bandwidth_file", "latency_file",
             "speed_profile", "state_profile", "bandwidth_profile", "latency_profile")  # fmt: skip
MOST_PAIRS = 1_000_000
"""Of hosts, whose shortest ways are found."""


class _Platform:
    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text
        self._at: ElementTree.Element | None = None
        self._routers: set[str] = set()
        self._hosts: set[str] = set()
        self._one_way: set[tuple[str, str]] = set()
        self._nodes: list[Node] = []
        self._links: dict[str, Link] = {}
        self._uplinks: dict[str, tuple[tuple[str, str], ...]] = {}
        self._crossings: dict[str, str] = {}
        self._routes: dict[tuple[str, str], tuple[str, ...]] = {}

    def read(self, root: ElementTree.Element) -> Platform:
        if root.tag != "platform":
            raise self._error(f"<{root.tag}> is not <platform>")
        for element in root.iter():
            self._at = element
            self._check(element)
            if element.tag == "router":
                self._routers.add(self._get(element, "id"))
            elif element.tag == "host":
                self._host(self._get(element, "id"), element)
            elif element.tag == "link":
                link = self._link(self._get(element, "id"), element)
                self._links[link.name] = link
            elif element.tag == "cluster":
                self._cluster(element)
        for element in root.iter("route"):
            self._at = element
            self._route(element)
        self._at = None
        zones = [zone for zone in root.iter() if zone.tag in ("AS", "zone")]
        if any(zone.get("routing") in _SHORTEST for zone in zones):
            self._find_shortest()
        if not self._nodes:
            raise self._error("there are no hosts")
        names = [node.name for node in self._nodes]
        if len(set(names)) < len(names):
            raise self._error("two hosts have the same id")
        return Platform(
            tuple(self._nodes), tuple(self._links.values()), self._name, f"from {self._name}",
            uplinks=self._uplinks, crossings=self._crossings, routes=self._routes,
        )  # fmt: skip

    def _check(self, element: ElementTree.Element) -> None:
        """Refuses what this version would get wrong."""
        if element.tag not in _KNOWN:
            raise self._error(f"<{element.tag}> is not known to this version")
        routing = element.get("routing", "Full")
        if routing not in _ZONES:
            raise self._error(f"a zone is routed by '{routing}', which is not known")
        for name in _CHANGING:
            if name in element.attrib:
                raise self._error(f"<{element.tag}> has a {name}: it changes over time")

    def _find_shortest(self) -> None:
        """From each host to all others, over the routes that there are (Dijkstra)."""
        if len(self._nodes) ** 2 > MOST_PAIRS:
            raise self._error(f"{len(self._nodes):,} hosts are too many to find all ways")
        steps: dict[str, dict[str, tuple[str, ...]]] = {}
        for (source, dest), way in self._routes.items():
            steps.setdefault(source, {})[dest] = way
            if (dest, source) not in self._routes and (source, dest) not in self._one_way:
                steps.setdefault(dest, {})[source] = tuple(reversed(way))
        hosts = [node.name for node in self._nodes]
        found: dict[tuple[str, str], tuple[str, ...]] = {}
        for source in hosts:
            ways = _shortest(steps, source)
            for dest in hosts:
                if dest != source and dest in ways and (dest, source) not in found:
                    found[source, dest] = ways[dest]
        self._routes = found

    def _host(self, name: str, element: ElementTree.Element) -> None:
        """Memories are unknown to SimGrid: they slow nobody here."""
        speeds = self._get(element, "speed").split(",")  # one for each state of its power
        state = self._whole(element.get("pstate", "0"), "pstate", least=0)
        if state >= len(speeds):
            raise self._error(f"'{name}' begins in state {state} of {len(speeds)}")
        speed = self._parsed(speeds[state].strip(), f"<{element.tag}> speed", Quantity.FLOPS)
        cores = self._whole(element.get("core", "1"), "core")
        # What a task costs is given in a core's speed, all of it.
        self._nodes.append(Node(name, cores, speed, 1e15, 1e15, 0))
        self._hosts.add(name)

    def _link(self, name: str, element: ElementTree.Element) -> Link:
        policy = element.get("sharing_policy", "SHARED")
        if policy not in ("SHARED", "SPLITDUPLEX", "FATPIPE"):
            raise self._error(f"link '{name}' has the sharing policy '{policy}'")
        latency_s = self._latency_s(element.get("latency", "0s"), "latency")
        return Link(
            name,
            self._quantity(element, "bandwidth", Quantity.BYTES_PER_S),
            latency_s,
            duplex=policy == "SPLITDUPLEX",
            shared=policy != "FATPIPE",
        )

    def _cluster(self, element: ElementTree.Element) -> None:
        """Hosts on one switch, with a backbone where it has one; a fat tree has no bottleneck."""
        name = self._get(element, "id")
        topology = element.get("topology", "FLAT")
        if topology not in ("FLAT", "FAT_TREE"):
            raise self._error(f"cluster '{name}' has the topology '{topology}'")
        backbone = ""
        if element.get("bb_bw") is not None:
            bandwidth = self._quantity(element, "bb_bw", Quantity.BYTES_PER_S)
            latency_s = self._latency_s(element.get("bb_lat", "0s"), "bb_lat")
            shared = element.get("bb_sharing_policy", "SHARED") != "FATPIPE"
            backbone = f"{name}-backbone"
            self._links[backbone] = Link(
                backbone, bandwidth, latency_s, duplex=False, shared=shared
            )
        prefix, suffix = element.get("prefix", ""), element.get("suffix", "")
        for number in self._radical(self._get(element, "radical")):
            host = f"{prefix}{number}{suffix}"
            self._host(host, element)
            if len(self._nodes) > MOST_HOSTS:
                raise self._error(f"there are more than {MOST_HOSTS:,} hosts")
            link = Link(
                f"{host}-link",
                self._quantity(element, "bw", Quantity.BYTES_PER_S),
                self._latency_s(self._get(element, "lat"), "lat"),
                duplex=element.get("sharing_policy", "SPLITDUPLEX") == "SPLITDUPLEX",
            )
            self._links[link.name] = link
            self._uplinks[host] = ((name, link.name),)
        if backbone:
            self._crossings[name] = backbone

    def _route(self, element: ElementTree.Element) -> None:
        source, dest = self._get(element, "src"), self._get(element, "dst")
        for name in (source, dest):
            if name not in self._hosts and name not in self._routers:
                raise self._error(f"a route leads to '{name}', which is no host and no router")
        way: list[str] = []
        ways = {link.get("direction", "UP") for link in element.findall("link_ctn")}
        if len(ways) > 1:
            raise self._error("a route goes through links up and down, which is not known")
        for link in element.findall("link_ctn"):
            name = self._get(link, "id")
            if name not in self._links:
                raise self._error(f"the route from '{source}' to '{dest}' has no link '{name}'")
            way.append(name)
        if ways == {"DOWN"}:  # as its way back goes up
            source, dest, way = dest, source, way[::-1]
        self._routes[source, dest] = tuple(way)
        # (The way back is that way back, in the other direction of its links.)
        if element.get("symmetrical", "YES").upper() == "NO":
            self._one_way.add((source, dest))

    def _radical(self, text: str) -> Iterator[int]:
        """`0-3,7`."""
        for part in text.split(","):
            first, _, last = part.partition("-")
            low = self._whole(first, "radical", least=0)
            high = self._whole(last, "radical", least=0) if last else low
            if not low <= high < low + MOST_HOSTS:
                raise self._error(f"the radical '{part}' has no, or too many, numbers")
            yield from range(low, high + 1)

    def _get(self, element: ElementTree.Element, key: str) -> str:
        value = element.get(key)
        if not value:
            raise self._error(f"<{element.tag}> has no '{key}'")
        return value

    def _quantity(self, element: ElementTree.Element, key: str, quantity: Quantity) -> float:
        return self._parsed(self._get(element, key), f"<{element.tag}> {key}", quantity)

    def _parsed(self, text: str, what: str, quantity: Quantity) -> float:
        try:
            return parsed(text, quantity)
        except UnitError as error:
            raise self._error(f"{what}: {error}") from None

    def _latency_s(self, text: str, what: str) -> float:
        """It may be 0."""
        if re.fullmatch(r"0+(\.0*)?\s*[a-zµ]*", text.strip()):
            return 0.0
        return self._parsed(text, what, Quantity.SECONDS)

    def _whole(self, text: str, what: str, *, least: int = 1) -> int:
        if not re.fullmatch(r"[0-9]{1,18}", text.strip()) or int(text) < least:
            raise self._error(f"{what} is a whole number from {least} on, not '{text}'")
        return int(text)

    def _error(self, message: str) -> PlatformError:
        if self._at is None:
            return PlatformError(f"{self._name}: {message}")
        line, column = map(int, self._at.attrib[_PLACE].split())
        return PlatformError(message, span=CellSpan(self._name, self._text, line, column))


def _shortest(
    steps: Mapping[str, Mapping[str, tuple[str, ...]]], source: str
) -> dict[str, tuple[str, ...]]:
    """The links to each place that can be reached, as few as there are; first come, first kept."""
    found: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[int, int, str, tuple[str, ...]]] = [(0, 0, source, ())]
    pushed = 1
    while waiting:
        _, _, place, way = heappop(waiting)
        if place in found:
            continue
        found[place] = way
        for dest, more in steps.get(place, {}).items():
            if dest not in found:
                heappush(waiting, (len(way) + len(more), pushed, dest, way + more))
                pushed += 1
    return found

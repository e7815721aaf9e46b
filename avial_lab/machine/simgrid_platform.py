"""A machine from a platform file of SimGrid: hosts, links, routes and clusters.

Path -> Topology: a rank on each host. XML with entities is refused, and nothing else is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

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
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        line, column = error.position
        span = CellSpan(str(path), text, line, column + 1)
        raise PlatformError(f"{path} is not XML: {error}", span=span) from None
    return topology_on(_Platform(str(path)).read(root))


class _Platform:
    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[Node] = []
        self._links: dict[str, Link] = {}
        self._uplinks: dict[str, tuple[tuple[str, str], ...]] = {}
        self._crossings: dict[str, str] = {}
        self._routes: dict[tuple[str, str], tuple[str, ...]] = {}

    def read(self, root: ElementTree.Element) -> Platform:
        if root.tag != "platform":
            raise self._error(f"<{root.tag}> is not <platform>")
        for element in root.iter():
            if element.tag == "host":
                self._host(self._get(element, "id"), element)
            elif element.tag == "link":
                link = self._link(self._get(element, "id"), element)
                self._links[link.name] = link
            elif element.tag == "cluster":
                self._cluster(element)
            elif element.tag in ("zoneRoute", "ASroute", "bypassRoute", "cabinet", "peer"):
                raise self._error(f"<{element.tag}> is not known to this version")
        for element in root.iter("route"):
            self._route(element)
        if not self._nodes:
            raise self._error("there are no hosts")
        names = [node.name for node in self._nodes]
        if len(set(names)) < len(names):
            raise self._error("two hosts have the same id")
        return Platform(
            tuple(self._nodes), tuple(self._links.values()), self._name, f"from {self._name}",
            uplinks=self._uplinks, crossings=self._crossings, routes=self._routes,
        )  # fmt: skip

    def _host(self, name: str, element: ElementTree.Element) -> None:
        """Memories are unknown to SimGrid: they slow nobody here."""
        speed = self._quantity(element, "speed", Quantity.FLOPS)
        cores = self._whole(element.get("core", "1"), "core")
        # What a task costs is given in a core's speed, all of it.
        self._nodes.append(Node(name, cores, speed, 1e15, 1e15, 0))

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
        known = {node.name for node in self._nodes}
        for name in (source, dest):
            if name not in known:
                raise self._error(f"a route leads to '{name}', which is no host")
        way: list[str] = []
        for link in element.findall("link_ctn"):
            name = self._get(link, "id")
            if name not in self._links:
                raise self._error(f"the route from '{source}' to '{dest}' has no link '{name}'")
            way.append(name)
        self._routes[source, dest] = tuple(way)
        if element.get("symmetrical", "YES").upper() == "YES":
            self._routes.setdefault((dest, source), tuple(reversed(way)))

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
        return PlatformError(f"{self._name}: {message}")

"""The machine: nodes with their sockets, cores, memories and GPUs, and the links between them.

Topology -> SVG. What is alike is drawn a few times; the note says how often it is there.

        spine ───────────────            a bar for each level of groups
          │ 400 GB/s, 500 ns
        leaf0 ───────────────
          │        │ 12.5 GB/s, 500 ns   a line for each link
       ┌ n0 ──┐ ┌ n1 ──┐
       │ ▢▢▢▢ │ │ ▢▢▢▢ │  … 1,022 more   cores, in the colour of their rank
       └──────┘ └──────┘
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from avial_lab.core.words import count, format_bytes, format_seconds
from avial_lab.machine.alike import named, node_kinds
from avial_lab.machine.devices import CUDA
from avial_lab.machine.platform import Link, Node, Platform
from avial_lab.machine.topology import Topology
from avial_lab.machine.units import Quantity, written
from avial_lab.plot import svg
from avial_lab.plot.frame import LegendItem, device_item, framed, wrap
from avial_lab.plot.palette import GREEN, MESSAGE, SKY, ink_on, rank_colour, tinted

MOST_NODES = 4
MOST_CORES = 64
MOST_GPUS = 8

_WIDTH = 740.0
_GAP = 18.0
_PAD = 12.0
_CORE = 15.0
_ROW = 17.0
_BAR = 24.0
_RISE = 44.0
_WIDEST = 400.0


def topology_svg(topology: Topology) -> str:
    """A card with the machine; every name on it is escaped."""
    platform = topology.speeds
    shown = _shown(platform)
    width = min(_WIDEST, (_WIDTH - _GAP * (len(shown) - 1)) / len(shown))
    boxes = [_NodeBox(topology, node, width) for node in shown]
    lefts = [k * (width + _GAP) for k in range(len(shown))]
    across = lefts[-1] + width
    middles = {node.name: left + width / 2 for node, left in zip(shown, lefts, strict=True)}
    net, top = _network(platform, shown, middles, across)
    tall = max(box.height for box in boxes)
    shapes = [net, *(svg.moved(box.shapes, at, top) for at, box in zip(lefts, boxes, strict=True))]
    return framed(
        "".join(shapes),
        across,
        top + tall,
        title=platform.label,
        summary=_summary(topology),
        description=str(topology),
        legend=_legend(shown),
        notes=_notes(platform, shown),
    )


def _summary(topology: Topology) -> str:
    nodes = count(len(topology.speeds.nodes), "node")
    return f"{nodes}, {count(topology.ranks, 'rank')}: {topology.kinds}; {topology.speeds.source}"


def _shown(platform: Platform) -> list[Node]:
    """All nodes where they are few; else the first of each kind, the second one and the last."""
    nodes = platform.nodes
    if len(nodes) <= MOST_NODES:
        return list(nodes)
    firsts = [kind.names[0] for kind in node_kinds(platform)]
    names = list(dict.fromkeys([*firsts, nodes[1].name, nodes[-1].name]))[:MOST_NODES]
    return [node for node in nodes if node.name in names]


def _notes(platform: Platform, shown: Sequence[Node]) -> list[str]:
    if len(shown) == len(platform.nodes):
        return []
    kinds = "; ".join(named(kind.names, "node") for kind in node_kinds(platform)[:6])
    return [f"Drawn: {len(shown)} of {count(len(platform.nodes), 'node')} ({kinds}, alike)."]


def _legend(shown: Sequence[Node]) -> list[LegendItem]:
    core = svg.rectangle(6, 0, 14, 14, fill=rank_colour(0), radius=3)
    items = [LegendItem(core, "a core, in its rank's colour")]
    if any(node.accelerators for node in shown):
        items.append(device_item(CUDA.look))
    items.append(LegendItem(svg.line(0, 7, 26, 7, stroke=MESSAGE, width=2.5), "a link"))
    return items


# Nodes --------------------------------------------------------------------------------------------


@dataclass
class _NodeBox:
    """What a node has, from the top down; `shapes` begin at (0, 0)."""

    topology: Topology
    node: Node
    width: float

    def __post_init__(self) -> None:
        self._at, self._inside = 26.0, list[str]()
        self._cores()
        self._memory()
        self._accelerators()
        self._link()
        self.height = self._at + 4

    @property
    def shapes(self) -> str:
        name = svg.shorten(self.node.name, self.width - 2 * _PAD, 13, bold=True)
        box = svg.rectangle(
            0, 0, self.width, self.height, fill=svg.BAND, stroke=svg.QUIET, radius=7
        )
        title = svg.text(_PAD, 18, name, size=13, bold=True)
        return svg.group(box + title + "".join(self._inside), label="node")

    def _line(self, words: str) -> None:
        """One line of text, or as many as it takes."""
        room = self.width - 2 * _PAD
        for row in wrap(words, room, 11):
            self._at += _ROW
            fits = svg.shorten(row, room, 11)
            self._inside.append(svg.text(_PAD, self._at - 5, fits, size=11, fill=svg.QUIET))

    def _cores(self) -> None:
        """By sockets, or by the memories that they are near to; each core in the colour of its
        rank, whose number stands on the first.
        """
        node = self.node
        ranks = [r for r, name in enumerate(self.topology.node_of) if name == node.name]
        each = max(1, node.cores // max(len(ranks), 1))
        shown = min(node.cores, MOST_CORES)
        columns = max(1, int((self.width - 2 * _PAD - 8) / _CORE))
        at_core = [k * node.cores // shown for k in range(shown)]  # where only some are drawn
        for part in range(len(node.domains) or node.sockets):
            mine = [
                k
                for k, core in enumerate(at_core)
                if (node.domain_of(core) if node.domains else k * node.sockets // shown) == part
            ]
            rows = -(-len(mine) // columns)
            tall = rows * _CORE + 6
            if mine:
                self._inside.append(
                    svg.rectangle(
                        *(_PAD, self._at, self.width - 2 * _PAD, tall),
                        fill=svg.PAPER,
                        stroke=svg.LINE,
                        radius=4,
                    )
                )
            for place, core in enumerate(mine):
                at = at_core[core]
                rank = ranks[at // each] if at // each < len(ranks) else None
                x = _PAD + 4 + place % columns * _CORE
                y = self._at + 4 + place // columns * _CORE
                self._inside.append(self._core(x, y, rank, first=at % each == 0))
            self._at += tall + 5
            if node.domains:
                domain = node.domains[part]
                size = f"{format_bytes(domain.memory_bytes)}, " if domain.memory_bytes else ""
                rate = written(domain.memory_bytes_per_s, Quantity.BYTES_PER_S)
                self._line(f"near to {size}{rate}")
        sockets = f" in {count(node.sockets, 'socket')}" if node.sockets > 1 else ""
        drawn = f", {shown} drawn" if shown < node.cores else ""
        rate = written(node.core_flops_per_s, Quantity.FLOPS)
        self._line(f"{count(node.cores, 'core')}{sockets}{drawn}, {rate} each")

    def _core(self, x: float, y: float, rank: int | None, *, first: bool) -> str:
        side = _CORE - 3
        if rank is None:
            return svg.rectangle(x, y, side, side, fill=svg.PAPER, stroke=svg.LINE, radius=3)
        colour = rank_colour(rank)
        shape = svg.rectangle(x, y, side, side, fill=colour, radius=3)
        if first and rank < 100:
            middle = x + side / 2
            number = svg.text(
                middle, y + 9, str(rank), size=8, fill=ink_on(colour), bold=True, anchor="middle"
            )
            return shape + number
        return shape

    def _memory(self) -> None:
        node = self.node
        size = f"{format_bytes(node.memory_bytes)}, " if node.memory_bytes else ""
        words = f"memory {size}{written(node.memory_bytes_per_s, Quantity.BYTES_PER_S)}"
        words += f" in {len(node.domains)} domains" if node.domains else ""
        self._at += 2
        room = self.width - 2 * _PAD - 12
        rows = wrap(words, room, 11)
        self._inside.append(
            svg.rectangle(
                *(_PAD, self._at, self.width - 2 * _PAD, 15 * len(rows) + 5),
                fill=tinted(SKY, 0.35),
                stroke=SKY,
                radius=4,
            )
        )
        for k, row in enumerate(rows):
            fits = svg.shorten(row, room, 11)
            self._inside.append(svg.text(_PAD + 6, self._at + 14 + 15 * k, fits, size=11))
        self._at += 15 * len(rows) + 7
        self._line(f"a core's share {written(node.core_bytes_per_s, Quantity.BYTES_PER_S)}")
        for room, rate in node.caches:
            self._line(f"cache {format_bytes(room)}, {written(rate, Quantity.BYTES_PER_S)}")

    def _accelerators(self) -> None:
        gpus, look = self.node.accelerators, CUDA.look
        if not gpus:
            return
        self._at += 4
        x = _PAD
        for _ in gpus[:MOST_GPUS]:
            if x + 30 > self.width - _PAD:
                x, self._at = _PAD, self._at + 19
            self._inside.append(svg.moved(device_item(look).mark, x, self._at))
            x += 32
        self._at += 16
        gpu = gpus[0]
        self._line(
            f"{count(len(gpus), 'GPU')} ({gpu.arch}), {written(gpu.flops_per_s, Quantity.FLOPS)}"
        )
        rate = written(gpu.memory_bytes_per_s, Quantity.BYTES_PER_S)
        self._line(f"each with {format_bytes(gpu.memory_bytes)}, {rate}")
        rate = written(gpu.host_bytes_per_s, Quantity.BYTES_PER_S)
        self._line(f"its link to the node {rate}, {format_seconds(gpu.host_latency_s)}")

    def _link(self) -> None:
        platform = self.topology.speeds
        name = platform.inside.get(self.node.name)
        if name is None:
            return
        link = platform.link(name)
        self._at += 4
        self._inside.append(
            svg.line(_PAD, self._at, self.width - _PAD, self._at, stroke=MESSAGE, width=2.5)
        )
        self._line(f"{link.kind}: {_rate(link)}")


# The network --------------------------------------------------------------------------------------


def _rate(link: Link) -> str:
    rate = written(link.bandwidth_bytes_per_s, Quantity.BYTES_PER_S)
    return f"{rate}, {format_seconds(link.latency_s)}"


def _network(
    platform: Platform, shown: Sequence[Node], middles: dict[str, float], across: float
) -> tuple[str, float]:
    """Shapes above the nodes, and how far down they reach."""
    if platform.routes:
        return _ways(platform, shown, middles)
    levels = max((len(platform.uplinks.get(node.name, ())) for node in shown), default=0)
    shapes: list[str] = []
    for level in range(levels):
        # From the bottom up: the bar of level 0 is the lowest.
        y = (levels - 1 - level) * (_BAR + _RISE)
        groups: dict[str, list[tuple[float, str]]] = {}
        for node in shown:
            way = platform.uplinks.get(node.name, ())
            if level < len(way):
                groups.setdefault(way[level][0], []).append((middles[node.name], way[level][1]))
        for group, ends in groups.items():
            shapes.append(_bar(platform, group, ends, y, across, alone=len(groups) == 1))
    return "".join(shapes), levels * (_BAR + _RISE)


def _bar(
    platform: Platform, group: str, ends: Sequence[tuple[float, str]], y: float, across: float,
    *, alone: bool,
) -> str:  # fmt: skip
    """A group and the links up to it, the same one once."""
    low = 0.0 if alone else min(x for x, _ in ends) - 60
    high = across if alone else max(x for x, _ in ends) + 60
    crossed = platform.crossings.get(group)
    words = f"{group}, through it {_rate(platform.link(crossed))}" if crossed else group
    shapes = [
        svg.rectangle(low, y, high - low, _BAR, fill=tinted(GREEN, 0.18), stroke=MESSAGE, radius=6),
        svg.text(
            (low + high) / 2, y + 16, svg.shorten(words, high - low - 16, 12, bold=True),
            size=12, bold=True, anchor="middle",
        ),
    ]  # fmt: skip
    for k, (x, name) in enumerate({name: (x, name) for x, name in reversed(ends)}.values()):
        shapes.append(svg.line(x, y + _BAR, x, y + _BAR + _RISE, stroke=MESSAGE, width=2.5))
        if name and (k == 0 or len(ends) <= MOST_NODES):
            link = platform.link(name)
            for row, words in enumerate((link.kind, _rate(link))):
                label = svg.shorten(words, 110, 11)
                at = y + _BAR + 19 + 14 * row
                shapes.append(svg.text(x + 6, at, label, size=11, halo=True))
    return "".join(shapes)


def _ways(
    platform: Platform, shown: Sequence[Node], middles: dict[str, float]
) -> tuple[str, float]:
    """A bracket for each pair that a way leads between, the slowest of its links beside it."""
    shapes: list[str] = []
    pairs = [
        (a.name, b.name, hops)
        for a, b in combinations(shown, 2)
        if (hops := platform.hops(a.name, b.name))
    ]
    top = len(pairs) * 30.0 + 8
    for k, (a, b, hops) in enumerate(pairs):
        y, shift = top - (k + 1) * 30.0 + 14, (k - len(pairs) / 2) * 7
        x1, x2 = middles[a] + shift, middles[b] + shift
        left, right, low, high = (svg.number(value) for value in (x1, x2, top, y))
        way = f"M{left} {low}V{high}H{right}V{low}"
        shapes.append(svg.path(way, stroke=MESSAGE, width=2))
        rate = written(platform.bandwidth_bytes_per_s(hops), Quantity.BYTES_PER_S)
        words = f"{', '.join(name for name, _ in hops)}: {rate}, " + format_seconds(
            platform.latency_s(hops)
        )
        fits = svg.shorten(words, max(abs(x2 - x1) - 12, 60), 11)
        shapes.append(svg.text(min(x1, x2) + 8, y - 4, fits, size=11, halo=True))
    return "".join(shapes), top

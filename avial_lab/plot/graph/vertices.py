"""Boxes and arrows of a task graph: how a task, a group of tasks, a dependency look.

Words, a Look and a place -> SVG shapes. `planning/task_graph.py` and `nested.py` say where they
stand.
"""

from __future__ import annotations

from dataclasses import dataclass

from avial_lab.core.words import format_bytes
from avial_lab.machine.devices import Look
from avial_lab.planning.task_graph import Dependency
from avial_lab.plot import svg
from avial_lab.plot.palette import GREY, MESSAGE, outline

WIDEST_BOX = 230.0


@dataclass(frozen=True)
class Vertex:
    """A box to draw: a task, or (`stacked`) a group of tasks alike."""

    title: str
    lines: tuple[str, ...]
    look: Look
    level: int
    tooltip: str
    stacked: bool = False
    critical: bool = False

    @property
    def width(self) -> float:
        words = max(
            svg.text_width(self.title, 13, bold=True),
            *(svg.text_width(line, 11) for line in self.lines),
            60.0,
        )
        return min(words + 40, WIDEST_BOX)

    @property
    def height(self) -> float:
        return 26.0 + 15 * len(self.lines)


@dataclass(frozen=True)
class Link:
    """An arrow to draw: every dependency between two boxes at once.

    `message`: bytes are sent for it; `data`: some value flows along it (not merely an order);
    `critical`: it is a step of the critical path.
    """

    tail: int
    head: int
    label: tuple[str, ...]
    tooltip: str
    message: bool
    data: bool
    critical: bool = False


def edge_words(edge: Dependency) -> str:
    if not edge.buffer:
        return edge.hazard.value
    return f"{edge.hazard.value} {edge.buffer} {format_bytes(edge.nbytes)}"


def arrow_of(link: Link, curve: tuple[tuple[float, float], ...]) -> str:
    """Green and bold where bytes are sent, dotted where only the order counts; dark and bold, or
    green on dark, where it is critical.
    """
    if link.message:
        under = svg.arrow(curve, stroke=svg.INK, width=5.6) if link.critical else ""
        return under + svg.arrow(curve, stroke=MESSAGE, width=2.6)
    stroke, width = (svg.INK, 3.6) if link.critical else (GREY, 1.4)
    return svg.arrow(curve, stroke=stroke, width=width, dash="" if link.data else "3 3")


def box_of(vertex: Vertex, center: tuple[float, float]) -> str:
    """The box around its center, with its title and lines."""
    x, y = center[0] - vertex.width / 2, center[1] - vertex.height / 2
    behind = (
        "".join(outline(vertex.look, x + d, y + d, vertex.width, vertex.height) for d in (6, 3))
        if vertex.stacked
        else ""
    )
    room = vertex.width - 36
    shapes = outline(vertex.look, x, y, vertex.width, vertex.height, bold=vertex.critical)
    shapes += svg.text(
        x + 27, y + 18, svg.shorten(vertex.title, room, 13, bold=True), size=13, bold=True
    )
    for k, words in enumerate(vertex.lines):
        shapes += svg.text(
            x + 27, y + 34 + 15 * k, svg.shorten(words, room, 11), size=11, fill=svg.QUIET
        )
    return svg.group(behind + shapes, title=vertex.tooltip, label="task")


def label_of(link: Link, at: tuple[float, float]) -> str:
    """The words of an arrow around a point."""
    colour = "#00664a" if link.message else svg.QUIET
    top = at[1] - 7 * len(link.label) + 10
    return "".join(
        svg.text(
            at[0],
            top + 14 * k,
            words,
            size=11,
            fill=colour,
            anchor="middle",
            halo=True,
            bold=link.message,
        )
        for k, words in enumerate(link.label)
    )


def label_size(label: tuple[str, ...]) -> tuple[float, float]:
    """Width and height in pixels."""
    return max(svg.text_width(words, 11, bold=True) for words in label) + 8, 14.0 * len(label) + 4

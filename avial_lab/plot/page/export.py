"""A program's picture as a file, for papers, slides and other tools.

TaskGraph (Schedule, Trace) -> bytes in one of the formats `svg`, `png`, `dot`, `json`, `text`.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from avial_lab.core.errors import BindError
from avial_lab.planning.graph_facts import graph_text
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot.graph.dag import dag_svg
from avial_lab.plot.graph.dot import dag_dot
from avial_lab.plot.graph.graph_file import graph_json
from avial_lab.plot.graph.lanes import lanes_svg
from avial_lab.plot.page.fonts import sans_serif
from avial_lab.trace import Trace

PNG_SCALE = 2.0
"""Pixels a point: sharp on paper and on dense screens."""

FORMATS = ("text", "json", "dot", "svg", "png")


def exported(
    form: str,
    graph: TaskGraph,
    schedule: Schedule | None = None,
    trace: Trace | None = None,
    *,
    lanes: bool = False,
) -> bytes:
    """The graph by level or, where it is placed, its `lanes`. DOT is of the graph, JSON and text
    have both.
    """
    if form not in FORMATS:
        raise BindError(f"there is no format '{form}'", hint=f"there are: {', '.join(FORMATS)}")
    if lanes and schedule is None:
        raise BindError("lanes need a placed program", hint="give -n RANKS")

    def picture() -> str:
        if lanes and schedule is not None:
            return lanes_svg(schedule, trace)
        return dag_svg(graph, schedule, trace)

    if form == "png":
        return png(picture())
    makers: dict[str, Callable[[], str]] = {
        "text": lambda: graph_text(graph, schedule, trace),
        "json": lambda: json.dumps(graph_json(graph, schedule), indent=1, ensure_ascii=False),
        "dot": lambda: dag_dot(graph),
        "svg": picture,
    }
    return f"{makers[form]()}\n".encode()


def png(picture: str) -> bytes:
    """The SVG as pixels, drawn by resvg without a browser; BindError where that, or a font, is
    missing.
    """
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise BindError(
            "drawing a PNG needs the package resvg-py",
            hint="pip install 'avial-lab[png]', or save an .svg",
        ) from None
    family, files = sans_serif()
    if not files:
        # resvg leaves words out without a word where it finds no font.
        raise BindError(
            "a PNG would have no text: this machine has no fonts",
            hint="install some (fonts-liberation, fonts-dejavu), or save an .svg",
        )
    # What it finds by itself stays, for letters that this family does not have.
    return svg_to_bytes(
        svg_string=picture,
        zoom=PNG_SCALE,
        font_files=list(files),
        font_family=family,
        sans_serif_family=family,
    )

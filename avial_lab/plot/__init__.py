"""Pictures and pages: pure functions, object -> SVG, HTML or text.

Every picture is escaped, sized below 1 MB, the same for the same input, and says what it hides.

Names are loaded when they are first used: a run that draws nothing starts without what colours
code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from avial_lab.artifact.explanation import dependence_table, nest_text
    from avial_lab.artifact.plan_facts import plan_text, split_table
    from avial_lab.artifact.stages import stage_text
    from avial_lab.planning.graph_facts import graph_text
    from avial_lab.plot.code import highlighted, stage_html
    from avial_lab.plot.dag import dag_svg
    from avial_lab.plot.dot import dag_dot
    from avial_lab.plot.explained import explained_html, explained_table
    from avial_lab.plot.export import FORMATS, exported
    from avial_lab.plot.figure import (
        dag_figure,
        figure_html,
        held_figure,
        lanes_figure,
        messages_figure,
        nest_figure,
        roofline_figure,
        split_figure,
        timeline_figure,
    )
    from avial_lab.plot.film import Film, film_figure, film_text
    from avial_lab.plot.graph_file import graph_from_json, graph_json
    from avial_lab.plot.lanes import lanes_svg
    from avial_lab.plot.messages import held_svg, messages_svg
    from avial_lab.plot.report import Told, report_html
    from avial_lab.plot.roofline import Point, Roofline, roofline_svg, roofline_text
    from avial_lab.plot.space import nest_svg, worth_drawing
    from avial_lab.plot.split import split_svg
    from avial_lab.plot.timeline import timeline_svg
    from avial_lab.trace.run_facts import trace_text

_HOME = {  # in this package; with a dot in front, beside it
    "FORMATS": "export",
    "Film": "film",
    "Point": "roofline",
    "Roofline": "roofline",
    "Told": "report",
    "dag_dot": "dot",
    "dag_figure": "figure",
    "dag_svg": "dag",
    "dependence_table": ".artifact.explanation",
    "explained_html": "explained",
    "explained_table": "explained",
    "exported": "export",
    "figure_html": "figure",
    "film_figure": "film",
    "film_text": "film",
    "graph_from_json": "graph_file",
    "graph_json": "graph_file",
    "graph_text": ".planning.graph_facts",
    "held_figure": "figure",
    "held_svg": "messages",
    "highlighted": "code",
    "lanes_figure": "figure",
    "lanes_svg": "lanes",
    "messages_figure": "figure",
    "messages_svg": "messages",
    "nest_figure": "figure",
    "nest_svg": "space",
    "nest_text": ".artifact.explanation",
    "plan_text": ".artifact.plan_facts",
    "report_html": "report",
    "roofline_figure": "figure",
    "roofline_svg": "roofline",
    "roofline_text": "roofline",
    "split_figure": "figure",
    "split_svg": "split",
    "split_table": ".artifact.plan_facts",
    "stage_html": "code",
    "stage_text": ".artifact.stages",
    "timeline_figure": "figure",
    "timeline_svg": "timeline",
    "trace_text": ".trace.run_facts",
    "worth_drawing": "space",
}

__all__ = [
    "FORMATS",
    "Film",
    "Point",
    "Roofline",
    "Told",
    "dag_dot",
    "dag_figure",
    "dag_svg",
    "dependence_table",
    "explained_html",
    "explained_table",
    "exported",
    "figure_html",
    "film_figure",
    "film_text",
    "graph_from_json",
    "graph_json",
    "graph_text",
    "held_figure",
    "held_svg",
    "highlighted",
    "lanes_figure",
    "lanes_svg",
    "messages_figure",
    "messages_svg",
    "nest_figure",
    "nest_svg",
    "nest_text",
    "plan_text",
    "report_html",
    "roofline_figure",
    "roofline_svg",
    "roofline_text",
    "split_figure",
    "split_svg",
    "split_table",
    "stage_html",
    "stage_text",
    "timeline_figure",
    "timeline_svg",
    "trace_text",
    "worth_drawing",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", "avial_lab.plot"), name)
    raise AttributeError(f"module 'avial_lab.plot' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

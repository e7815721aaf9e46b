"""Pictures and pages: pure functions, object -> SVG, HTML or text.

Every picture is escaped, sized below 1 MB, the same for the same input, and says what it hides.

Names are loaded when they are first used: a run that draws nothing starts without what colours
code.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING

from avial_lab.core.errors import RenamedWarning

if TYPE_CHECKING:
    from avial_lab.artifact.explanation import dependence_table, nest_text
    from avial_lab.artifact.plan_facts import plan_text, split_table
    from avial_lab.artifact.stages import stage_text
    from avial_lab.planning.graph_facts import graph_text
    from avial_lab.plot.graph.dag import dag_svg
    from avial_lab.plot.graph.dot import dag_dot
    from avial_lab.plot.graph.graph_file import graph_from_json, graph_json
    from avial_lab.plot.graph.lanes import lanes_svg
    from avial_lab.plot.graph.machine import topology_svg
    from avial_lab.plot.loops.explained import explained_html, explained_table
    from avial_lab.plot.loops.space import nest_svg, worth_drawing
    from avial_lab.plot.loops.split import split_svg
    from avial_lab.plot.page.code import highlighted, stage_html
    from avial_lab.plot.page.export import FORMATS, exported
    from avial_lab.plot.page.figure import (
        comparison_figure,
        dag_figure,
        figure_html,
        foreseen_figure,
        held_figure,
        lanes_figure,
        messages_figure,
        nest_figure,
        roofline_figure,
        scaling_figure,
        split_figure,
        timeline_figure,
    )
    from avial_lab.plot.page.prediction import prediction_html
    from avial_lab.plot.page.report import Reported, report_html
    from avial_lab.plot.run.film import Film, film_figure, film_text
    from avial_lab.plot.run.messages import held_svg, messages_svg
    from avial_lab.plot.run.pipeline import foreseen_text
    from avial_lab.plot.run.roofline import Point, Roofline, roofline_svg, roofline_text
    from avial_lab.plot.run.scaling import scaling_svg
    from avial_lab.plot.run.timeline import timeline_svg
    from avial_lab.trace.run_facts import trace_text

_HOME = {  # in this package; with a dot in front, beside it
    "FORMATS": "page.export",
    "Film": "run.film",
    "Point": "run.roofline",
    "Roofline": "run.roofline",
    "Reported": "page.report",
    "comparison_figure": "page.figure",
    "dag_dot": "graph.dot",
    "dag_figure": "page.figure",
    "dag_svg": "graph.dag",
    "dependence_table": ".artifact.explanation",
    "explained_html": "loops.explained",
    "explained_table": "loops.explained",
    "exported": "page.export",
    "figure_html": "page.figure",
    "foreseen_figure": "page.figure",
    "film_figure": "run.film",
    "film_text": "run.film",
    "foreseen_text": "run.pipeline",
    "graph_from_json": "graph.graph_file",
    "graph_json": "graph.graph_file",
    "graph_text": ".planning.graph_facts",
    "held_figure": "page.figure",
    "held_svg": "run.messages",
    "highlighted": "page.code",
    "lanes_figure": "page.figure",
    "lanes_svg": "graph.lanes",
    "messages_figure": "page.figure",
    "messages_svg": "run.messages",
    "nest_figure": "page.figure",
    "nest_svg": "loops.space",
    "nest_text": ".artifact.explanation",
    "plan_text": ".artifact.plan_facts",
    "prediction_html": "page.prediction",
    "report_html": "page.report",
    "roofline_figure": "page.figure",
    "roofline_svg": "run.roofline",
    "roofline_text": "run.roofline",
    "scaling_figure": "page.figure",
    "scaling_svg": "run.scaling",
    "split_figure": "page.figure",
    "split_svg": "loops.split",
    "split_table": ".artifact.plan_facts",
    "stage_html": "page.code",
    "stage_text": ".artifact.stages",
    "timeline_figure": "page.figure",
    "timeline_svg": "run.timeline",
    "topology_svg": "graph.machine",
    "trace_text": ".trace.run_facts",
    "worth_drawing": "loops.space",
}

__all__ = [
    "FORMATS",
    "Film",
    "Point",
    "Roofline",
    "Reported",
    "comparison_figure",
    "dag_dot",
    "dag_figure",
    "dag_svg",
    "dependence_table",
    "explained_html",
    "explained_table",
    "exported",
    "figure_html",
    "foreseen_figure",
    "foreseen_text",
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
    "prediction_html",
    "report_html",
    "roofline_figure",
    "roofline_svg",
    "roofline_text",
    "scaling_figure",
    "scaling_svg",
    "split_figure",
    "split_svg",
    "split_table",
    "stage_html",
    "stage_text",
    "timeline_figure",
    "timeline_svg",
    "topology_svg",
    "trace_text",
    "worth_drawing",
]


_RENAMED = {"Told": "Reported"}  # their old names work for one release


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        now = _RENAMED[name]
        words = f"avial_lab.plot.{name} is called {now} now"
        warnings.warn(words, RenamedWarning, stacklevel=2)
        return __getattr__(now)
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", "avial_lab.plot"), name)
    raise AttributeError(f"module 'avial_lab.plot' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

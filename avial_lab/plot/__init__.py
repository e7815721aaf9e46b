"""Pictures and pages: pure functions, object -> SVG, HTML or text.

Every picture is escaped, sized below 1 MB, the same for the same input, and says what it hides.
"""

from avial_lab.plot.code import highlighted, stage_html, stage_text
from avial_lab.plot.dag import dag_svg
from avial_lab.plot.dot import dag_dot
from avial_lab.plot.explained import explained_html, explained_table
from avial_lab.plot.export import FORMATS, exported
from avial_lab.plot.facts import graph_text
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
from avial_lab.plot.graph_json import graph_from_json, graph_json
from avial_lab.plot.lanes import lanes_svg
from avial_lab.plot.messages import held_svg, messages_svg, plan_text
from avial_lab.plot.report import Told, report_html
from avial_lab.plot.roofline import Point, Roofline, roofline_svg, roofline_text
from avial_lab.plot.run_facts import trace_text
from avial_lab.plot.space import dependence_table, nest_svg, nest_text, worth_drawing
from avial_lab.plot.split import split_svg, split_table
from avial_lab.plot.timeline import timeline_svg

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

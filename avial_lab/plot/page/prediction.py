"""A prediction as a page: how a program scales, and one of its runs.

Scaling, Trace -> HTML in one file.
"""

from __future__ import annotations

from avial_lab.planning.scaling import Scaling
from avial_lab.plot import svg
from avial_lab.plot.page.figure import scaling_figure, timeline_figure
from avial_lab.plot.page.page import page_html
from avial_lab.trace import Trace


def prediction_html(name: str, scaling: Scaling, trace: Trace) -> str:
    """The page; same prediction, same bytes."""
    title = f"{name} on {scaling.label}, simulated"
    sections = (("By ranks", scaling_figure(scaling)), ("Timeline", timeline_figure(trace)))
    body = "".join(f"<section><h2>{head}</h2>{figure}</section>" for head, figure in sections)
    return page_html(title, f"<h1>{svg.escape(title)}</h1>{body}")

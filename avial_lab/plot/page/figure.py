"""A picture with its facts, as HTML that lives through an untrusted notebook and nbconvert's
sanitizer.

SVG and tables -> `<figure>` with an `<img>` (so that no id, style or script of it meets the
page), and a folded table.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from avial_lab.artifact import plan_facts
from avial_lab.artifact.explanation import Nest, dependence_table, nest_summary
from avial_lab.artifact.plan import Plan
from avial_lab.core.buffers import Storage
from avial_lab.core.table import Table
from avial_lab.planning import graph_facts
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.scaling import Scaling
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot import svg
from avial_lab.plot.graph.dag import dag_svg
from avial_lab.plot.graph.lanes import lanes_svg
from avial_lab.plot.loops import space, split
from avial_lab.plot.run import messages
from avial_lab.plot.run.pipeline import memory_table, pipeline_summary, pipeline_svg
from avial_lab.plot.run.roofline import Roofline, roofline_summary, roofline_svg, roofline_table
from avial_lab.plot.run.scaling import scaling_summary, scaling_svg
from avial_lab.plot.run.timeline import timeline_svg
from avial_lab.trace import Move, Trace, run_facts
from avial_lab.trace.comparison import Comparison


def figure_html(picture: str, *, alt: str, tables: Sequence[Table] = ()) -> str:
    """`picture` (SVG) as an image in a scroll box, `alt` for who cannot see it, the tables
    folded below.
    """
    data = base64.b64encode(picture.encode()).decode("ascii")
    source = f"data:image/svg+xml;base64,{data}"
    image = f'<img src="{source}" alt="{svg.escape(alt)}" style="max-width:none">'
    folded = "".join(table.to_html() for table in tables if table.rows)
    details = f"<details><summary>as a table</summary>{folded}</details>" if folded else ""
    box = f'<div style="overflow-x:auto" tabindex="0">{image}</div>'
    return f'<figure style="margin:0 0 8px 0">{box}</figure>{details}'


def dag_figure(
    graph: TaskGraph, schedule: Schedule | None = None, trace: Trace | None = None
) -> str:
    """The task graph and its two tables; with a trace, costs are the times measured."""
    path = (
        graph_facts.critical_summary(graph_facts.critical_of(graph, trace)) if graph.tasks else ""
    )
    return figure_html(
        dag_svg(graph, schedule, trace),
        alt=f"Task graph: {graph_facts.graph_summary(graph, schedule)}. "
        f"{graph_facts.level_words(graph)}. {path}".strip(),
        tables=(
            graph_facts.task_table(graph, schedule, trace),
            graph_facts.edge_table(graph, schedule),
        ),
    )


def lanes_figure(schedule: Schedule, trace: Trace | None = None) -> str:
    """The schedule in lanes and its messages."""
    where = "; ".join(f"{p.task} on {p.device}" for p in schedule.placements[:12])
    return figure_html(
        lanes_svg(schedule, trace),
        alt=f"Schedule: {graph_facts.movement_summary(schedule)}. {where}",
        tables=(graph_facts.transfer_table(schedule),),
    )


def timeline_figure(trace: Trace, schedule: Schedule | None = None) -> str:
    """The timeline, where the time went, and every event; a run without ranks has none."""
    if not trace.ranks:
        return f"<p><em>{svg.escape(trace.label)}</em></p>"
    return figure_html(
        timeline_svg(trace, schedule),
        alt=f"Timeline: {run_facts.trace_summary(trace, schedule)}",
        tables=(
            run_facts.rank_table(trace, schedule),
            run_facts.task_table(trace, schedule),
            run_facts.path_table(trace),
            run_facts.event_table(trace, schedule),
        ),
    )


def comparison_figure(comparison: Comparison, schedule: Schedule | None = None) -> str:
    """The predicted run above the measured one, on one axis, and the tasks of both."""
    if not comparison.measured.ranks:
        return (
            f"<p>{svg.escape(str(comparison))}</p>{timeline_figure(comparison.predicted, schedule)}"
        )
    span_s = max(comparison.predicted.makespan_s, comparison.measured.makespan_s)
    words = (
        comparison.note,
        comparison.paths,
        comparison.memory,
        *(f"{n}: {why}" for n, why in comparison.errors),
    )
    predicted, measured = (
        figure_html(
            timeline_svg(trace, schedule, title=title, span_s=span_s),
            alt=f"{title}: {run_facts.trace_summary(trace, schedule)}",
            tables=tables,
        )
        for trace, title, tables in (
            (comparison.predicted, "Predicted", ()),
            (comparison.measured, "Measured", (comparison.table,)),
        )
    )
    told = "".join(f"<p>{svg.escape(line)}</p>" for line in words if line)
    return f"<p>{svg.escape(comparison.summary)}</p>{predicted}{measured}{told}"


def foreseen_figure(foreseen: Foreseen) -> str:
    """What each rank would do and hold, micro-batch by micro-batch."""
    machine = foreseen.schedule.topology.speeds.label
    return figure_html(
        pipeline_svg(foreseen, title=f"Simulated on {machine}"),
        alt=f"Simulated on {machine}: {pipeline_summary(foreseen)}",
        tables=(memory_table(foreseen),),
    )


def scaling_figure(scaling: Scaling) -> str:
    """The speed-up by ranks, and its table."""
    return figure_html(
        scaling_svg(scaling),
        alt=f"Speed-up by ranks {scaling_summary(scaling)}",
        tables=(scaling.table,),
    )


def nest_figure(nest: Nest) -> str:
    """Which iterations need which, and the dependences one by one."""
    return figure_html(
        space.nest_svg(nest),
        alt=f"Dependences of {nest.name}: {nest_summary(nest)}",
        tables=(dependence_table(nest),),
    )


def split_figure(plan: Plan) -> str:
    """Which rank writes and reads which part of each array."""
    return figure_html(
        split.split_svg(plan),
        alt=f"Split: {split.split_summary(plan)}",
        tables=(plan_facts.split_table(plan),),
    )


def messages_figure(plan: Plan, counted: Sequence[Move] | None = None) -> str:
    """Who sends how much to whom, and the same by phase."""
    return figure_html(
        messages.messages_svg(plan, counted),
        alt=f"Messages: {plan_facts.moves_summary(plan, counted)}",
        tables=(plan_facts.phase_table(plan), plan_facts.moves_table(plan, counted)),
    )


def held_figure(plan: Plan, storages: Sequence[Storage]) -> str:
    """What each rank holds, beside an equal share of all arrays."""
    return figure_html(
        messages.held_svg(plan, storages),
        alt=f"Memory of each rank: {plan_facts.held_summary(plan, storages)}",
        tables=(plan_facts.held_table(plan, storages),),
    )


def roofline_figure(roofline: Roofline) -> str:
    """The way to the roof, and the time before and after each step."""
    alt = f"{roofline.title}: {roofline_summary(roofline)}"
    # The table is not folded: without it nobody sees what a step was worth.
    return figure_html(roofline_svg(roofline), alt=alt) + roofline_table(roofline).to_html()

"""How our types look in a cell's output: one table, type -> renderer.

Object -> MIME bundle. Every bundle has HTML that an untrusted notebook keeps, and plain text
with the same facts. The lower layers know nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from avial_lab import plot
from avial_lab.artifact.binary import Binary
from avial_lab.artifact.explanation import Choice, Explanation, LoopReport, Nest
from avial_lab.artifact.manifest import DerivedMessages, KnownMessages
from avial_lab.artifact.plan import Plan
from avial_lab.artifact.stages import Stage, Stages
from avial_lab.compiler.requests import Analysis
from avial_lab.core.table import ROW_LIMIT, Table
from avial_lab.core.words import brief, count
from avial_lab.machine.roofline import Ceilings
from avial_lab.machine.topology import Topology
from avial_lab.planning.foreseen import Foreseen
from avial_lab.planning.planned import PlannedSchedule
from avial_lab.planning.scaling import Scaling
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot.svg import escape
from avial_lab.plot.views.graph import graph_data
from avial_lab.plot.views.stepper import stepper_data
from avial_lab.plot.views.timeline import timeline_data
from avial_lab.program.program import Program
from avial_lab.program.reference_run import OneProcess
from avial_lab.program.timing import Timing
from avial_lab.trace import Trace
from avial_lab.trace.comparison import Comparison

PARTS = ("loops", "dependences", "dag", "lanes", "split", "messages", "stages", "timeline")
"""What of a program can be shown, in the order it is shown in; `loops`, `dependences`, `split` and
`messages` are those of a program of loops.
"""

STAGE_LINES = 160
"""Lines of each stage in a program's own output, fewer where there are more than four stages; a
`Stage` shown by itself has more.
"""

STEPPER_TEXT = (250_000, 100_000, 40_000)
"""Characters of text that the stepper holds: the most that fits is taken."""

NESTS = 2
"""Nests whose dependences are drawn in a program's own output; `program.nest(name)` shows any."""

Bundle = dict[str, Any]

EXPLORED = "application/vnd.avial+json"
"""What our renderer for JupyterLab draws instead of the HTML: `{version, title, views}`, each view
`{kind, data}`; a figure that has no such view is of kind `html`.
"""

MOST_EXPLORED_BYTES = 400_000
"""A larger one is left out: a notebook keeps every output, and the HTML has the same facts."""


@dataclass(frozen=True)
class View:
    """Some of a program's `PARTS`: what `--show` asks for. The stages by themselves are a view to
    step through, unless `explored` is not wanted.
    """

    program: Program
    parts: Sequence[str] = PARTS
    explored: bool = True

    def __repr__(self) -> str:
        return brief(self, f"of {self.program.name}: {', '.join(self.parts)}")


@dataclass(frozen=True)
class Note:
    """A sentence for the user; `text` may have several lines."""

    title: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.title}\n{self.text}".rstrip()

    def __repr__(self) -> str:
        return brief(self, self.title)


def register_renderers(shell: InteractiveShell) -> None:
    """Teach `shell` to show our types."""
    formatter = shell.display_formatter
    if formatter is None:  # a shell that shows nothing
        return
    for kind, renderer in RENDERERS.items():
        formatter.mimebundle_formatter.for_type(kind, renderer)
    for (module, name), renderer in RENDERERS_BY_NAME.items():
        formatter.mimebundle_formatter.for_type_by_name(module, name, renderer)


@dataclass(frozen=True)
class Figure:
    """A part of an output: self-contained HTML, text with the same facts, and the view that our
    renderer draws instead of the HTML, if there is one.
    """

    html: str
    text: str = ""
    view: Mapping[str, Any] | None = None


def show_graph(graph: TaskGraph) -> Bundle:
    return _bundle("Task graph", _graph_figure(graph, None, None, ("dag",)))


def show_schedule(schedule: Schedule) -> Bundle:
    return _bundle("Schedule", _graph_figure(schedule.graph, schedule, None, ("dag", "lanes")))


def show_trace(trace: Trace) -> Bundle:
    return _bundle("Run", _timeline_figure(trace, None))


def show_comparison(comparison: Comparison) -> Bundle:
    figure = Figure(plot.comparison_figure(comparison), str(comparison))
    return _bundle("Predicted and run", figure)


def show_foreseen(foreseen: Foreseen) -> Bundle:
    figure = Figure(plot.foreseen_figure(foreseen), plot.foreseen_text(foreseen))
    return _bundle("Divided and simulated", figure)


def show_scaling(scaling: Scaling) -> Bundle:
    return _bundle("Speed-up by ranks", Figure(plot.scaling_figure(scaling), str(scaling)))


def show_planned(planned: PlannedSchedule) -> Bundle:
    """The simulated run, with the schedule's names."""
    trace = planned.simulate()
    words = f"{planned!r}\n{plot.trace_text(trace, planned)}"
    return _bundle("Plan", Figure(plot.timeline_figure(trace, planned), words))


def show_explanation(explanation: Explanation) -> Bundle:
    return _bundle("Loops", Figure(plot.explained_html(explanation), str(explanation)))


def show_nest(nest: Nest) -> Bundle:
    return _bundle(nest.name, Figure(plot.nest_figure(nest), plot.nest_text(nest)))


def show_plan(plan: Plan) -> Bundle:
    split = Figure(plot.split_figure(plan), plot.split_table(plan).to_text())
    return _bundle("Plan", split, Figure(plot.messages_figure(plan), plot.plan_text(plan)))


def show_stage(stage: Stage) -> Bundle:
    html = plot.stage_html(stage, opened=True, line_limit=1000)
    return _bundle(stage.name, Figure(html, plot.stage_text(stage)))


def show_film(film: plot.Film) -> Bundle:
    return _bundle(film.title, Figure(plot.film_figure(film), plot.film_text(film)))


def show_roofline(roofline: plot.Roofline) -> Bundle:
    figure = Figure(plot.roofline_figure(roofline), plot.roofline_text(roofline))
    return _bundle(roofline.title, figure)


def show_analysis(analysis: Analysis) -> Bundle:
    return show_graph(analysis.graph)


def show_stages(stages: Stages) -> Bundle:
    return show_table(stages.table(most=ROW_LIMIT))


def show_topology(topology: Topology) -> Bundle:
    return show_table(topology.table)


def show_printed(thing: object) -> Bundle:
    """What has no picture is shown as it prints."""
    text = str(thing)
    return _bundle(type(thing).__name__, Figure(f"<pre>{escape_lines(text)}</pre>", text))


def show_table(table: Table) -> Bundle:
    return _bundle(table.title, Figure(table.to_html(), table.to_text()))


def show_note(note: Note) -> Bundle:
    body = f"<pre>{escape_lines(note.text)}</pre>" if note.text else ""
    html = f"<p>{escape(note.title)}</p>{body}"
    return _bundle(note.title, Figure(html, str(note)))


def show_program(program: Program) -> Bundle:
    return show_view(View(program))


def show_view(view: View) -> Bundle:
    """The parts asked for, one below the other; a part that is not there yet (no run) is left
    out.
    """
    program, parts = view.program, view.parts
    figures = [Figure(_headline_html(program), _headline(program))]
    if "loops" in parts and program.explain().reports:
        told = program.explain()
        figures.append(Figure(plot.explained_html(told), str(told)))
    if "dependences" in parts:
        drawn = plot.worth_drawing(program.nests, most=NESTS)
        figures += [Figure(plot.nest_figure(nest), plot.nest_text(nest)) for nest in drawn]
    if "dag" in parts or "lanes" in parts:
        figures.append(_graph_figure(program.graph, program.schedule, program.trace, parts))
    if "split" in parts and program.of_loops:
        split = plot.split_table(program.plan).to_text()
        figures.append(Figure(plot.split_figure(program.plan), split))
    if "messages" in parts and program.of_loops:
        figures.append(_messages_figure(program, program.plan))
    if "stages" in parts:
        figures.append(
            _stages_figure(program, alone=list(parts) == ["stages"], explored=view.explored)
        )
    # Of a run without ranks the headline has said all there is.
    if "timeline" in parts and program.trace is not None and program.trace.ranks:
        figures.append(_timeline_figure(program.trace, program.schedule))
    return _bundle(program.name, *figures)


def _graph_figure(
    graph: TaskGraph, schedule: Schedule | None, trace: Trace | None, parts: Sequence[str]
) -> Figure:
    """The graph by level, in lanes, or both; one view has the two."""
    html = plot.dag_figure(graph, schedule, trace) if "dag" in parts else ""
    if "lanes" in parts and schedule is not None:
        html += plot.lanes_figure(schedule, trace)
    view = {"kind": "graph", "data": graph_data(graph, schedule, trace)}
    return Figure(html, plot.graph_text(graph, schedule, trace), view)


def _timeline_figure(trace: Trace, schedule: Schedule | None) -> Figure:
    """The view only where there are times."""
    html, text = plot.timeline_figure(trace, schedule), plot.trace_text(trace, schedule)
    if not trace.events:
        return Figure(html, text)
    return Figure(html, text, {"kind": "timeline", "data": timeline_data(trace, schedule)})


def _messages_figure(program: Program, plan: Plan) -> Figure:
    counted = None if program.trace is None else program.trace.counted
    storages = program.graph.storages
    html = plot.messages_figure(plan, counted) + plot.held_figure(plan, storages)
    return Figure(html, plot.plan_text(plan, counted, storages=storages))


def _stages_figure(program: Program, *, alone: bool, explored: bool) -> Figure:
    """Each stage's text to unfold; `alone` with the table of them all, and with the view, or folded
    away where the widget is below.
    """
    stages = tuple(program.stages.values())
    limit = STAGE_LINES * 4 // max(4, len(stages))
    html = "".join(plot.stage_html(stage, line_limit=limit) for stage in stages)
    text = program.stages.table(most=ROW_LIMIT).to_text()
    if not alone:
        return Figure(html, text)
    html = program.stages.table(commands=False, most=ROW_LIMIT).to_html() + html
    if explored:
        return Figure(html, text, _stepper_view(program))
    words = f"the {count(len(stages), 'stage')} as saved in the notebook"
    return Figure(f"<details><summary>{words}</summary>{html}</details>", text)


def _stepper_view(program: Program) -> Mapping[str, Any] | None:
    """The stages with as much of their texts as an output may hold; with their passes and where
    their lines come from, once that is known (`program.inside` takes as long as compiling).
    """
    inside = program.inside if "_inside" in vars(program) else None
    stages = program.stages.values()
    for budget in STEPPER_TEXT:
        data = stepper_data(stages, inside, source=program.text, cell=program.cell, budget=budget)
        if len(json.dumps(data)) < 0.9 * MOST_EXPLORED_BYTES:
            return {"kind": "stepper", "data": data}
    return None


def program_table(programs: Sequence[Program]) -> Table:
    """The programs of a session, one a row."""
    rows = tuple(
        (
            program.name,
            program.cell + (", edited by hand" if program.binary.manifest.edited else ""),
            str(len(program.graph.tasks)),
            str(len(program.graph.levels)),
            str(program.schedule.topology.ranks),
            program.status,
        )
        for program in programs
    )
    head = ("program", "from", "tasks", "levels", "ranks", "last run")
    note = "" if rows else "No programs yet: write a program in a cell that begins with %%avial."
    return Table("Programs", head, rows, frozenset({"tasks", "levels", "ranks"}), note)


def kernel_table(sentences: Mapping[str, str]) -> Table:
    """The kernels there are, with what each computes."""
    note = "%avial load NAME writes one into the next cell."
    return Table("Kernels", ("kernel", "computes"), tuple(sentences.items()), frozenset(), note)


def _headline(program: Program) -> str:
    return f"{program.name}: {program.status}"


def _headline_html(program: Program) -> str:
    return f"<p><b>{escape(program.name)}</b>: {escape(program.status)}</p>"


def escape_lines(text: str) -> str:
    """`text` escaped, its line ends kept."""
    return "\n".join(map(escape, text.split("\n")))


def _bundle(title: str, *figures: Figure) -> Bundle:
    """HTML and text of all; with a view among them, the same for our renderer."""
    html = "".join(figure.html for figure in figures)
    text = "\n\n".join(figure.text for figure in figures if figure.text)
    bundle: Bundle = {"text/html": html, "text/plain": text}
    if any(figure.view is not None for figure in figures):
        views = [each.view or {"kind": "html", "data": each.html} for each in figures]
        explored = {"version": 1, "title": title, "views": views}
        if len(json.dumps(explored)) <= MOST_EXPLORED_BYTES:
            bundle[EXPLORED] = explored
    return bundle


RENDERERS: dict[type, Callable[[Any], Bundle]] = {
    Program: show_program,
    View: show_view,
    TaskGraph: show_graph,
    Schedule: show_schedule,
    Stage: show_stage,
    Trace: show_trace,
    Comparison: show_comparison,
    Foreseen: show_foreseen,
    Scaling: show_scaling,
    PlannedSchedule: show_planned,
    Explanation: show_explanation,
    Nest: show_nest,
    Plan: show_plan,
    plot.Film: show_film,
    plot.Roofline: show_roofline,
    Analysis: show_analysis,
    Stages: show_stages,
    Topology: show_topology,
    Binary: show_printed,
    KnownMessages: show_printed,
    DerivedMessages: show_printed,
    Choice: show_printed,
    LoopReport: show_printed,
    Ceilings: show_printed,
    Timing: show_printed,
    OneProcess: show_printed,
    Table: show_table,
    Note: show_note,
}

RENDERERS_BY_NAME: dict[tuple[str, str], Callable[[Any], Bundle]] = {
    ("avial_lab.runtime.launch.cluster", "Cluster"): show_printed,
    ("avial_lab.runtime.launch.cluster", "ClusterStatus"): show_printed,
    ("avial_lab.benchmarks.table", "Report"): show_printed,
}
"""By module and name: types that are shown only once somebody has loaded them."""

"""How our types look in a cell's output: one table, type -> renderer.

Object -> MIME bundle. Every bundle has HTML that an untrusted notebook keeps, and plain text
with the same facts. The lower layers know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from avial_lab import plot
from avial_lab.dag import TaskGraph
from avial_lab.ownership import Plan
from avial_lab.plot.facts import Table, count, format_seconds, time_label
from avial_lab.plot.svg import escape
from avial_lab.program import Program
from avial_lab.schedule import Schedule
from avial_lab.stages import Stage
from avial_lab.trace import Trace
from avial_lab.verdicts import Explanation, Nest

PARTS = ("loops", "dependences", "dag", "lanes", "split", "messages", "stages", "timeline")
"""What of a program can be shown, in the order it is shown in; `loops`, `dependences`, `split` and
`messages` are those of a program of loops.
"""

STAGE_LINES = 160
"""Lines of each stage in a program's own output, fewer where there are more than four stages; a
`Stage` shown by itself has more.
"""

NESTS = 2
"""Nests whose dependences are drawn in a program's own output; `program.nest(name)` shows any."""

Bundle = dict[str, str]


@dataclass(frozen=True)
class View:
    """Some of a program's `PARTS`: what `--show` asks for."""

    program: Program
    parts: Sequence[str] = PARTS


@dataclass(frozen=True)
class Note:
    """A sentence of ours; `text` may have several lines."""

    title: str
    text: str = ""


def register_renderers(shell: InteractiveShell) -> None:
    """Teach `shell` to show our types."""
    formatter = shell.display_formatter
    if formatter is None:  # a shell that shows nothing
        return
    for kind, renderer in RENDERERS.items():
        formatter.mimebundle_formatter.for_type(kind, renderer)


def show_graph(graph: TaskGraph) -> Bundle:
    return _bundle(plot.dag_figure(graph), plot.graph_text(graph))


def show_schedule(schedule: Schedule) -> Bundle:
    pictures = plot.dag_figure(schedule.graph, schedule) + plot.lanes_figure(schedule)
    return _bundle(pictures, plot.graph_text(schedule.graph, schedule))


def show_trace(trace: Trace) -> Bundle:
    return _bundle(plot.timeline_figure(trace), plot.trace_text(trace))


def show_explanation(explanation: Explanation) -> Bundle:
    return _bundle(plot.explained_html(explanation), str(explanation))


def show_nest(nest: Nest) -> Bundle:
    return _bundle(plot.nest_figure(nest), plot.nest_text(nest))


def show_plan(plan: Plan) -> Bundle:
    pictures = plot.split_figure(plan) + plot.messages_figure(plan)
    return _bundle(pictures, f"{plot.split_table(plan).to_text()}\n{plot.plan_text(plan)}")


def show_stage(stage: Stage) -> Bundle:
    return _bundle(plot.stage_html(stage, opened=True, line_limit=1000), plot.stage_text(stage))


def show_table(table: Table) -> Bundle:
    return _bundle(table.to_html(), table.to_text())


def show_note(note: Note) -> Bundle:
    body = f"<pre>{escape_lines(note.text)}</pre>" if note.text else ""
    return _bundle(f"<p>{escape(note.title)}</p>{body}", f"{note.title}\n{note.text}".rstrip())


def show_program(program: Program) -> Bundle:
    return show_view(View(program))


def show_view(view: View) -> Bundle:
    """The parts asked for, one below the other; a part that is not there yet (no run) is left
    out.
    """
    program = view.program
    html, text = [_headline_html(program)], [_headline(program)]
    if "loops" in view.parts and program.explain().verdicts:
        html.append(plot.explained_html(program.explain()))
        text.append(str(program.explain()))
    if "dependences" in view.parts:
        drawn = plot.worth_drawing(program.nests, most=NESTS)
        html += map(plot.nest_figure, drawn)
        text += map(plot.nest_text, drawn)
    if "dag" in view.parts or "lanes" in view.parts:
        text.append(plot.graph_text(program.graph, program.schedule))
    if "dag" in view.parts:
        html.append(plot.dag_figure(program.graph, program.schedule))
    if "lanes" in view.parts:
        html.append(plot.lanes_figure(program.schedule))
    if "split" in view.parts and program.plan is not None:
        html.append(plot.split_figure(program.plan))
        text.append(plot.split_table(program.plan).to_text())
    if "messages" in view.parts and program.plan is not None:
        counted = None if program.trace is None else program.trace.counted
        html.append(plot.messages_figure(program.plan, counted))
        html.append(plot.held_figure(program.plan, program.graph.storages))
        text.append(plot.plan_text(program.plan, counted, storages=program.graph.storages))
    if "stages" in view.parts:
        stages = tuple(program.stages.values())
        limit = STAGE_LINES * 4 // max(4, len(stages))
        html += [plot.stage_html(stage, line_limit=limit) for stage in stages]
        text.append(stage_table(program).to_text())
    if "timeline" in view.parts and program.trace is not None:
        html.append(plot.timeline_figure(program.trace, program.schedule))
        text.append(plot.trace_text(program.trace, program.schedule))
    return _bundle("".join(html), "\n\n".join(text))


def stage_table(program: Program) -> Table:
    """The stages of a program: what each is, its size, what makes it."""
    rows = tuple(
        (
            stage.name,
            stage.title,
            str(len(stage.text.splitlines())),
            format_seconds(stage.seconds),
            stage.command or "our own passes",
        )
        for stage in program.stages.values()
    )
    head = ("stage", "what it is", "lines", "time", "made by")
    return Table("Stages", head, rows, frozenset({"lines", "time"}))


def program_table(programs: Sequence[Program]) -> Table:
    """The programs of a session, one a row."""
    rows = tuple(
        (
            program.name,
            program.cell,
            str(len(program.graph.tasks)),
            str(len(program.graph.levels)),
            str(program.schedule.topology.ranks),
            _last_run(program),
        )
        for program in programs
    )
    head = ("program", "from", "tasks", "levels", "ranks", "last run")
    note = "" if rows else "No programs yet: write one in a cell that begins with %%avial."
    return Table("Programs", head, rows, frozenset({"tasks", "levels", "ranks"}), note)


def _headline(program: Program) -> str:
    return f"{program.name}: {_last_run(program)}"


def _headline_html(program: Program) -> str:
    return f"<p><b>{escape(program.name)}</b>: {escape(_last_run(program))}</p>"


def _last_run(program: Program) -> str:
    """`ran on 3 ranks in 1.2 ms (measured), every array equals the reference`, or that it has
    not run.
    """
    if program.trace is None:
        return "compiled, not run yet"
    if not program.trace.ranks:
        return program.trace.label
    ranks = count(program.trace.ranks, "rank")
    label = time_label(program.trace, program.schedule)
    words = f"ran on {ranks} in {format_seconds(program.trace.makespan_s)} ({label})"
    return f"{words}, {program.check_report}" if program.check_report else words


def escape_lines(text: str) -> str:
    """`text` escaped, its line ends kept."""
    return "\n".join(map(escape, text.split("\n")))


def _bundle(html: str, text: str) -> Bundle:
    return {"text/html": html, "text/plain": text}


RENDERERS: dict[type, Callable[[Any], Bundle]] = {
    Program: show_program,
    View: show_view,
    TaskGraph: show_graph,
    Schedule: show_schedule,
    Stage: show_stage,
    Trace: show_trace,
    Explanation: show_explanation,
    Nest: show_nest,
    Plan: show_plan,
    Table: show_table,
    Note: show_note,
}

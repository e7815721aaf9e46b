"""One program's whole story in one file: what `Program.report` and `make demo` write.

Graph, schedule, stages, trace -> an HTML page that needs nothing from outside itself.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from avial_lab.dag import TaskGraph
from avial_lab.plot import facts, svg
from avial_lab.plot.code import highlighted, stage_html
from avial_lab.plot.dag import dag_svg
from avial_lab.plot.facts import Table
from avial_lab.plot.lanes import lanes_svg
from avial_lab.plot.timeline import timeline_svg
from avial_lab.schedule import Schedule
from avial_lab.stages import Stage
from avial_lab.trace import Trace

STAGE_LINES = 2000

_STYLE = Path(__file__).with_name("report.css")


def report_html(
    *,
    name: str,
    source: str,
    graph: TaskGraph,
    schedule: Schedule,
    stages: Iterable[Stage] = (),
    trace: Trace | None = None,
    check: str | None = None,
    seconds: Mapping[str, float] | None = None,
    versions: Mapping[str, str] | None = None,
) -> str:
    """The page. `check` is the comparison with the reference in words (it passed: a failed one
    raises); `seconds` what each step took; `versions` of whatever had a part in it. Same
    arguments, same bytes.
    """
    stages = tuple(stages)
    sections = [
        (
            "program",
            "Program",
            "What was typed. Its order is its meaning: no rank count or placement changes a value.",
            highlighted(source.strip("\n"), "mlir", line_limit=STAGE_LINES),
        ),
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
    ]
    if stages:
        folded = "".join(stage_html(stage, line_limit=STAGE_LINES) for stage in stages)
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
                _run_words(trace),
                _picture(timeline_svg(trace))
                + _tables(facts.rank_table(trace))
                + _folded("every event", facts.event_table(trace)),
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
    lead = "A program of tasks, and how it became one that runs on several processes."
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{svg.escape(name)} – avial_lab</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body><main>"
        f'<h1>{svg.escape(name)}</h1><p class="lead">{lead}</p>'
        f"{_facts(graph, schedule, trace, check)}<nav>{links}</nav>{body}"
        f"{_footer(versions or {})}</main></body></html>\n"
    )


def write_report(path: str | os.PathLike[str], page: str) -> None:
    """`page` at `path`, all of it or nothing: a reader never sees half a file."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _facts(graph: TaskGraph, schedule: Schedule, trace: Trace | None, check: str | None) -> str:
    """The numbers one looks for first."""
    moved = sum(transfer.nbytes for transfer in schedule.transfers)
    items = [
        ("tasks", f"{len(graph.tasks):,}"),
        ("levels", f"{len(graph.levels):,}"),
        ("ranks", f"{schedule.topology.ranks:,}"),
        ("devices", facts.device_summary(schedule)),
        ("moved", facts.format_bytes(moved)),
    ]
    if trace is not None:
        items.append((f"run, {trace.label}", facts.format_seconds(trace.makespan_s)))
    shown = "".join(
        f"<div><dt>{svg.escape(key)}</dt><dd>{svg.escape(value)}</dd></div>" for key, value in items
    )
    mark = (
        f'<dd class="good">✓ {svg.escape(check)}</dd>'
        if check
        else '<dd class="bad">not checked</dd>'
    )
    return f'<dl class="facts">{shown}<div><dt>against the reference</dt>{mark}</div></dl>'


def _run_words(trace: Trace) -> str:
    return f"What every rank did, and what it waited for. {svg.escape(facts.trace_summary(trace))}."


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

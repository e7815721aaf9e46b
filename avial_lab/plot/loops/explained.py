"""Loop report and why, beside the source: `Program.explain()` as a table.

Explanation -> HTML with inline styles only, or a plain Table. What is said in colour is said in a
sign and in words too.
"""

from __future__ import annotations

import re

from avial_lab.artifact.explanation import Choice, Explanation, LoopReport
from avial_lab.core.table import Table
from avial_lab.core.words import count
from avial_lab.planning.task_graph import TaskKind
from avial_lab.plot import svg
from avial_lab.plot.palette import BLUE, ORANGE, VERMILION

SIGNS = {TaskKind.REPLICATE: "∥", TaskKind.CONVERGE: "↻", TaskKind.TASK: "1"}
"""Side by side, round and round, on one rank."""

_COLOURS = {TaskKind.REPLICATE: BLUE, TaskKind.CONVERGE: ORANGE, TaskKind.TASK: VERMILION}
_MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px;white-space:pre"
_MADE = "font-size:12px;padding-left:1em;text-indent:-1em;margin-left:1em"
_LEFT = "text-align:left;vertical-align:top"
_LINE = re.compile(r"\bline (\d+)\b")
_TRIED = ("alternative", "time", "over the best so far", "")
_HEAD = ("line", "source", "name", "became", "why")


def explained_html(explanation: Explanation) -> str:
    """One row a loop: its line as it is written, what it became, and the reasons with the lines
    they speak of.
    """
    if not explanation.reports:
        return f"<p>{svg.escape(str(explanation))}</p>"
    head = "".join(f'<th style="{_LEFT}">{name}</th>' for name in _HEAD)
    body = "".join(map(_row, explanation.reports))
    caption = f"{count(len(explanation.reports), 'part')}: {explanation.summary}"
    rounding = f"<p>Arithmetic: {svg.escape(explanation.arithmetic)}.</p>"
    return (
        f'<table><caption style="text-align:left;font-weight:bold">{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        + (rounding if explanation.arithmetic else "")
        + _choice(explanation.choice)
    )


def explained_table(explanation: Explanation) -> Table:
    """The same in plain cells."""
    rows = tuple(
        (
            str(report.span.line) if report.span is not None else "",
            source_line(report).strip(),
            report.name,
            f"{SIGNS[report.kind]} {report.title}",
            "; ".join((*report.reasons, *report.done)),
        )
        for report in explanation.reports
    )
    return Table("Loop report", _HEAD, rows, frozenset({"line"}))


def source_line(report: LoopReport, line: int | None = None) -> str:
    """That line of the report's source (by default its own); empty where the text is not known."""
    if report.span is None:
        return ""
    lines = report.span.text.splitlines()
    wanted = report.span.line if line is None else line
    return lines[wanted - 1] if 1 <= wanted <= len(lines) else ""


def _row(report: LoopReport) -> str:
    colour = _COLOURS[report.kind]
    line = str(report.span.line) if report.span is not None else ""
    source = "  " * report.depth + source_line(report).strip()
    became = (
        f'<span style="border-left:4px solid {colour};padding-left:6px">'
        f"<b>{SIGNS[report.kind]}</b> {svg.escape(report.title)}</span>"
    )
    why = "".join(f"<div>{_reason(report, reason)}</div>" for reason in report.reasons)
    why += "".join(map(_remark_html, report.done))
    why += _remark_html(f"model: {report.model}") if report.model else ""
    cells = (
        f'<td style="text-align:right;vertical-align:top">{line}</td>',
        f'<td style="{_LEFT};{_MONO}">{_code(source)}</td>',
        f'<td style="{_LEFT}">{svg.escape(report.name)}</td>',
        f'<td style="{_LEFT}">{became}</td>',
        f'<td style="{_LEFT}">{why}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"


def _reason(report: LoopReport, reason: str) -> str:
    """The reason, and below it the line it points to."""
    spoken = _LINE.search(reason)
    quoted = source_line(report, int(spoken[1])).strip() if spoken else ""
    if not quoted:
        return svg.escape(reason)
    return f'{svg.escape(reason)}<div style="{_MONO};padding-left:2em">{_code(quoted)}</div>'


def _choice(choice: Choice | None) -> str:
    """What tuning found, and all that it tried, folded."""
    if choice is None:
        return ""
    head = "".join(f'<th style="{_LEFT}">{name}</th>' for name in _TRIED)
    rows = "".join(
        f'<tr><td style="{_LEFT};{_MONO}">{svg.escape(each.what)}</td>'
        f"<td>{each.seconds * 1e3:.3f} ms</td><td>{each.ratio:.2f} × ± {each.noise:.2f}</td>"
        f"<td>{'kept' if each.kept else ''}</td></tr>"
        for each in choice.tried
    )
    return (
        f"<details><summary>{svg.escape(choice.summary)}</summary>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _remark_html(line: str) -> str:
    """What a pass made of it, the pass's name in front."""
    name, _, what = line.partition(": ")
    return f'<div style="{_MADE}"><b>{svg.escape(name)}</b> {svg.escape(what)}</div>'


def _code(text: str) -> str:
    """No <code>: a dark JupyterLab gives it a background of its own. Blanks in front are kept."""
    shown = svg.escape(text if len(text) <= 96 else f"{text[:95]}…")
    kept = len(text) - len(text.lstrip(" "))
    return "&nbsp;" * kept + shown[kept:]

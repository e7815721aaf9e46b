"""Loop report and why, beside the source: `Program.explain()` as a table.

Explanation -> HTML with inline styles only, or a plain Table. What is said in colour is said in a
sign and in words too.
"""

from __future__ import annotations

import re

from avial_lab.artifact.explanation import Choice, Explanation, Verdict
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
    if not explanation.verdicts:
        return f"<p>{svg.escape(str(explanation))}</p>"
    head = "".join(f'<th style="{_LEFT}">{name}</th>' for name in _HEAD)
    body = "".join(map(_row, explanation.verdicts))
    caption = f"{count(len(explanation.verdicts), 'part')}: {explanation.summary}"
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
            str(verdict.span.line) if verdict.span is not None else "",
            source_line(verdict).strip(),
            verdict.name,
            f"{SIGNS[verdict.kind]} {verdict.title}",
            "; ".join((*verdict.reasons, *verdict.done)),
        )
        for verdict in explanation.verdicts
    )
    return Table("Loop report", _HEAD, rows, frozenset({"line"}))


def source_line(verdict: Verdict, line: int | None = None) -> str:
    """That line of the verdict's source (by default its own); empty where the text is not known."""
    if verdict.span is None:
        return ""
    lines = verdict.span.text.splitlines()
    wanted = verdict.span.line if line is None else line
    return lines[wanted - 1] if 1 <= wanted <= len(lines) else ""


def _row(verdict: Verdict) -> str:
    colour = _COLOURS[verdict.kind]
    line = str(verdict.span.line) if verdict.span is not None else ""
    source = "  " * verdict.depth + source_line(verdict).strip()
    became = (
        f'<span style="border-left:4px solid {colour};padding-left:6px">'
        f"<b>{SIGNS[verdict.kind]}</b> {svg.escape(verdict.title)}</span>"
    )
    why = "".join(f"<div>{_reason(verdict, reason)}</div>" for reason in verdict.reasons)
    why += "".join(map(_remark_html, verdict.done))
    why += _remark_html(f"model: {verdict.model}") if verdict.model else ""
    cells = (
        f'<td style="text-align:right;vertical-align:top">{line}</td>',
        f'<td style="{_LEFT};{_MONO}">{_code(source)}</td>',
        f'<td style="{_LEFT}">{svg.escape(verdict.name)}</td>',
        f'<td style="{_LEFT}">{became}</td>',
        f'<td style="{_LEFT}">{why}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"


def _reason(verdict: Verdict, reason: str) -> str:
    """The reason, and below it the line it points to."""
    spoken = _LINE.search(reason)
    quoted = source_line(verdict, int(spoken[1])).strip() if spoken else ""
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

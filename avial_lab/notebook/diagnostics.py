"""Mistakes at their place in a cell, for an editor to mark.

A cell's error -> the notebook cell it is in, line, column and length as the editor counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult

from avial_lab.compiler.frontends.notation.source import TOKEN
from avial_lab.core.errors import MOST, AvialError, CellSpan, cut

Diagnostic = dict[str, Any]
"""`{line, column, length, source, title, message, hint}`: line and column from 1, both and the
length in UTF-16 units; `source` is the line they are true of.
"""


@dataclass
class Diagnostics:
    """`by_cell` is what is wrong now, by the notebook's cell ids; `told` is called with a cell that
    has news.
    """

    told: Callable[[str], None]
    by_cell: dict[str, list[Diagnostic]] = field(default_factory=dict)
    _cells: dict[str, str] = field(default_factory=dict)  # `In [N]` -> id

    def before(self, info: ExecutionInfo) -> None:
        """A cell that runs again has no mistakes yet."""
        cell = info.cell_id or ""
        if self.by_cell.pop(cell, None):
            self.told(cell)

    def after(self, result: ExecutionResult) -> None:
        """The error of a cell may be in another: in the one that was compiled."""
        if result.info is None or result.info.cell_id is None:  # a front end that has no cells
            return
        self._cells[f"In [{result.execution_count}]"] = result.info.cell_id
        error = result.error_in_exec
        if not isinstance(error, AvialError) or error.span is None:
            return
        cell = self._cells.get(error.span.cell)
        if cell is not None:
            self.by_cell[cell] = [_diagnostic(error, error.span)]
            self.told(cell)


def _diagnostic(error: AvialError, span: CellSpan) -> Diagnostic:
    lines = span.text.split("\n")
    source = lines[span.line - 1] if span.line <= len(lines) else ""
    token = TOKEN.match(source, span.column - 1)
    return {
        "line": span.line,
        "column": _utf16(source[: span.column - 1]) + 1,
        "length": _utf16(token[0]) if token else 1,
        "source": source,
        "title": type(error).__name__,
        "message": cut(error.message, MOST),
        "hint": cut(error.hint or "", MOST),
    }


def _utf16(text: str) -> int:
    """Units that a browser counts."""
    return len(text.encode("utf-16-le")) // 2

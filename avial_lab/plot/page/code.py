"""Program text as HTML: coloured with inline styles, folded, and cut where it is too long.

Text and its language -> HTML that survives where `<style>` and classes do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers.asm import GasLexer, LlvmLexer  # pyright: ignore[reportMissingTypeStubs]
from pygments.lexers.special import TextLexer  # pyright: ignore[reportMissingTypeStubs]
from pygments.style import Style
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    _TokenType,  # pyright: ignore[reportPrivateUsage] - it has no public name
)

from avial_lab.artifact.stages import LINE_LIMIT, Stage, elided
from avial_lab.core.words import count, format_seconds, printable
from avial_lab.plot import svg
from avial_lab.plot.page.lexers import MLIRLexer, PTXLexer

PAPER = "#f8fafc"
_PRE = (
    f"background-color:{PAPER};color:#1f2937;padding:10px 12px;border:1px solid #e2e8f0;"
    "font-size:12px;line-height:1.45;overflow-x:auto;max-height:520px;overflow-y:auto;margin:4px 0"
)


class PaperStyle(Style):
    """Dark inks on our own light paper, every one at least 4.5 : 1: readable on light and dark
    pages alike.
    """

    background_color = PAPER
    styles = {  # noqa: RUF012 - Pygments' metaclass reads it so
        Comment: "italic #5b6472",
        Keyword: "#7c3aed",
        Keyword.Type: "#0f6e56",
        Keyword.Declaration: "#7c3aed",
        Name.Function: "#0b5394",
        Name.Label: "bold #9a3412",
        Name.Constant: "#9a3412",
        Number: "#b03a00",
        String: "#3f6212",
        Operator: "#4b5563",
        Punctuation: "#4b5563",
    }


def highlighted(text: str, language: str, *, line_limit: int = LINE_LIMIT) -> str:
    """`text` as a `<pre>`; `language` is a `Stage`'s (`mlir`, `llvm`, `ptx`, `asm`, else plain).

    Of more than `line_limit` lines the first and last are shown, with a line between that says
    how many are not.
    """
    shown = elided(text, line_limit=line_limit)
    formatter = HtmlFormatter[str](style=PaperStyle, noclasses=True, nowrap=True)
    coloured = highlight(_clean(shown), _lexer(language), formatter)
    # No <code> within: a dark JupyterLab gives it a background of its own.
    return f'<pre tabindex="0" style="{_PRE}">{coloured}</pre>'


_INKS = (
    (Comment, "c"),
    (Keyword.Type, "t"),
    (Keyword, "k"),
    (Name.Function, "f"),
    (Name.Label, "l"),
    (Name.Constant, "n"),
    (Name.Variable, "v"),
    (Number, "m"),
    (String, "s"),
)
PLAIN = "x"


def ink_runs(lines: Sequence[str], language: str) -> list[str]:
    """The colours of each line: an ink's letter and how many UTF-16 units (what JavaScript counts)
    have it, up to the last that has one. The languages here are coloured line by line: none depends
    on the line before.

    >>> ink_runs(["%x = arith.constant 1 : index", "}"], "mlir")
    ['v2x3f14x1m1x3t5', '']
    """
    # Pygments makes one line end of two kinds; a form feed would be one to it and not to us.
    text = "\n".join(re.sub(r"[\r\v\f]", " ", line) for line in lines) + "\n"
    found: list[str] = []
    runs: list[list[Any]] = []
    for kind, value in _lexer(language).get_tokens(text):
        for number, part in enumerate(value.split("\n")):
            if number:
                found.append(_line_runs(runs))
                runs = []
            if part:
                _extend(runs, _ink(kind), _width(part))
    return found


def _extend(runs: list[list[Any]], ink: str, length: int) -> None:
    if runs and runs[-1][0] == ink:
        runs[-1][1] += length
    else:
        runs.append([ink, length])


def _width(part: str) -> int:
    return len(part) if part.isascii() else len(part.encode("utf-16-le", "surrogatepass")) // 2


def _line_runs(runs: list[list[Any]]) -> str:
    if runs and runs[-1][0] == PLAIN:
        runs = runs[:-1]
    return "".join(f"{ink}{length}" for ink, length in runs)


@cache
def _ink(kind: _TokenType) -> str:
    return next((letter for family, letter in _INKS if kind in family), PLAIN)


def stage_html(stage: Stage, *, opened: bool = False, line_limit: int = LINE_LIMIT) -> str:
    """A stage as a foldable block: its title, what makes it, its text."""
    command = f"<p>made by <code>{svg.escape(stage.command)}</code></p>" if stage.command else ""
    size = count(len(stage.text.splitlines()), "line")
    size += f", {format_seconds(stage.seconds)}" if stage.seconds else ""
    title = f"<b>{svg.escape(stage.name)}</b> – {svg.escape(stage.title)}"
    return (
        f"<details{' open' if opened else ''}>"
        f"<summary>{title} ({size})</summary>"
        f"{command}{highlighted(stage.text, stage.language, line_limit=line_limit)}</details>"
    )


_LEXERS: dict[str, type[Lexer]] = {
    "mlir": MLIRLexer,
    "avial": MLIRLexer,
    "ptx": PTXLexer,
    "llvm": LlvmLexer,
    "asm": GasLexer,
}


@cache
def _lexer(language: str) -> Lexer:
    return _LEXERS.get(language, TextLexer)(stripnl=False)


def _clean(text: str) -> str:
    """Without what HTML cannot hold; the lines stay lines."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))

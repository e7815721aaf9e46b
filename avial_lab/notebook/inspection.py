"""Shift-Tab in `%%avial` cells and `%avial` lines: what an operation, a value or an option is.

Cell, cursor -> Markdown. ipykernel looks names up among Python's objects and gives the shell
nothing of the cell, so that its question is answered before it: outside our cells as ever.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np
from IPython.core.interactiveshell import InteractiveShell

from avial_lab.notebook.completion import CELL, LINE, Session
from avial_lab.notebook.magic_lines import describe_option
from avial_lab.notebook.magics import AvialMagics, line_parser
from avial_lab.notebook.operations import WORDS, describe_operation
from avial_lab.notebook.surroundings import surroundings

_NEAR = r".{0,500}"
"""Of a line: what is further away is not looked at, nor shown."""

_WORD = re.compile(r"--?[A-Za-z][\w-]*|%?[\w$.]+")


def register_inspection(shell: InteractiveShell, magics: AvialMagics) -> None:
    """Where the shell is a kernel's; a terminal has no such question."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return
    session = Session(magics, shell.user_ns)
    python = type(kernel).do_inspect

    def do_inspect(
        code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Collection[str] = ()
    ) -> object:
        text = describe(code, cursor_pos, session)
        if text is None:
            return python(kernel, code, cursor_pos, detail_level, omit_sections)
        data = {"text/plain": text, "text/markdown": text}
        return {"status": "ok", "found": True, "data": data, "metadata": {}}

    kernel.do_inspect = do_inspect


def describe(text: str, offset: int, session: Session) -> str | None:
    """Markdown for what is at `offset`; None where Python is, or nothing is known."""
    cell = CELL.match(text)
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:].partition("\n")[0]
    word = next((m for m in _WORD.finditer(line) if m.start() <= offset - start <= m.end()), None)
    options = cell if cell and offset <= cell.end() else LINE.match(line.lstrip())
    if options is not None:
        parser = session.magics.avial.parser if options is cell else line_parser()
        found = describe_option(options["options"], word[0], parser) if word else None
        return found or AvialMagics.avial.__doc__
    if cell is None:
        return None
    return _of_program(text[cell.end() :], offset - cell.end(), word[0] if word else "", session)


def _of_program(program: str, offset: int, word: str, session: Session) -> str | None:
    """The word itself, or else the operation that it belongs to."""
    if word.startswith("%"):
        return _value(program, offset, word, session)
    known = describe_operation(word) or WORDS.get(word)
    if known is not None:
        return known
    around = surroundings(program, offset)
    return describe_operation(around.op) if around.op else None


def _value(program: str, offset: int, name: str, session: Session) -> str:
    around = surroundings(program, offset)
    what = around.names.get(name, "value")
    array = session.variables.get(name[1:])
    if isinstance(array, np.ndarray) and (what == "buffer" or around.op == "avial.schedule"):
        extents = " x ".join(map(str, array.shape))
        return f"**`{name}`**: the array `{name[1:]}` of this notebook: {extents} of {array.dtype}"
    made = re.search(
        rf"^{_NEAR}{re.escape(name)}(?![\w$.-])[^=\n]{{0,500}}={_NEAR}", program, re.MULTILINE
    )
    return f"**`{name}`**: {what}" + (f"\n\n```mlir\n{made[0].strip()}\n```" if made else "")

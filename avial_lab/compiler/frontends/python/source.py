"""The source of a Python function: its tree, and places in it.

Function -> FunctionSource; an `ast` node -> the CellSpan of its first character.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from avial_lab.core.errors import AvialError, CellSpan, ParseError

_NOTEBOOK_CELL = re.compile(r"(?:ipykernel_\d+[/\\]\d+\.py|<ipython-input-(\d+)-[0-9a-f]+>)$")


CELL = "notebook cell"
GIVEN = "__avial_source__"
"""The attribute of a function whose source is no Python text."""


@dataclass(frozen=True)
class FunctionSource:
    """`text` is the whole file's (or cell's), so that its lines are the editor's; `file` is how the
    person names it. from_end: whether a negative index counts from there.
    """

    name: str
    file: str
    text: str
    tree: ast.FunctionDef
    from_end: bool = True

    @property
    def place(self) -> str:
        """Its file as locations in MLIR name it: a cell that runs again has another number, and the
        same text.
        """
        return CELL if self.file.startswith("In [") else self.file

    def span(self, node: ast.AST) -> CellSpan:
        line = getattr(node, "lineno", self.tree.lineno)
        return CellSpan(self.file, self.text, line, getattr(node, "col_offset", 0) + 1)

    def words(self, node: ast.AST) -> str:
        """What stands there, in one line."""
        return " ".join((ast.get_source_segment(self.text, node) or "").split())


def source_of(function: Callable[..., object], cell: str | None = None) -> FunctionSource:
    """`cell`: what its file is called.

    Raises ParseError where it has no source: typed at a prompt, made by `exec`, a lambda.
    """
    given = getattr(function, GIVEN, None)
    if given is not None:
        return given
    name = function.__name__
    if name == "<lambda>":
        raise ParseError("a lambda has no name to be compiled by", hint="write it as a def")
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    text = "".join(linecache.getlines(file, function.__globals__))
    if not text:
        raise ParseError(
            f"the source of {name} is not there ({file})",
            hint="put the function into a file or a notebook's cell",
        )
    tree = _definition(text, function, file)
    return FunctionSource(name, cell or _named(file), text, tree)


@contextmanager
def not_too_deep(name: str) -> Generator[None]:
    """Where a text is read by recursion: ParseError where Python's stack is too short for it."""
    try:
        yield
    except RecursionError as error:
        if isinstance(error, AvialError):  # a function's own recursion
            raise
        raise ParseError(
            f"{name} is nested too deeply to be read",
            hint="give parts of long expressions names of their own; split long chains of elif",
        ) from None


def _definition(text: str, function: Callable[..., object], file: str) -> ast.FunctionDef:
    """The `def` that begins where the function's code says."""
    first, name = function.__code__.co_firstlineno, function.__name__
    try:
        module = ast.parse(text)
    except SyntaxError:  # a file that has changed since, or a cell with magics
        module = _alone(text, first)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            begin = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if begin == first:
                return node
    raise ParseError(
        f"{file}:{first} is not the begin of {name} (any more)",
        hint="load the file anew: it has changed since the function was made",
    )


def _alone(text: str, first: int) -> ast.Module:
    """The block that begins in that line, in its place."""
    lines = inspect.getblock(text.splitlines(keepends=True)[first - 1 :])
    return ast.parse("\n" * (first - 1) + textwrap.dedent("".join(lines)))


def _named(file: str) -> str:
    """As the person calls it: the file's name; of a notebook's cell its number, where that is
    known.
    """
    found = _NOTEBOOK_CELL.search(file)
    if found is not None:
        return f"In [{found[1]}]" if found[1] else CELL
    return Path(file).name

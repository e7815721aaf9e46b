"""The errors a user sees: what is wrong, where (the cell's own line and column), what
now.

Text and a place in it -> exceptions that print themselves and travel between processes.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from avial_lab.core.words import brief, shortened

MOST = 2_000
"""Characters of an error's text: whatever a program holds, what is wrong with it fits on a page."""

_EXCERPT_WIDTH, _CELL_WIDTH, _HINT_WIDTH = 160, 100, 600


@dataclass(frozen=True)
class CellSpan:
    """A place in what the user typed: `cell` as the user names it (`In [4]`, `deck.avial`), 1-based
    line and column.

    `text` is the source as the user's editor counts its lines; it may be empty when only the place
    is known.
    """

    cell: str
    text: str
    line: int
    column: int

    @staticmethod
    def at(offset: int, text: str, cell: str) -> CellSpan:
        r"""The place so many characters into a text.

        >>> str(CellSpan.at(3, "a\nbc", "f.json"))
        'f.json:2:2'
        """
        before = text[:offset]
        return CellSpan(cell, text, before.count("\n") + 1, offset - before.rfind("\n"))

    def __str__(self) -> str:
        return f"{self.cell}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return brief(self, str(self))

    def excerpt(self) -> str:
        r"""The place, the line there and a caret below its column; of a long line what is near.

        >>> print(CellSpan("In [4]", "a\n  b = c", 2, 7).excerpt())
        In [4]:2:7
          b = c
              ^
        """
        place = f"{shortened(self.cell, _CELL_WIDTH)}:{self.line}:{self.column}"
        lines = self.text.splitlines()
        if not 1 <= self.line <= len(lines):
            return place
        line, before = lines[self.line - 1], max(self.column - 1, 0)
        if len(line) > _EXCERPT_WIDTH:
            first = max(min(before - _EXCERPT_WIDTH // 2, len(line) - _EXCERPT_WIDTH), 0)
            left, right = "…" * bool(first), "…" * (first + _EXCERPT_WIDTH < len(line))
            line = f"{left}{line[first : first + _EXCERPT_WIDTH]}{right}"
            before = min(before, first + _EXCERPT_WIDTH) - first + len(left)
        # A tab moves the caret as far as it moves the text above it.
        indent = "".join("\t" if char == "\t" else " " for char in line[:before])
        return f"{place}\n{line}\n{indent}^"


class AvialError(Exception):
    """What went wrong (`message`), where (`span`), and what to do about it (`hint`); as text at
    most `MOST` characters, the middle of a long message left out.
    """

    def __init__(
        self, message: str, *, span: CellSpan | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.span = span
        self.hint = hint

    @property
    def message(self) -> str:
        return str(self.args[0])

    def __str__(self) -> str:
        parts: list[str] = []
        if self.span is not None:
            parts.append(self.span.excerpt())
        if self.hint is not None:
            parts.append(f"Hint: {cut(self.hint, _HINT_WIDTH)}")
        left = MOST - len(_OURS) - 1 - sum(len(part) + 1 for part in parts)
        return "\n".join([cut(self.message, left), *parts])

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.span, self.hint)

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: a user's mistake is shown without the frames that found it."""
        return f"{type(self).__name__}: {self}".splitlines()


def cut(text: str, most: int) -> str:
    """`text` without its middle where it is longer than that: both ends say what is wrong."""
    if len(text) <= most:
        return text
    kept = (most - 30) // 2
    return f"{text[:kept]} … {len(text) - 2 * kept:,} more … {text[-kept:]}"


def _rebuild(
    kind: type[AvialError], message: str, span: CellSpan | None, hint: str | None
) -> AvialError:
    return kind(message, span=span, hint=hint)


class ParseError(AvialError):
    """The text is neither the notation nor MLIR."""


class VerifyError(AvialError):
    """The text parses, but what it says cannot be right: an undeclared write, an unknown buffer."""


class BindError(AvialError):
    """The caller's arrays do not fit the program's buffers (missing, shape, dtype, read-only)."""


class OptionError(AvialError, TypeError):
    """What the caller gave is of a kind that its option cannot be."""


class ScheduleError(AvialError):
    """No legal placement: a target without a device, more ranks asked for than there are."""


class PassError(AvialError):
    """A pass was given IR it cannot work on, or that this version does not lower yet."""


class RunError(AvialError):
    """A rank failed while the program ran; nothing was copied into the caller's arrays."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C, or the stop button, ended a run; says what it was doing, and that nothing is lost."""

    def _render_traceback_(self) -> list[str]:
        return f"KeyboardInterrupt: {self}".splitlines()


class CheckError(AvialError):
    """The run's values differ from the sequential reference's, or the program leaves its arrays."""


class ClusterError(AvialError):
    """Engines could not be started, died, or are of the wrong number."""


class CompilerCrash(AvialError):
    """The compiler's process died or was stopped; the caller's process and arrays are untouched."""


class CompilerTimeout(CompilerCrash):
    """The compiler took longer than it was allowed."""


class FaultWarning(UserWarning):
    """One of our passes failed on a program, which was compiled without it: slower, and right."""


class RenamedWarning(DeprecationWarning):
    """A name that is called another way now; it goes on working for one release."""


_OURS = "This is a fault in avial_lab, not in your program."


class InternalError(AvialError):
    """A fault in avial_lab, not in the user's cell; it keeps its traceback."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{_OURS}"

    def _render_traceback_(self) -> list[str]:
        """An internal fault is loud: the ordinary traceback, not the short form of `AvialError`."""
        # (None instead of a method would not do: IPython calls whatever has this name.)
        return [line.rstrip("\n") for line in traceback.format_exception(self)]

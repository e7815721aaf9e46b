"""What stands at an offset of the cell: a word, a value, a type, a pair of brackets.

Offset -> what was read, and the offset behind it; or an error that says what should stand there.
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation.elaboration import Place
from avial_lab.compiler.frontends.notation.source import (
    CLOSING,
    ID,
    STRING,
    TOKEN,
    VALUE,
    Source,
    quote,
)
from avial_lab.core.errors import AvialError

_VALUE = re.compile(VALUE)
_NO_ATTRIBUTE = re.compile(rf"{STRING}|//[^\n]*|({ID})")
"""A value, which no attribute dictionary holds; strings and comments before it are passed over."""


class CellReader:
    """The cell's text, and what stands at an offset of it."""

    def __init__(self, source: Source) -> None:
        self.source, self.text = source, source.text
        self.type_aliases: dict[str, str] = {}
        self.file = quote(source.cell)
        self._line, self._next_line = 1, self._line_end(1)

    # -- Places

    def _line_end(self, line: int) -> int:
        starts = self.source.line_starts
        return starts[line] if line < len(starts) else len(self.text) + 1

    def place(self, offset: int) -> Place:
        """Line and column; quick when places are asked for in textual order."""
        while offset >= self._next_line:
            self._line += 1
            self._next_line = self._line_end(self._line)
        start = self.source.line_starts[self._line - 1]
        if offset < start:
            return self.source.line_and_column(offset)
        return self._line, offset - start + 1

    def loc(self, offset: int, name: str = "") -> str:
        """` loc("x"("In [4]":7:3))`, the trailing location; name is without the %."""
        line, column = self.place(offset)
        if not name:
            return f" loc({self.file}:{line}:{column})"
        shown = f'"{name}"' if name.isascii() else quote(name)
        return f" loc({shown}({self.file}:{line}:{column}))"

    def error(
        self,
        message: str,
        offset: int,
        hint: str | None = None,
        kind: type[AvialError] | None = None,
    ) -> AvialError:
        if kind is None:
            return self.source.error(message, offset, hint=hint)
        return self.source.error(message, offset, hint=hint, kind=kind)

    # -- Tokens

    def at(self, offset: int, word: str) -> int | None:
        """The place behind `word`, or None where something else stands at `offset`."""
        offset = self.source.skip(offset)
        return offset + len(word) if self.text.startswith(word, offset) else None

    def expect(self, offset: int, word: str, after: str, hint: str | None = None) -> int:
        end = self.at(offset, word)
        if end is None:
            raise self.expected_error(repr(word), offset, after, hint)
        return end

    def expected_error(
        self, what: str, offset: int, after: str, hint: str | None = None
    ) -> AvialError:
        place = self.source.skip(offset)
        if "\n" in self.text[offset:place] or place >= len(self.text):
            place = offset  # what is missing is missing at the end of the line before
        return self.error(f"expected {what} {after}", place, hint)

    def take(self, pattern: re.Pattern[str], offset: int) -> re.Match[str] | None:
        return pattern.match(self.text, self.source.skip(offset))

    def value(self, offset: int, after: str) -> tuple[str, int, int]:
        """A value's name, where it starts and where it ends."""
        match = self.take(_VALUE, offset)
        if match is None:
            raise self.expected_error("a value (%name)", offset, after)
        return match[0], match.start(), match.end()

    def value_list(self, offset: int, after: str) -> tuple[list[tuple[str, int]], int]:
        """`%a, %b, …` as (name, offset) pairs, and the end."""
        found: list[tuple[str, int]] = []
        while True:
            name, start, offset = self.value(offset, after)
            found.append((name, start))
            comma = self.at(offset, ",")
            if comma is None:
                return found, offset
            offset, after = comma, "after ','"

    def parens(self, offset: int, what: str) -> tuple[list[tuple[str, int]], int]:
        """`(%a, %b)`, possibly empty."""
        offset = self.expect(offset, "(", f"after {what}")
        end = self.at(offset, ")")
        if end is not None:
            return [], end
        found, offset = self.value_list(offset, f"in {what}(…)")
        return found, self.expect(offset, ")", f"at the end of {what}(…)")

    def read_type(self, offset: int) -> tuple[str, int]:
        """The type that starts at `offset`, and its end."""
        start = self.source.skip(offset)
        end = self.type_end(start)
        if end == start:
            raise self.expected_error("a type", offset, "here")
        written = self.text[start:end]
        return self.type_aliases.get(written, written), end

    _TYPE_HEAD = re.compile(r"[!#]?[A-Za-z_][\w$.]*")
    _ANGLE = re.compile(rf"{STRING}|->|>=|<=|[<>]|[(\[{{]|[)\]}}]|//[^\n]*")

    def type_end(self, start: int) -> int:
        """One past the type at `start`; `start` itself where there is none."""
        text = self.text
        head = self._TYPE_HEAD.match(text, start)
        if head is None:
            if not text.startswith("(", start):
                return start
            end = self.bracket_end(start)
            arrow = self.at(end, "->")
            return end if arrow is None else self.type_end(self.source.skip(arrow))
        end = head.end()
        if not text.startswith("<", end):
            return end
        depth = 0
        for match in self._ANGLE.finditer(text, end):
            if match[0] == "<":
                depth += 1
            elif match[0] == ">":
                depth -= 1
                if depth == 0:
                    return match.end()
        raise self.error("'<' is never closed", end)

    def bracket_end(self, start: int) -> int:
        """One past the bracket that closes the one at `start`."""
        stack = [(self.text[start], start)]
        for match in TOKEN.finditer(self.text, start + 1):
            kind = match.lastgroup
            if kind == "open":
                stack.append((match[0], match.start()))
            elif kind == "close":
                self.check_pair(*stack[-1], match)
                stack.pop()
                if not stack:
                    return match.end()
        raise self.error(f"'{self.text[start]}' is never closed", start)

    def unclosed(self, opened: int) -> int:
        """The brace without an end, as the lines are indented: one whose block ends on a line that
        begins further left than its own. `opened`, the first of them all, where no line does.
        """
        stack: list[int] = []
        for match in TOKEN.finditer(self.text):
            if match[0] == "{":
                stack.append(match.start())
            elif match[0] == "}" and stack:
                line = self._line_before(match.start())
                if not line.strip() and len(line) < self._indent(stack[-1]):
                    return stack[-1]
                stack.pop()
        return opened

    def _line_before(self, offset: int) -> str:
        return self.text[self.text.rfind("\n", 0, offset) + 1 : offset]

    def _indent(self, offset: int) -> int:
        line = self._line_before(offset)
        return len(line) - len(line.lstrip())

    def check_pair(self, opener: str, opened: int, closer: re.Match[str]) -> None:
        """Whether the bracket that was opened last is the one that is closed."""
        if CLOSING[opener] == closer[0]:
            return
        if closer[0] == "}":
            raise self.error(f"'{opener}' is never closed", opened)
        raise self.error(
            f"'{closer[0]}' where '{CLOSING[opener]}' should close the '{opener}' "
            f"of line {self.source.line_and_column(opened)[0]}",
            closer.start(),
        )

    def dictionary(self, offset: int) -> tuple[str, int] | None:
        """The text between the braces of an attribute dictionary at `offset`, and its end."""
        start = self.source.skip(offset)
        if not self.text.startswith("{", start):
            return None
        end = self.bracket_end(start)
        if any(match[1] for match in _NO_ATTRIBUTE.finditer(self.text, start, end)):
            raise self.error("'{' is never closed", start, "add the missing '}'")
        return self.text[start + 1 : end - 1].strip(), end

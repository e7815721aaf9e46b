"""The text of a cell: places in it, its tokens, and where a statement ends.

Text -> offsets, spans and errors that show the user's own line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cached_property

from avial_lab.core.errors import AvialError, CellSpan, ParseError

ID = r"%[\w$.-]+"
"""An SSA name; letters beyond ASCII are allowed here and spelled out for MLIR (`ascii_names`)."""
VALUE = rf"{ID}(?:#\d+)?"
STRING = r'"(?:[^"\\\n]|\\.)*"'
WORD = r"[A-Za-z_][\w$]*(?:\.[\w$]+)*"

SKIP = re.compile(r"\s*(?://[^\n]*\s*)*")
"""Blanks and comments."""

_RESULTS = rf"{ID}(?::\d+)?(?:\s*,\s*{ID}(?::\d+)?)*"
RESULTS_AHEAD = re.compile(rf"{_RESULTS}\s*=(?!=)")

STATEMENT = re.compile(
    rf"\s*(?://[^\n]*\s*)*(?:(?P<results>{_RESULTS})\s*=\s*)?"
    rf"(?:(?P<op>{WORD})|(?P<quoted>{STRING})|(?P<other>.|\Z))",
    re.DOTALL,
)
"""The beginning of a statement: results and the operation's name; `other` is `}`, `^`, an alias or
a mistake.
"""

LABEL_AHEAD = re.compile(r"\^[\w$.-]+\s*(?:\((?:[^()]|\([^()]*\))*\)\s*)?:")

TOKEN = re.compile(
    rf"(?P<string>{STRING})|(?P<comment>//[^\n]*)|(?P<arrow>->)|(?P<open>[(\[{{])|(?P<close>[)\]}}])"
    rf"|(?P<value>{VALUE})|(?P<label>\^[\w$.-]*)|(?P<sigil>[#!@](?:{STRING}|[\w$.-]+))"
    rf"|(?P<word>{WORD})|(?P<number>\d[\w.]*)|(?P<punct>[^\s])"
)

CLOSING = {"(": ")", "[": "]", "{": "}"}
BARE_OPS = frozenset({"return", "call", "call_indirect", "unrealized_conversion_cast"})
"""Operations that MLIR lets stand without their dialect's name. (Not `constant`, which begins no
statement without its result: `memref.global constant @table` has the word too.)
"""

_MAX_DEPTH = 100
_BRACKETS = re.compile(rf"{STRING}|//[^\n]*|->|>=|<=|[(\[{{<]|[)\]}}>]|\"")


class Source:
    """The text of one cell under the name its user knows it by."""

    def __init__(self, text: str, cell: str) -> None:
        self.text = text
        self.cell = cell

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of every line; entry 0 is line 1."""
        return [0, *(m.end() for m in re.finditer("\n", self.text))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Both count from 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def span(self, offset: int) -> CellSpan:
        return CellSpan(self.cell, self.text, *self.line_and_column(min(offset, len(self.text))))

    def error(
        self,
        message: str,
        offset: int,
        *,
        hint: str | None = None,
        kind: type[AvialError] = ParseError,
    ) -> AvialError:
        """An error that shows the place `offset`; past the end of a line it shows the end."""
        return kind(message, span=self.span(offset), hint=hint)

    def skip(self, offset: int) -> int:
        """The next place that is neither blank nor comment."""
        match = SKIP.match(self.text, offset)
        return match.end() if match else offset

    def offset_of(self, line: int, column: int) -> int:
        if not 1 <= line <= len(self.line_starts):
            return 0
        return self.line_starts[line - 1] + column - 1

    def check_characters(self) -> None:
        """Refuse what MLIR's lexer would stumble over: control characters, half characters."""
        odd = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u2028\u2029\x85]", self.text)
        if odd:
            raise self.error(
                f"a character that cannot be printed (U+{ord(odd[0]):04X})",
                odd.start(),
                hint="delete it",
            )

    def check_nesting(self) -> None:
        """Refuse what is nested so deep that nobody who reads it recursively comes to its end, and
        strings without one, which are looked for again and again.
        """
        if self._brackets[0] is not None:
            raise self.error(
                f"brackets nest deeper than {_MAX_DEPTH}",
                self._brackets[0],
                hint="put inner parts into functions of their own",
            )
        if self._brackets[1] is not None:
            raise self.error("the string is never closed", self._brackets[1], hint="add the '\"'")

    @cached_property
    def _brackets(self) -> tuple[int | None, int | None]:
        """Where brackets nest too deep, and where a string begins that has no end."""
        depth = 0
        for match in _BRACKETS.finditer(self.text):
            char = match[0]
            if char in "([{<":
                depth += 1
                if depth > _MAX_DEPTH:
                    return match.start(), None
            elif char in ")]}>":
                depth = max(0, depth - 1)
            elif char == '"':
                return None, match.start()
        return None, None


def starts_statement(text: str, match: re.Match[str]) -> bool:
    """Whether the token at bracket depth 0 begins the next statement."""
    kind = match.lastgroup
    if kind == "word":
        return "." in match[0] or match[0] in BARE_OPS
    if kind == "value":
        return RESULTS_AHEAD.match(text, match.start()) is not None
    if kind == "label":
        return LABEL_AHEAD.match(text, match.start()) is not None
    if kind == "string":
        return text.startswith("(", SKIP.match(text, match.end()).end())  # type: ignore[union-attr]
    if kind == "sigil":
        return match[0][0] in "#!" and _ALIAS_AHEAD.match(text, match.start()) is not None
    return False


_ALIAS_AHEAD = re.compile(r"[#!][\w$.-]+\s*=(?!=)")


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`did you mean %c?`, or None where nothing is near."""
    names = list(known)
    near = [each for each in names if each.lower() == name.lower()]
    near = near or get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else None


def quote(text: str) -> str:
    r"""An MLIR string literal.

    >>> quote('a "b"')
    '"a \\22b\\22"'
    """
    return '"' + "".join(
        char if " " <= char <= "~" and char not in '"\\' else
        "".join(f"\\{byte:02X}" for byte in char.encode())
        for char in text
    ) + '"'  # fmt: skip


_NAMES = re.compile(rf"{STRING}|//[^\n]*|({ID})")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def ascii_names(text: str) -> str:
    """`text` with every letter of an SSA name that MLIR does not know spelled as its code.

    >>> ascii_names('%größe = memref.load %a[%i]  // größer')
    '%gr$f6$$df$e = memref.load %a[%i]  // größer'
    """

    def spell(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        return _NOT_ASCII.sub(lambda char: f"${ord(char[0]):x}$", match[0])

    return _NAMES.sub(spell, text)


_FIRST = re.compile(ID)


def first_name(results: str | None) -> str:
    """`%x:2, %y` -> `x`."""
    if results is None:
        return ""
    match = _FIRST.match(results)
    return match[0][1:] if match else ""

"""What surrounds a place in a program that is still being typed: the operation it is in, and
the values that can be named there.

Text, offset -> Surroundings. The text need not be right: nothing here parses, braces are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from avial_lab.compiler.frontends.notation.source import TOKEN

_RESULT_OF = {
    "avial.target": "target",
    "avial.task": "task",
    "avial.replicate": "task",
    "avial.converge": "task",
}
"""What the result of an operation is to its reader; of all others it is a value."""


@dataclass(frozen=True)
class Surroundings:
    """`op` is the operation of the statement at that place, None where one may begin; `operands`
    the values it names before it. `names` are the values visible there: `%a` -> buffer, target,
    task, argument or value, the nearest last.
    """

    op: str | None
    operands: tuple[str, ...]
    names: dict[str, str]
    in_text: bool
    """In a comment or a string, where no name of the program means anything."""
    word: str
    """The last word of the statement behind its operation: `after`, `to`."""


def surroundings(text: str, offset: int) -> Surroundings:
    reader = _Reader()
    end, quoted = 0, False
    for token in TOKEN.finditer(text, 0, offset):
        reader.gap(text[end : token.start()])
        reader.take(token)
        end = token.end()
        quoted = token[0] == '"'  # one that is not closed before the place
        if quoted:
            break
    reader.gap(text[end:offset])
    line = text.rfind("\n", 0, offset) + 1
    return Surroundings(
        reader.statement.op,
        tuple(reader.statement.operands),
        {name: what for scope in reader.scopes for name, what in scope.items()},
        quoted or _in_comment(text[line:offset]),
        reader.statement.word,
    )


@dataclass
class _Statement:
    """The statement being read; `depth` counts its open parentheses."""

    op: str | None = None
    results: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    label: bool = False
    depth: int = 0
    last: str = ""
    word: str = ""


class _Reader:
    """Tokens in, scopes out; a brace opens a scope with what its statement named anew."""

    def __init__(self) -> None:
        self.statement = _Statement()
        self.around: list[_Statement] = []
        self.scopes: list[dict[str, str]] = [{}]
        self.visible: Counter[str] = Counter()  # in how many of the scopes a name is

    def gap(self, blanks: str) -> None:
        """A line that ends outside parentheses, and not after a comma, ends the statement."""
        open_still = self.statement.depth or self.statement.last in (",", "=")
        if "\n" in blanks and not open_still:
            self._end()

    def take(self, token: re.Match[str]) -> None:
        statement, text = self.statement, token[0]
        if token["comment"]:
            return
        if token["value"]:
            self._name(re.split("[:#]", text)[0])
        elif token["label"] and statement.op is None:
            statement.op, statement.label = text, True
        elif token["word"] and statement.op is None:
            statement.op = text
        elif token["word"]:
            statement.word = text
        elif text == "{":
            self._open()
        elif text == "}":
            self._close()
        elif token["open"] or token["close"]:
            statement.depth += 1 if token["open"] else -1
        statement.last = text

    def _name(self, name: str) -> None:
        statement = self.statement
        if statement.op is None:
            statement.results.append(name)
        elif statement.label:
            self._add(name, "argument")
        else:
            statement.operands.append(name)

    def _open(self) -> None:
        """Names that the statement brings with it are visible inside: buffers, loop variables."""
        statement = self.statement
        what = "buffer" if statement.op == "avial.schedule" else "argument"
        inside = {name: what for name in statement.operands if not self.visible[name]}
        self.scopes.append({})
        for name in inside:
            self._add(name, what)
        self.around.append(statement)
        self.statement = _Statement()

    def _close(self) -> None:
        if not self.around:
            return
        self.visible.subtract(self.scopes.pop().keys())
        self.statement = self.around.pop()

    def _end(self) -> None:
        what = _RESULT_OF.get(self.statement.op or "", "value")
        for name in self.statement.results:
            self._add(name, what)
        self.statement = _Statement()

    def _add(self, name: str, what: str) -> None:
        """Whatever it was in this scope before."""
        if name not in self.scopes[-1]:
            self.visible[name] += 1
        self.scopes[-1][name] = what


def _in_comment(line: str) -> bool:
    return "//" in re.sub(r'"(?:[^"\\]|\\.)*"?', "", line)

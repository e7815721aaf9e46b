"""The names a program binds to the caller's arrays, found without parsing it.

Text -> names, and where they stand. Needs no MLIR, so that the caller's process can pick the arrays
before it asks the compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""//[^\n]*                     # comment
      | "(?:[^"\\\n]|\\.)*"          # string, or a quoted operation name
      | %[\w$.\-]+                   # value
      | ->
      | [A-Za-z_][A-Za-z0-9_$.]*     # keyword or operation name
      | [{}()]
    """,
    re.VERBOSE,
)
_SCHEDULE = ("avial.schedule", '"avial.schedule"')


def program_names(text: str) -> tuple[str, ...]:
    """The arguments of the function that holds the schedules, or else the operands of all
    schedules.

    >>> program_names("avial.schedule %a, %b: memref<4xf32> { }")
    ('a', 'b')
    >>> program_names("func.func @f(%x: memref<4xf32>) { avial.schedule %x { } return }")
    ('x',)
    """
    tokens = [t for t in _TOKEN.findall(text) if not t.startswith("//")]
    names: dict[str, None] = {}
    inside = _functions(tokens)
    for at, token in enumerate(tokens):
        if token not in _SCHEDULE:
            continue
        start = next((start for start, body, end in inside if body <= at < end), None)
        names.update(dict.fromkeys(_values(tokens, at if start is None else start)))
    return tuple(names)


def place_of(text: str, name: str) -> tuple[int, int] | None:
    r"""Line and column where %name first stands; None where it does not.

    >>> place_of("// %a, %b\navial.schedule %a, %b { }", "b")
    (2, 20)
    """
    for match in _TOKEN.finditer(text):
        if match[0] == f"%{name}":
            start = match.start()
            return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    return None


def _functions(tokens: list[str]) -> list[tuple[int, int, int]]:
    """(where `func.func` stands, where its body begins, where it ends) for every function."""
    found = []
    for at, token in enumerate(tokens):
        if token != "func.func":
            continue
        begin = _body(tokens, at)
        depth = 0
        for end in range(begin, len(tokens)):
            depth += {"{": 1, "}": -1}.get(tokens[end], 0)
            if depth <= 0:
                break
        else:
            end = len(tokens)
        found.append((at, begin, end))
    return found


def _body(tokens: list[str], at: int) -> int:
    """The brace that opens a function's body: outside its parentheses, and not that of its
    attributes.
    """
    depth = 0
    for k in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[k], 0)
        if tokens[k] == "{" and depth == 0 and tokens[k - 1] != "attributes":
            return k
    return len(tokens)


def _values(tokens: list[str], at: int) -> Iterator[str]:
    """The names up to the brace that opens the body; braces in parentheses are attributes of
    arguments.
    """
    depth = 0
    for before, token in zip(tokens[at:], tokens[at + 1 :], strict=False):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "{" and (depth == 0 or before == "("):
            return
        if token.startswith("%"):
            yield token[1:]

"""The names a program binds to the caller's arrays, found without parsing it.

Text -> names, and where they stand. Needs no MLIR, so that the caller's process can pick the arrays
before it asks the compiler.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from avial_lab.compiler.frontends.notation.source import quote
from avial_lab.compiler.frontends.notation.vocabulary import MODULE_OPS, QUOTED_MODULE_OPS

_TOKEN = re.compile(
    r"""//[^\n]*                     # comment
      | "(?:[^"\\\n]|\\.)*"?         # string, or a quoted operation name; open: what is left
      | %[\w$.\-]+                   # value
      | @(?:[\w$.\-]+|"[^"\n]*")     # symbol
      | \^[\w$.\-]+                  # block
      | ->
      | [A-Za-z_][A-Za-z0-9_$.]*     # keyword or operation name
      | [{}()]
    """,
    re.VERBOSE,
)
_OTHERS = MODULE_OPS | QUOTED_MODULE_OPS
_SCHEDULE = ("avial.schedule", '"avial.schedule"')
_OPERATIONS = frozenset(
    f"avial.{name}" for name in ("schedule", "task", "replicate", "converge", "target")
)


def program_names(text: str, *, function: str | None = None) -> tuple[str, ...]:
    """The arguments of the function that holds the schedules, or else the operands of all
    schedules; in a text without any, the arguments of `function`, by default the one that can be
    meant.

    >>> program_names("avial.schedule %a, %b: memref<4xf32> { }")
    ('a', 'b')
    >>> program_names("func.func @f(%x: memref<4xf32>) { avial.schedule %x { } return }")
    ('x',)
    >>> program_names("func.func @f(%x: memref<?xf32>, %n: index) { return }")
    ('x', 'n')
    """
    tokens = _tokens(text)
    names: dict[str, None] = {}
    inside = _functions(tokens)
    bodies = [body for _, body, _ in inside]
    plain = True
    for at, token in enumerate(tokens):
        if token not in _SCHEDULE:
            continue
        plain = False
        start, _, end = inside[bisect_right(bodies, at) - 1] if bodies else (0, 0, 0)
        within = bool(bodies) and bodies[0] <= at < end
        names.update(dict.fromkeys(_values(tokens, start if within else at)))
    if plain:
        for chosen in _meant(_heads(tokens, inside), function):
            names.update(dict.fromkeys(chosen.arguments))
    return tuple(names)


def function_arguments(text: str) -> dict[str, tuple[str, ...]]:
    """The names of the arguments of every function with a body, by the function's name.

    >>> function_arguments("func.func @f(%x: memref<?xf32>, %n: index) { return }")
    {'f': ('x', 'n')}
    """
    tokens = _tokens(text)
    return {head.name: head.arguments for head in _heads(tokens, _functions(tokens))}


def argument_named(name: str, known: Sequence[str]) -> str:
    """The name itself; of a number that is no name, the argument at that position.

    >>> argument_named("1", ("a", "b")), argument_named("c", ("a", "b"))
    ('b', 'c')
    """
    position = int(name) if name.isascii() and name.isdigit() and len(name) < 9 else len(known)
    return name if name in known or position >= len(known) else known[position]


def holds_schedule(text: str) -> bool:
    """Whether the text has an avial.schedule, or what belongs into one; a text without is a plain
    function.

    >>> holds_schedule("// avial.schedule"), holds_schedule('"avial.schedule"() ({ }) : () -> ()')
    (False, True)
    """
    return any(token.strip('"') in _OPERATIONS for token in _tokens(text))


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text) if not token.startswith("//")]


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


@dataclass(frozen=True)
class _Head:
    """A function with a body, as far as its text tells."""

    name: str
    private: bool
    arguments: tuple[str, ...]
    names: frozenset[str]
    """Symbols in its body: what it may call."""


def _meant(heads: list[_Head], function: str | None) -> list[_Head]:
    """The functions that may be meant, as `compiler/frontends/mlir/functions.py` decides: several,
    or none, are an error there.
    """
    if function is not None:
        return [head for head in heads if head.name == function.removeprefix("@")]
    found = [head for head in heads if not head.private] or heads
    called = {name for head in found for name in head.names - {head.name}}
    return [head for head in found if head.name not in called] or found


def _heads(tokens: list[str], inside: list[tuple[int, int, int]]) -> list[_Head]:
    """Every function with a body, those in MLIR's generic form behind the others."""
    heads: list[_Head] = []
    for start, body, end in inside:
        if body >= len(tokens) or not _OTHERS.isdisjoint(tokens[start + 1 : body]):
            continue  # a declaration: the brace is another one's
        named = next((k for k in range(start, body) if tokens[k].startswith("@")), start)
        private = "private" in tokens[start:named]
        symbols = _symbols(tokens[body:end])
        heads.append(_Head(_bare(tokens[named]), private, tuple(_values(tokens, start)), symbols))
    quoted = [k for k, token in enumerate(tokens) if token == quote("func.func")]
    for start, end in pairwise([*quoted, len(tokens)]):
        head = _generic_head(tokens[start:end])
        if head is not None:
            heads.append(head)
    return heads


def _generic_head(tokens: list[str]) -> _Head | None:
    """`"func.func"() <{sym_name = "f", …}> ({ ^bb0(%a: …): … })`; None without a body."""
    opened = next((k for k, pair in enumerate(pairwise(tokens)) if pair == ("(", "{")), None)
    if opened is None or tokens[opened + 2 : opened + 3] in ([], ["}"]):
        return None
    label, arguments = tokens[opened + 2], tokens[opened + 3 :]
    labelled = label.startswith("^") and arguments[:1] == ["("]
    visibility = _attribute(tokens, "sym_visibility")
    return _Head(
        _attribute(tokens, "sym_name"),
        visibility not in ("", "public"),
        tuple(_until_closed(arguments[1:])) if labelled else (),
        _symbols(tokens),
    )


def _symbols(tokens: list[str]) -> frozenset[str]:
    return frozenset(_bare(token) for token in tokens if token.startswith("@"))


def _bare(token: str) -> str:
    return token.removeprefix("@").strip('"')


def _attribute(tokens: list[str], name: str) -> str:
    """The string behind `name =`, "" where there is none."""
    at = tokens.index(name) if name in tokens else len(tokens)
    return _bare(tokens[at + 1]) if at + 1 < len(tokens) else ""


def _until_closed(tokens: list[str]) -> Iterator[str]:
    """The values before the parenthesis that closes."""
    depth = 1
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0:
            return
        if token.startswith("%"):
            yield token[1:]


def _functions(tokens: list[str]) -> list[tuple[int, int, int]]:
    """(where `func.func` stands, where its body begins, where it ends) for every function."""
    found: list[tuple[int, int, int]] = []
    closed = _closed(tokens)
    end = 0
    for at, token in enumerate(tokens):
        if token != "func.func" or at < end:  # none stands in another
            continue
        begin = _body(tokens, at)
        end = closed.get(begin, len(tokens))
        found.append((at, begin, end))
        end = end if begin < len(tokens) else 0
    return found


def _closed(tokens: list[str]) -> dict[int, int]:
    """Where each brace is closed that is."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token == "{":
            opened.append(at)
        elif token == "}" and opened:
            found[opened.pop()] = at
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
        if tokens[k] == "func.func" and k > at:
            break  # what came before is a declaration
    return len(tokens)


def _values(tokens: list[str], at: int) -> Iterator[str]:
    """The names up to the brace that opens the body; braces in parentheses are attributes of
    arguments.
    """
    depth = 0
    for k in range(at + 1, len(tokens)):
        before, token = tokens[k - 1], tokens[k]
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token in _SCHEDULE or token == "func.func":
            return
        if token == "{" and (depth == 0 or before == "("):
            return
        if token.startswith("%"):
            yield token[1:]

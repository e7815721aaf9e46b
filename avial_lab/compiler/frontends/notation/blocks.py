"""Regions of statements: their braces, what follows them, and what they give.

`{ … scf.yield %x }` behind a head -> the region with its terminator, its place and its types.
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.elaboration import Type
from avial_lab.compiler.frontends.notation.rules import (
    MANY,
    RULES,
    USAGE,
    finish,
    names_in,
    rule,
    types_where_expected,
)
from avial_lab.compiler.frontends.notation.source import VALUE, first_name


def open_brace(e: Elaborator, offset: int, after: str) -> int:
    return e.expect(offset, "{", after)


def close(e: Elaborator, results: str | None, start: int, end: int) -> int:
    """What may follow a statement's last region: attributes, a location; else its own location is
    added.
    """
    following = e.source.skip(end)
    if e.text.startswith("{", following):
        end = e.bracket_end(following)
        e.out.put(f" {e.text[following:end]}", following)
        following = e.source.skip(end)
    if e.text.startswith("loc(", following):
        end = e.bracket_end(following + 3)
        e.out.put(f" {e.text[following:end]}\n", following)
        return end
    e.out.put(f"{e.loc(start, first_name(results))}\n", start)
    return end


def statement_head(e: Elaborator, results: str | None, op: str) -> str:
    return f"{results} = {op}" if results else op


def region_of(
    e: Elaborator,
    op: str,
    start: int,
    opened: int,
    arguments: list[tuple[str, Type]],
    offsets: list[int],
    *,
    block_types: list[Type] | None = None,
    expected: list[Type] | None = None,
) -> int:
    """`{ … }` behind the brace at `opened - 1`, written with the braces; the place behind it."""
    owner, e.owner = e.owner, e.place(start)
    for (name, _), offset in zip(arguments, offsets, strict=True):
        e.own_argument(name, offset)
    e.out.put(" {\n", opened - 1)
    end = e.region(
        opened,
        arguments=arguments,
        block_types=block_types,
        expected=expected,
        opened_at=opened - 1,
    )
    e.implied_terminator(op, start)
    e.out.put("}", end - 1)
    e.owner = owner
    return end


def _operand_types(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """`op %x, %y : T, U`, nothing or each operand's type; no results."""
    match = MANY.match(e.text, offset)
    if match is None:
        following = e.source.skip(offset)
        if e.text.startswith((":", "loc("), following):
            return e.copied(results, op, start, offset)
        e.out.put(f"{e.text[start:offset]}{e.loc(start)}\n", start)
        return offset
    found = types_where_expected(e, names_in(match), e.expected)
    e.yielded = list(found)
    suffix = None if None in found else f" : {', '.join(map(str, found))}"
    return finish(e, results, op, start, match.end(), suffix, [])


for _name in [
    "scf.yield",
    "affine.yield",
    "linalg.yield",
    "scf.reduce.return",
    "memref.atomic_yield",
    "return",
    "func.return",
    "gpu.yield",
    "memref.alloca_scope.return",
]:
    RULES[_name] = _operand_types
USAGE |= {"scf.yield": "scf.yield %x", "linalg.yield": "linalg.yield %x"}
_CONDITION = re.compile(rf"\s*\(\s*({VALUE})\s*\)\s*({VALUE}(?:\s*,\s*{VALUE})*)?")


@rule("scf.condition", "OP(%go_on) %x, %y")
def _condition(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    match = _CONDITION.match(e.text, offset)
    if match is None:
        return e.copied(results, op, start, offset)
    e.type_of(match[1], match.start(1), "i1")
    found = [e.type_of(*pair) for pair in names_in(match, 2)] if match[2] else []
    e.yielded = found
    suffix = None if None in found else (f" : {', '.join(map(str, found))}" if found else "")
    return finish(e, results, op, start, match.end(), suffix, [])

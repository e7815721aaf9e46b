"""What the notation knows of MLIR's operations: one rule for each, and what rules have in common.

A rule reads the operands of a statement, and either adds the types that were left out or, where
they are written, copies the statement. The modules that fill `RULES` are named for the operations
they know; rules are grouped by the form of the statement:

    same      %z = arith.addi %x, %y            : T                    result T
    compare   %z = arith.cmpi slt, %x, %y       : T                    result i1
    load      %x = memref.load %a[%i]           : memref               result its element
    store     memref.store %x, %a[%i]           : memref
    cast      %y = arith.sitofp %x to f32       : T to f32
    fixed     %i = gpu.thread_id x                                     result index
"""

from __future__ import annotations

import re
from collections.abc import Callable

from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.elaboration import Type
from avial_lab.compiler.frontends.notation.hints import (
    LITERAL,
    constant_line,
    kind_of,
    unequal_types,
    wrong_kind,
)
from avial_lab.compiler.frontends.notation.source import SKIP, VALUE, first_name
from avial_lab.core.errors import AvialError, VerifyError

Rule = Callable[[Elaborator, str | None, str, int, int], int]
RULES: dict[str, Rule] = {}
USAGE: dict[str, str] = {}
"""How an operation is written in short, for the hint of an error in it."""


def rule(names: str, usage: str = "") -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        for name in names.split():
            RULES[name] = rule
            if usage:
                USAGE[name] = usage.replace("OP", name)
        return rule

    return enter


def finish(
    e: Elaborator,
    results: str | None,
    op: str,
    start: int,
    end: int,
    suffix: str | None,
    found: list[Type],
) -> int:
    """Write a statement whose operands end at `end`: with `suffix` behind it, or copied where types
    are written.
    """
    text = e.text
    following = SKIP.match(text, end).end()  # type: ignore[union-attr]
    char = text[following : following + 1]
    if char == "{":
        end = e.bracket_end(following)
        following = SKIP.match(text, end).end()  # type: ignore[union-attr]
        char = text[following : following + 1]
    if char == ":" or (char == "l" and text.startswith("loc(", following)):
        return e.copied(results, op, start, end, found=found)
    if char and char in ",[(=<+-*/|;?":
        usage = USAGE.get(op)
        raise e.error(
            f"'{char}' where {op} has ended", following, f"write it as: {usage}" if usage else None
        )
    if suffix is None:
        raise no_type(e, op, start)
    name = first_name(results)
    e.out.put(f"{text[start:end]}{suffix}{e.loc(start, name)}\n", start)
    if results is not None:
        e.define_results(results, found)
    return end


def copied_operands(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """Copies an operation whose operands are not those of the notation; ParseError where a number
    stands among them, which MLIR takes for no value.
    """
    line = re.compile(r"[^\n]*").match(e.text, offset)[0]  # type: ignore[index]
    for operand in _OPERAND.finditer(line):
        literal = LITERAL.fullmatch(operand[1])
        if literal is None:
            continue
        known = [t for name in NAME.findall(line) if isinstance(t := e.values.get(name), str)]
        hint = f"give the number a name first: {constant_line(literal[0], next(iter(known), None))}"
        where = offset + operand.start(1)
        raise e.error(f"{op} takes values, and {literal[0]} is a number", where, hint)
    return e.copied(results, op, start, offset)


_OPERAND = re.compile(r"(?:^|,)\s*([^\s,:{}]+)(?=\s*(?:,|:|\{|//|$))")


def check_kinds(e: Elaborator, op: str, names: list[tuple[str, int]], end: int) -> None:
    """VerifyError where integers are added as floats, or operands have two types; what writes its
    types itself is left to MLIR.
    """
    if e.at(end, ":") is not None:
        return
    known = [(n, at, t) for n, at in names if isinstance(t := e.values.get(n), str)]
    for name, where, type_ in known:
        wrong = wrong_kind(op, name, type_)
        if wrong is not None:
            raise e.error(wrong[0], where, wrong[1], VerifyError)
    (first, _, type_), *others = known or [("", 0, "")]
    for name, where, other in others:
        if other != type_ and kind_of(other) and kind_of(type_) and "<" not in other + type_:
            message, hint = unequal_types(op, (first, type_), (name, other))
            raise e.error(message, where, hint, VerifyError)


def no_type(e: Elaborator, op: str, start: int) -> AvialError:
    return e.error(
        f"the types of {op} do not follow from its operands here", start, "write them", VerifyError
    )


ONE = re.compile(rf"\s*({VALUE})")
TWO = re.compile(
    rf"\s*({VALUE})\s*,\s*({VALUE})(\s*(?:overflow|fastmath)\s*<[^<>\n]*>|\s+exact\b)*"
)
MANY = re.compile(rf"\s*({VALUE}(?:\s*,\s*{VALUE})*)(\s*(?:overflow|fastmath)\s*<[^<>\n]*>)*")
NAME = re.compile(VALUE)


def names_in(match: re.Match[str], group: int = 1) -> list[tuple[str, int]]:
    """The values in a group of a match, with their offsets."""
    return [(m[0], match.start(group) + m.start()) for m in NAME.finditer(match[group])]


def types_where_expected(
    e: Elaborator, values: list[tuple[str, int]], expected: list[Type]
) -> list[str | None]:
    """The types of values that leave a region; what the region is to give decides for constants."""
    found: list[str | None] = []
    for k, (name, where) in enumerate(values):
        wanted = expected[k] if k < len(expected) else None
        found.append(e.type_of(name, where, wanted if isinstance(wanted, str) else None))
    return found

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

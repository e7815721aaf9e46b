"""Heads of loops: bounds and carried values.

`%i, %j = 0, 0 to 20, %n step 1, 2` and `iter_args(%sum = %zero) -> f32` -> their parts, each with
its place.
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.rules import USAGE, no_type
from avial_lab.compiler.frontends.notation.source import VALUE
from avial_lab.core.errors import VerifyError

_INTEGER = re.compile(r"-?\d+")
_VALUE = re.compile(VALUE)
Bound = tuple[str, int]
"""A value or an integer literal as written, and where."""


def read_bound(e: Elaborator, offset: int, after: str) -> tuple[Bound, int]:
    match = e.take(_VALUE, offset) or e.take(_INTEGER, offset)
    if match is None:
        raise e.expected_error("a value or an integer", offset, after)
    return (match[0], match.start()), match.end()


def read_bounds(e: Elaborator, offset: int, after: str) -> tuple[list[Bound], int]:
    """`(%a, 20)` or `%a, 20`."""
    opened = e.at(offset, "(")
    found: list[Bound] = []
    if opened is not None and (closed := e.at(opened, ")")) is not None:
        return found, closed
    offset = offset if opened is None else opened
    while True:
        bound, offset = read_bound(e, offset, after)
        found.append(bound)
        comma = e.at(offset, ",")
        if comma is None:
            break
        offset = comma
    return found, offset if opened is None else e.expect(offset, ")", f"{after} …")


def as_value(e: Elaborator, bound: Bound, type_: str) -> str:
    """The name of the bound, a constant where it is a literal."""
    text, offset = bound
    if text.startswith("%"):
        e.type_of(text, offset, type_)
        return text
    return e.constant(text, type_, offset)


def check_step(e: Elaborator, steps: list[Bound]) -> None:
    for text, offset in steps:
        if not text.startswith("%") and int(text[:20]) <= 0:
            raise e.error(f"the step is {text}; a loop counts upwards", offset, kind=VerifyError)


def carried_values(
    e: Elaborator, offset: int, what: str
) -> tuple[list[tuple[str, int]], list[Bound], int]:
    """`(%sum = %zero, …)`: the names inside the loop, what they start from, and the end."""
    offset = e.expect(offset, "(", f"after {what}")
    names: list[tuple[str, int]] = []
    starts: list[Bound] = []
    end = e.at(offset, ")")
    while end is None:
        name, where, offset = e.value(offset, f"in {what}(…)")
        offset = e.expect(offset, "=", f"after {name}")
        start, where_start, offset = e.value(offset, f"after {name} =")
        names.append((name, where))
        starts.append((start, where_start))
        comma = e.at(offset, ",")
        if comma is None:
            end = e.expect(offset, ")", f"at the end of {what}(…)")
        else:
            offset = comma
    return names, starts, end


def arrow_types(e: Elaborator, offset: int) -> tuple[list[str] | None, int]:
    """`-> (T, U)` or `-> T` where it is written."""
    arrow = e.at(offset, "->")
    if arrow is None:
        return None, offset
    begin = e.source.skip(arrow)
    if e.text.startswith("(", begin):
        end = e.bracket_end(begin)
        return types.split_commas(e.text[begin + 1 : end - 1]), end
    written, end = e.read_type(begin)
    return [written], end


def start_types(
    e: Elaborator, op: str, start: int, starts: list[Bound], written: list[str] | None
) -> list[str]:
    found: list[str] = []
    for k, (name, where) in enumerate(starts):
        wanted = written[k] if written and k < len(written) else None
        type_ = e.type_of(name, where, wanted) or wanted
        if type_ is None:
            raise no_type(e, op, start)
        found.append(type_)
    return found


def parallel_head(
    e: Elaborator, op: str, offset: int
) -> tuple[list[tuple[str, int]], list[Bound], list[Bound], list[Bound], int]:
    """`(%i, …) = (…) to (…) step (…)`, each list with or without its parentheses; the step may be
    left out.
    """
    opened = e.at(offset, "(")
    if opened is not None and e.at(opened, ")") is not None:
        raise e.error(f"{op} needs a loop variable", offset, USAGE.get(op))
    variables, offset = e.value_list(offset if opened is None else opened, f"after {op}")
    if opened is not None:
        offset = e.expect(offset, ")", "after the loop variables")
    lower, offset = read_bounds(e, e.expect(offset, "=", "after the loop variables"), "after '='")
    upper, offset = read_bounds(e, e.expect(offset, "to", "after the lower bounds"), "after 'to'")
    step_at = e.at(offset, "step")
    if step_at is None:
        steps: list[Bound] = [("1", where) for _, where in variables]
    else:
        steps, offset = read_bounds(e, step_at, "after 'step'")
        check_step(e, steps)
    for what, bounds in (("lower bounds", lower), ("upper bounds", upper), ("steps", steps)):
        if len(bounds) != len(variables):
            raise e.error(
                f"{len(variables)} loop variable{'s' if len(variables) != 1 else ''} "
                f"but {len(bounds)} {what}",
                bounds[0][1] if bounds else offset,
                kind=VerifyError,
            )
    return variables, lower, upper, steps, offset

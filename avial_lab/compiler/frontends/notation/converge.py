"""avial.converge in short notation; the grammar stands in `elaborate.py`.

avial.converge until %error lt 1.0e-6 max 1000 { … }
avial.converge { affine.for %t = 0 to 1000 { … } }
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.rules import RULES, USAGE
from avial_lab.compiler.frontends.notation.source import quote
from avial_lab.compiler.frontends.notation.tasks import (
    TASK,
    body,
    close_task,
    extra_attributes,
    require_schedule,
    tasks_after,
    unique_name,
)
from avial_lab.core.errors import VerifyError

_FLOAT = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
_BY_LOOP = re.compile(r"\{|attributes\b|after\b")
_COUNT = re.compile(r"\d+")
_PREDICATES = {
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
}
_PREDICATE = re.compile(r"<=|>=|<|>|[a-z]+")


def _converge(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    require_schedule(e, op, start)
    until = e.take(re.compile(r"until\b"), offset)
    operand: list[str] = []
    signature: list[str] = []
    attributes = ""
    if until is not None:
        name, where, offset = e.value(until.end(), "after 'until'")
        type_ = _condition_type(e, name, where)
        operand, signature = [name], [type_]
        match = e.take(_PREDICATE, offset)
        if match is None or match[0] not in _PREDICATES:
            raise e.expected_error("lt, le, gt or ge", offset, f"after {name}")
        number = e.take(_FLOAT, match.end())
        if number is None:
            raise e.expected_error("a number", match.end(), f"after {match[0]}")
        threshold = float(number[0])
        if threshold in (float("inf"), float("-inf")):
            raise e.error(f"{number[0]} is not a finite number", number.start())
        attributes = (
            f', predicate = "{_PREDICATES[match[0]]}", threshold = {_float_text(threshold)} : f64'
        )
        bound = e.take(re.compile(r"max\b"), number.end())
        if bound is None:
            raise e.expected_error(
                "'max'", number.end(), "after the condition", "bound the rounds: max 1000"
            )
        offset = bound.end()
    count = e.take(_COUNT, offset)
    if until is None and e.take(_BY_LOOP, offset) is not None:
        return _around_a_loop(e, results, op, start, offset)
    if count is None:
        raise e.expected_error(
            "a number of rounds or 'until'", offset, f"after {op}", f"write it as: {USAGE[op]}"
        )
    if len(count[0]) > 18 or int(count[0]) < 1:
        raise e.error(f"{count[0]} rounds; at least 1 is needed", count.start(), kind=VerifyError)
    after, offset = tasks_after(e, results, count.end())
    rounds = f", max = {count[0]} : i64{attributes}"
    operands = operand, signature
    return _region(e, results, op, start, offset, operands=operands, after=after, rounds=rounds)


def _around_a_loop(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """Without a number of rounds: one loop in it says them."""
    after, offset = tasks_after(e, results, offset)
    return _region(e, results, op, start, offset, operands=([], []), after=after, rounds="")


def _region(
    e: Elaborator,
    results: str | None,
    op: str,
    start: int,
    offset: int,
    *,
    operands: tuple[list[str], list[str]],
    after: list[tuple[str, int]],
    rounds: str,
) -> int:
    """From its attributes on. operands: what is watched, and its type."""
    extra, offset = extra_attributes(e, offset)
    for key in ("max", "predicate", "threshold"):
        extra.pop(key, None)
    opened = e.expect(offset, "{", f"after {op}")
    name, written = unique_name(e, results, extra, start)
    watched, signature = operands
    given = ", ".join([*watched, *(n for n, _ in after)])
    types_ = ", ".join([*signature, *[TASK] * len(after)])
    head = f"{results} = " if results else ""
    e.out.put(f'{head}"{op}"({given}) ({{\n', start)
    end = body(e, start, opened)
    e.out.put(
        f"}}) {{name = {quote(name)}{rounds}, "
        f"operandSegmentSizes = array<i32: {len(watched)}, {len(after)}>{written}}}"
        f" : ({types_}) -> {TASK}",
        end - 1,
    )
    return close_task(e, results, name, start, end)


def _condition_type(e: Elaborator, name: str, where: int) -> str:
    type_ = e.type_of(name, where)
    known = types.memref(type_) if type_ else None
    if type_ is None or known is None or known.shape is None:
        raise e.error(f"{name} is {type_}, not a buffer", where, kind=VerifyError)
    if any(n != 1 for n in known.shape):
        raise e.error(
            f"{name} is {type_}; 'until' compares a buffer of one element", where,
            "reduce it into a memref of one element first", VerifyError,
        )  # fmt: skip
    return type_


def _float_text(number: float) -> str:
    text = repr(number)
    mantissa, exponent, power = text.partition("e")
    return text if "." in mantissa else f"{mantissa}.0{exponent}{power}"


RULES["avial.converge"] = _converge
USAGE["avial.converge"] = "avial.converge until %error lt 1.0e-6 max 1000 { … }"

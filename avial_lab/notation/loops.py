"""Loops, conditions and launches: literal bounds, and the types of carried values.

scf.for %i = 0 to 20 step 2 iter_args(%sum = %zero) {
scf.parallel %i, %j = 0, 0 to 20, %n {
scf.while (%k = %start) { … scf.condition(%go) %k } do { ^bb0(%k): … scf.yield %next }
%r = scf.if %condition { … scf.yield %x } else { … scf.yield %y }
affine.for %i = 0 to 20 iter_args(%sum = %zero) {       affine.parallel %i = 0 to 20 {
gpu.launch {            a thread for each index of what the body writes (parse/launches.py)
"""

from __future__ import annotations

import re

from avial_lab.errors import VerifyError
from avial_lab.notation import types
from avial_lab.notation.elaborate import Elaborator, Place, Type, _first_name
from avial_lab.notation.operations import RULES, USAGE, no_type, types_where_expected
from avial_lab.notation.source import VALUE

_INTEGER = re.compile(r"-?\d+")
_VALUE = re.compile(VALUE)
_SIMPLE_PARALLEL = re.compile(rf"\s*({VALUE})\s*=\s*({VALUE}|-?\d+)\s+to\s+({VALUE}|-?\d+)\s*\{{")
_BARE_LAUNCH = re.compile(r"\s*\{")

Bound = tuple[str, int]
"""A value or an integer literal as written, and where."""


def _bound(e: Elaborator, offset: int, after: str) -> tuple[Bound, int]:
    match = e.take(_VALUE, offset) or e.take(_INTEGER, offset)
    if match is None:
        raise e.expected_error("a value or an integer", offset, after)
    return (match[0], match.start()), match.end()


def _bounds(e: Elaborator, offset: int, after: str) -> tuple[list[Bound], int]:
    """`(%a, 20)` or `%a, 20`."""
    opened = e.at(offset, "(")
    found: list[Bound] = []
    if opened is not None and (closed := e.at(opened, ")")) is not None:
        return found, closed
    offset = offset if opened is None else opened
    while True:
        bound, offset = _bound(e, offset, after)
        found.append(bound)
        comma = e.at(offset, ",")
        if comma is None:
            break
        offset = comma
    return found, offset if opened is None else e.expect(offset, ")", f"{after} …")


def _as_value(e: Elaborator, bound: Bound, type_: str) -> str:
    """The name of the bound, a constant where it is a literal."""
    text, offset = bound
    if text.startswith("%"):
        e.type_of(text, offset, type_)
        return text
    return e.constant(text, type_, offset)


def _check_step(e: Elaborator, steps: list[Bound]) -> None:
    for text, offset in steps:
        if not text.startswith("%") and int(text[:20]) <= 0:
            raise e.error(f"the step is {text}; a loop counts upwards", offset, kind=VerifyError)


def _open(e: Elaborator, offset: int, after: str) -> int:
    return e.expect(offset, "{", after)


def _close(e: Elaborator, results: str | None, start: int, end: int) -> int:
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
    e.out.put(f"{e.loc(start, _first_name(results))}\n", start)
    return end


def _region(
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


def _carried(
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


def _arrow_types(e: Elaborator, offset: int) -> tuple[list[str] | None, int]:
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


def _start_types(
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


def _head(e: Elaborator, results: str | None, op: str) -> str:
    return f"{results} = {op}" if results else op


def _scf_for(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    unsigned = e.at(offset, "unsigned ")
    if unsigned is not None:
        offset = unsigned
    variable, where, offset = e.value(offset, f"after {op}")
    lower, offset = _bound(e, e.expect(offset, "=", f"after {variable}"), "after '='")
    upper, offset = _bound(e, e.expect(offset, "to", "after the lower bound"), "after 'to'")
    step_at = e.at(offset, "step")
    step: Bound = ("1", where)
    if step_at is not None:
        step, offset = _bound(e, step_at, "after 'step'")
        _check_step(e, [step])
    names: list[tuple[str, int]] = []
    starts: list[Bound] = []
    written: list[str] | None = None
    carried_at = e.at(offset, "iter_args")
    if carried_at is not None:
        names, starts, offset = _carried(e, carried_at, "iter_args")
        written, offset = _arrow_types(e, offset)
    colon = e.at(offset, ":")
    type_ = "index"
    if colon is not None:
        type_, offset = e.read_type(colon)
    else:
        of_values = [b for b in (lower, upper, step) if b[0].startswith("%")]
        type_ = next(
            (t for n, w in of_values if not e.is_open(n) and (t := e.type_of(n, w))), "index"
        )
    opened = _open(e, offset, "after the loop's bounds")
    carried = _start_types(e, op, start, starts, written)
    low, high, stride = (_as_value(e, b, type_) for b in (lower, upper, step))
    sign = "unsigned " if unsigned is not None else ""
    e.out.put(_head(e, results, op), start)
    e.out.put(f" {sign}{variable} = {low} to {high} step {stride}", where - 1)
    if names:
        pairs = ", ".join(f"{n} = {s}" for (n, _), (s, _) in zip(names, starts, strict=True))
        e.out.put(f" iter_args({pairs}) -> ({', '.join(carried)})", carried_at or start)
    if type_ != "index":
        e.out.put(f" : {type_}", offset)
    arguments: list[tuple[str, Type]] = [(variable, type_)]
    arguments += [(n, t) for (n, _), t in zip(names, carried, strict=True)]
    end = _region(
        e, op, start, opened, arguments, [where, *(w for _, w in names)], expected=list(carried)
    )
    end = _close(e, results, start, end)
    e.define_results(results, list(carried))
    return end


def _parallel_head(
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
    lower, offset = _bounds(e, e.expect(offset, "=", "after the loop variables"), "after '='")
    upper, offset = _bounds(e, e.expect(offset, "to", "after the lower bounds"), "after 'to'")
    step_at = e.at(offset, "step")
    if step_at is None:
        steps: list[Bound] = [("1", where) for _, where in variables]
    else:
        steps, offset = _bounds(e, step_at, "after 'step'")
        _check_step(e, steps)
    for what, bounds in (("lower bounds", lower), ("upper bounds", upper), ("steps", steps)):
        if len(bounds) != len(variables):
            raise e.error(
                f"{len(variables)} loop variable{'s' if len(variables) != 1 else ''} "
                f"but {len(bounds)} {what}",
                bounds[0][1] if bounds else offset,
                kind=VerifyError,
            )
    return variables, lower, upper, steps, offset


def _scf_parallel(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    simple = _SIMPLE_PARALLEL.match(e.text, offset)
    starts: list[Bound] = []
    written: list[str] | None = None
    if simple is not None:  # most loops: what follows would find the same, more slowly
        variables, lower, upper = ([(simple[k], simple.start(k))] for k in (1, 2, 3))
        steps, opened = [("1", simple.start(1))], simple.end()
    else:
        variables, lower, upper, steps, offset = _parallel_head(e, op, offset)
        initial_at = e.at(offset, "init")
        if initial_at is not None:
            starts, offset = e.parens(initial_at, "init")
            written, offset = _arrow_types(e, offset)
        opened = _open(e, offset, "after the loop's bounds")
    carried = _start_types(e, op, start, starts, written)
    lists = [
        ", ".join([_as_value(e, bound, "index") for bound in bounds])
        for bounds in (lower, upper, steps)
    ]
    names = ", ".join([name for name, _ in variables])
    e.out.put(_head(e, results, op), start)
    e.out.put(f" ({names}) = ({lists[0]}) to ({lists[1]}) step ({lists[2]})", variables[0][1])
    if starts:
        e.out.put(f" init ({', '.join(n for n, _ in starts)}) -> ({', '.join(carried)})", offset)
    end = _region(
        e,
        op,
        start,
        opened,
        [(name, "index") for name, _ in variables],
        [where for _, where in variables],
        expected=list(carried),
    )
    end = _close(e, results, start, end)
    e.define_results(results, list(carried))
    return end


def _affine_parallel(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    if e.at(offset, "(") is not None:
        return e.copied(results, op, start, offset, header_type="index")
    variables, lower, upper, steps, offset = _parallel_head(e, op, offset)
    opened = _open(e, offset, "after the loop's bounds")
    for bounds in (lower, upper, steps):
        for name, where in bounds:
            if name.startswith("%"):
                e.type_of(name, where, "index")
    names = ", ".join(name for name, _ in variables)
    lists = [", ".join(text for text, _ in bounds) for bounds in (lower, upper, steps)]
    step = f" step ({lists[2]})" if any(text != "1" for text, _ in steps) else ""
    e.out.put(_head(e, results, op), start)
    e.out.put(f" ({names}) = ({lists[0]}) to ({lists[1]}){step}", variables[0][1])
    end = _region(
        e,
        op,
        start,
        opened,
        [(name, "index") for name, _ in variables],
        [where for _, where in variables],
    )
    return _close(e, results, start, end)


_AFFINE_STOP = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|iter_args\b|[{(\[]')


def _affine_for(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    variable, where, offset = e.value(offset, f"after {op}")
    offset = e.expect(offset, "=", f"after {variable}")
    begun = offset
    while True:
        match = _AFFINE_STOP.search(e.text, offset)
        if match is None:
            raise e.expected_error("'{'", offset, "after the loop's bounds")
        if match[0] in ("(", "["):
            offset = e.bracket_end(match.start())
        elif match[0][0] in '"/':
            offset = match.end()
        else:
            break
    bounds_end = match.start()
    for name in _VALUE.finditer(e.text, begun, bounds_end):
        e.type_of(name[0], name.start(), "index")
    names: list[tuple[str, int]] = []
    starts: list[Bound] = []
    written: list[str] | None = None
    offset = bounds_end
    if match[0] == "iter_args":
        names, starts, offset = _carried(e, match.end(), "iter_args")
        written, offset = _arrow_types(e, offset)
    opened = _open(e, offset, "after the loop's bounds")
    carried = _start_types(e, op, start, starts, written)
    e.out.put(e.text[start:bounds_end].rstrip(), start)
    if names:
        pairs = ", ".join(f"{n} = {s}" for (n, _), (s, _) in zip(names, starts, strict=True))
        e.out.put(f" iter_args({pairs}) -> ({', '.join(carried)})", bounds_end - 1)
    arguments: list[tuple[str, Type]] = [(variable, "index")]
    arguments += [(n, t) for (n, _), t in zip(names, carried, strict=True)]
    end = _region(
        e, op, start, opened, arguments, [where, *(w for _, w in names)], expected=list(carried)
    )
    end = _close(e, results, start, end)
    e.define_results(results, list(carried))
    return end


def _if(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    if op == "scf.if":
        condition, where, offset = e.value(offset, f"after {op}")
        e.type_of(condition, where, "i1")
    else:
        match = re.compile(r"\s*(?:#[\w$.-]+|affine_set\s*<[^{}]*?>)\s*(?=\()").match(
            e.text, offset
        )
        if match is None:
            return e.copied(results, op, start, offset)
        offset = e.bracket_end(e.source.skip(match.end()))
        if e.at(offset, "[") is not None:
            offset = e.bracket_end(e.source.skip(offset))
    condition_end = offset
    written, offset = _arrow_types(e, offset)
    opened = _open(e, offset, "after the condition")
    e.out.put(e.text[start:condition_end], start)
    if written:
        e.out.put(f" -> ({', '.join(written)})", condition_end)
    head_out, head = e.out, len(e.out.pieces) - 1
    end = _region(e, op, start, opened, [], [], expected=list(written or []))
    found: list[Type] = list(written) if written else []
    if results is not None and written is None:
        found = list(e.yielded) if e.last_op in ("scf.yield", "affine.yield") else []
        if not found or None in found:
            raise no_type(e, op, start)
        head_out.pieces[head] += f" -> ({', '.join(map(str, found))})"
    otherwise = e.at(end, "else")
    if otherwise is not None:
        opened = _open(e, otherwise, "after 'else'")
        e.out.put(" else", otherwise - 4)
        end = _region(e, op, start, opened, [], [], expected=list(found))
    end = _close(e, results, start, end)
    e.define_results(results, found)
    return end


def _scf_while(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    names: list[tuple[str, int]] = []
    starts: list[Bound] = []
    if e.at(offset, "(") is not None:
        names, starts, offset = _carried(e, offset, op)
    colon = e.at(offset, ":")
    before: list[str] | None = None
    behind: list[str] | None = None
    if colon is not None:
        begin = e.source.skip(colon)
        end = e.bracket_end(begin) if e.text.startswith("(", begin) else e.type_end(begin)
        before = types.split_commas(e.text[begin:end].strip("()"))
        behind, offset = _arrow_types(e, end)
    opened = _open(e, offset, f"after {op}")
    carried = _start_types(e, op, start, starts, before)
    e.out.put(_head(e, results, op), start)
    pairs = ", ".join(f"{n} = {s}" for (n, _), (s, _) in zip(names, starts, strict=True))
    e.out.put(f" ({pairs})" if names else "", names[0][1] if names else start)
    head = len(e.out.pieces) - 1
    arguments: list[tuple[str, Type]] = [(n, t) for (n, _), t in zip(names, carried, strict=True)]
    e.yielded = []
    end = _region(e, op, start, opened, arguments, [w for _, w in names])
    after: list[Type] = list(behind) if behind is not None else list(e.yielded)
    if None in after:
        raise no_type(e, op, start)
    e.out.pieces[head] += f" : ({', '.join(carried)}) -> ({', '.join(map(str, after))})"
    opened = _open(e, e.expect(end, "do", "after the condition's region"), "after 'do'")
    e.out.put(" do", opened - 3)
    end = _region(e, op, start, opened, [], [], block_types=after, expected=list(carried))
    stop = e.at(end, "attributes")
    if stop is not None:
        e.out.put(" attributes", stop)
        end = stop
    end = _close(e, results, start, end)
    e.define_results(results, after)
    return end


def _scf_reduce(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    if e.at(offset, "(") is None:
        return e.copied(results, op, start, offset)
    values, end = e.value_list(e.at(offset, "(") or offset, f"in {op}(…)")
    found = types_where_expected(e, values, e.expected)
    if e.at(end, ":") is not None:
        end = e.bracket_end(e.source.skip(offset))
    else:
        end = e.expect(end, ")", f"at the end of {op}(…)")
    if None in found:
        raise no_type(e, op, start)
    names = ", ".join(name for name, _ in values)
    e.out.put(f"{op}({names} : {', '.join(map(str, found))})", start)
    for k, type_ in enumerate(found):
        if k:
            end = e.expect(end, ",", "between the regions of scf.reduce")
            e.out.put(",", end - 1)
        opened = _open(e, end, f"after {op}(…)")
        end = _region(e, op, start, opened, [], [], block_types=[type_, type_], expected=[type_])
    return _close(e, results, start, end)


_SIZES = re.compile(r"(?<![%\w$.-])(blocks|threads|clusters)\b")
_THREE = re.compile(
    rf"\w+\s*\(\s*{VALUE}\s*,\s*{VALUE}\s*,\s*{VALUE}\s*\)\s*in\s*"
    rf"\(\s*{VALUE}\s*=\s*{VALUE}\s*,\s*{VALUE}\s*=\s*{VALUE}\s*,\s*{VALUE}\s*=\s*{VALUE}\s*\)"
)


def _check_launch(e: Elaborator, offset: int) -> None:
    """Sizes come in threes: MLIR's own reader aborts the process where one is missing."""
    brace = e.text.find("{", offset)
    for word in _SIZES.finditer(e.text, offset, brace if brace >= 0 else len(e.text)):
        if _THREE.match(e.text, word.start()) is None:
            raise e.error(
                f"{word[0]} of gpu.launch needs three indices and three sizes",
                word.start(),
                f"{word[0]}(%x, %y, %z) in (%nx = %a, %ny = %b, %nz = %c)",
            )


def _launch(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    if results is not None or _BARE_LAUNCH.match(e.text, offset) is None:
        _check_launch(e, offset)
        return e.copied(results, op, start, offset, header_type="index")
    opened = _open(e, offset, f"after {op}")
    one = e.constant("1", "index", start)
    k = e.fresh
    e.fresh += 1
    of = [f"%launch.{k}.{n}" for n in range(12)]
    e.out.put(op, start)
    e.out.put(
        f" blocks({of[0]}, {of[1]}, {of[2]}) in ({of[6]} = {one}, {of[7]} = {one}, {of[8]} = {one})"
        f" threads({of[3]}, {of[4]}, {of[5]})"
        f" in ({of[9]} = {one}, {of[10]} = {one}, {of[11]} = {one})",
        offset,
    )
    end = _region(e, op, start, opened, [], [])
    e.out.put(" {avial.bare}", end)
    return _close(e, results, start, end)


RULES |= {
    "scf.for": _scf_for,
    "scf.parallel": _scf_parallel,
    "scf.if": _if,
    "scf.while": _scf_while,
    "scf.reduce": _scf_reduce,
    "affine.for": _affine_for,
    "affine.if": _if,
    "affine.parallel": _affine_parallel,
    "gpu.launch": _launch,
    "scf.forall": lambda e, results, op, start, offset: e.copied(
        results, op, start, offset, header_type="index"
    ),
}
USAGE |= {
    "scf.for": "scf.for %i = 0 to 20 step 1 { … }",
    "scf.parallel": "scf.parallel %i, %j = 0, 0 to 20, 30 { … }",
    "scf.if": "scf.if %condition { … } else { … }",
    "affine.for": "affine.for %i = 0 to 20 { … }",
    "affine.parallel": "affine.parallel %i = 0 to 20 { … }",
    "gpu.launch": "gpu.launch { … }",
}

__all__ = ["Place"]

"""Loops, conditions and launches: literal bounds, and the types of carried values.

scf.for %i = 0 to 20 step 2 iter_args(%sum = %zero) {
scf.parallel %i, %j = 0, 0 to 20, %n {
scf.while (%k = %start) { … scf.condition(%go) %k } do { ^bb0(%k): … scf.yield %next }
%r = scf.if %condition { … scf.yield %x } else { … scf.yield %y }
affine.for %i = 0 to 20 iter_args(%sum = %zero) {       affine.parallel %i = 0 to 20 {
gpu.launch {            a thread for each index of what the body writes (frontends/mlir/launches.py)
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.blocks import (
    close,
    open_brace,
    region_of,
    statement_head,
)
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.elaboration import Type
from avial_lab.compiler.frontends.notation.heads import (
    Bound,
    arrow_types,
    as_value,
    carried_values,
    check_step,
    parallel_head,
    read_bound,
    start_types,
)
from avial_lab.compiler.frontends.notation.rules import RULES, USAGE, no_type, types_where_expected
from avial_lab.compiler.frontends.notation.source import VALUE

_VALUE = re.compile(VALUE)
_SIMPLE_PARALLEL = re.compile(rf"\s*({VALUE})\s*=\s*({VALUE}|-?\d+)\s+to\s+({VALUE}|-?\d+)\s*\{{")
_BARE_LAUNCH = re.compile(r"\s*\{")


def _scf_for(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    unsigned = e.at(offset, "unsigned ")
    if unsigned is not None:
        offset = unsigned
    variable, where, offset = e.value(offset, f"after {op}")
    lower, offset = read_bound(e, e.expect(offset, "=", f"after {variable}"), "after '='")
    upper, offset = read_bound(e, e.expect(offset, "to", "after the lower bound"), "after 'to'")
    step_at = e.at(offset, "step")
    step: Bound = ("1", where)
    if step_at is not None:
        step, offset = read_bound(e, step_at, "after 'step'")
        check_step(e, [step])
    names: list[tuple[str, int]] = []
    starts: list[Bound] = []
    written: list[str] | None = None
    carried_at = e.at(offset, "iter_args")
    if carried_at is not None:
        names, starts, offset = carried_values(e, carried_at, "iter_args")
        written, offset = arrow_types(e, offset)
    colon = e.at(offset, ":")
    type_ = "index"
    if colon is not None:
        type_, offset = e.read_type(colon)
    else:
        of_values = [b for b in (lower, upper, step) if b[0].startswith("%")]
        type_ = next(
            (t for n, w in of_values if not e.is_open(n) and (t := e.type_of(n, w))), "index"
        )
    opened = open_brace(e, offset, "after the loop's bounds")
    carried = start_types(e, op, start, starts, written)
    low, high, stride = (as_value(e, b, type_) for b in (lower, upper, step))
    sign = "unsigned " if unsigned is not None else ""
    e.out.put(statement_head(e, results, op), start)
    e.out.put(f" {sign}{variable} = {low} to {high} step {stride}", where - 1)
    if names:
        pairs = ", ".join(f"{n} = {s}" for (n, _), (s, _) in zip(names, starts, strict=True))
        e.out.put(f" iter_args({pairs}) -> ({', '.join(carried)})", carried_at or start)
    if type_ != "index":
        e.out.put(f" : {type_}", offset)
    arguments: list[tuple[str, Type]] = [(variable, type_)]
    arguments += [(n, t) for (n, _), t in zip(names, carried, strict=True)]
    places = [where, *(w for _, w in names)]
    return _body(e, results, op, start, opened, arguments, places, carried)


def _scf_parallel(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    simple = _SIMPLE_PARALLEL.match(e.text, offset)
    starts: list[Bound] = []
    written: list[str] | None = None
    if simple is not None:  # most loops: what follows would find the same, more slowly
        variables, lower, upper = ([(simple[k], simple.start(k))] for k in (1, 2, 3))
        steps, opened = [("1", simple.start(1))], simple.end()
    else:
        variables, lower, upper, steps, offset = parallel_head(e, op, offset)
        initial_at = e.at(offset, "init")
        if initial_at is not None:
            starts, offset = e.parens(initial_at, "init")
            written, offset = arrow_types(e, offset)
        opened = open_brace(e, offset, "after the loop's bounds")
    carried = start_types(e, op, start, starts, written)
    lists = [
        ", ".join([as_value(e, bound, "index") for bound in bounds])
        for bounds in (lower, upper, steps)
    ]
    names = ", ".join([name for name, _ in variables])
    e.out.put(statement_head(e, results, op), start)
    e.out.put(f" ({names}) = ({lists[0]}) to ({lists[1]}) step ({lists[2]})", variables[0][1])
    if starts:
        e.out.put(f" init ({', '.join(n for n, _ in starts)}) -> ({', '.join(carried)})", offset)
    arguments: list[tuple[str, Type]] = [(name, "index") for name, _ in variables]
    places = [where for _, where in variables]
    return _body(e, results, op, start, opened, arguments, places, carried)


def _body(
    e: Elaborator,
    results: str | None,
    op: str,
    start: int,
    opened: int,
    arguments: list[tuple[str, Type]],
    places: list[int],
    carried: Sequence[Type],
) -> int:
    """The body of a loop whose results are what it carries, and what may follow it."""
    end = region_of(e, op, start, opened, arguments, places, expected=list(carried))
    end = close(e, results, start, end)
    e.define_results(results, list(carried))
    return end


def _affine_parallel(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    if e.at(offset, "(") is not None:
        return e.copied(results, op, start, offset, header_type="index")
    variables, lower, upper, steps, offset = parallel_head(e, op, offset)
    opened = open_brace(e, offset, "after the loop's bounds")
    for bounds in (lower, upper, steps):
        for name, where in bounds:
            if name.startswith("%"):
                e.type_of(name, where, "index")
    names = ", ".join(name for name, _ in variables)
    lists = [", ".join(text for text, _ in bounds) for bounds in (lower, upper, steps)]
    step = f" step ({lists[2]})" if any(text != "1" for text, _ in steps) else ""
    e.out.put(statement_head(e, results, op), start)
    e.out.put(f" ({names}) = ({lists[0]}) to ({lists[1]}){step}", variables[0][1])
    end = region_of(
        e,
        op,
        start,
        opened,
        [(name, "index") for name, _ in variables],
        [where for _, where in variables],
    )
    return close(e, results, start, end)


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
        names, starts, offset = carried_values(e, match.end(), "iter_args")
        written, offset = arrow_types(e, offset)
    opened = open_brace(e, offset, "after the loop's bounds")
    carried = start_types(e, op, start, starts, written)
    e.out.put(e.text[start:bounds_end].rstrip(), start)
    if names:
        pairs = ", ".join(f"{n} = {s}" for (n, _), (s, _) in zip(names, starts, strict=True))
        e.out.put(f" iter_args({pairs}) -> ({', '.join(carried)})", bounds_end - 1)
    arguments: list[tuple[str, Type]] = [(variable, "index")]
    arguments += [(n, t) for (n, _), t in zip(names, carried, strict=True)]
    places = [where, *(w for _, w in names)]
    return _body(e, results, op, start, opened, arguments, places, carried)


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
    written, offset = arrow_types(e, offset)
    opened = open_brace(e, offset, "after the condition")
    e.out.put(e.text[start:condition_end], start)
    if written:
        e.out.put(f" -> ({', '.join(written)})", condition_end)
    head_out, head = e.out, len(e.out.pieces) - 1
    end = region_of(e, op, start, opened, [], [], expected=list(written or []))
    found: list[Type] = list(written) if written else []
    if results is not None and written is None:
        found = list(e.yielded) if e.last_op in ("scf.yield", "affine.yield") else []
        if not found or None in found:
            raise no_type(e, op, start)
        head_out.pieces[head] += f" -> ({', '.join(map(str, found))})"
    otherwise = e.at(end, "else")
    if otherwise is not None:
        opened = open_brace(e, otherwise, "after 'else'")
        e.out.put(" else", otherwise - 4)
        end = region_of(e, op, start, opened, [], [], expected=list(found))
    end = close(e, results, start, end)
    e.define_results(results, found)
    return end


def _scf_while(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    names: list[tuple[str, int]] = []
    starts: list[Bound] = []
    if e.at(offset, "(") is not None:
        names, starts, offset = carried_values(e, offset, op)
    colon = e.at(offset, ":")
    before: list[str] | None = None
    behind: list[str] | None = None
    if colon is not None:
        begin = e.source.skip(colon)
        end = e.bracket_end(begin) if e.text.startswith("(", begin) else e.type_end(begin)
        before = types.split_commas(e.text[begin:end].strip("()"))
        behind, offset = arrow_types(e, end)
    opened = open_brace(e, offset, f"after {op}")
    carried = start_types(e, op, start, starts, before)
    e.out.put(statement_head(e, results, op), start)
    pairs = ", ".join(f"{n} = {s}" for (n, _), (s, _) in zip(names, starts, strict=True))
    e.out.put(f" ({pairs})" if names else "", names[0][1] if names else start)
    head = len(e.out.pieces) - 1
    arguments: list[tuple[str, Type]] = [(n, t) for (n, _), t in zip(names, carried, strict=True)]
    e.yielded = []
    end = region_of(e, op, start, opened, arguments, [w for _, w in names])
    after: list[Type] = list(behind) if behind is not None else list(e.yielded)
    if None in after:
        raise no_type(e, op, start)
    e.out.pieces[head] += f" : ({', '.join(carried)}) -> ({', '.join(map(str, after))})"
    opened = open_brace(e, e.expect(end, "do", "after the condition's region"), "after 'do'")
    e.out.put(" do", opened - 3)
    end = region_of(e, op, start, opened, [], [], block_types=after, expected=list(carried))
    stop = e.at(end, "attributes")
    if stop is not None:
        e.out.put(" attributes", stop)
        end = stop
    end = close(e, results, start, end)
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
        opened = open_brace(e, end, f"after {op}(…)")
        end = region_of(e, op, start, opened, [], [], block_types=[type_, type_], expected=[type_])
    return close(e, results, start, end)


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
    opened = open_brace(e, offset, f"after {op}")
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
    end = region_of(e, op, start, opened, [], [])
    e.out.put(" {avial.bare}", end)
    return close(e, results, start, end)


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

"""Schedules, targets and tasks in short notation; the grammar stands in `elaborate.py`.

A task in plain form gets its roles from `compiler/frontends/mlir/roles.py` after MLIR has parsed
the body; until then its buffers are listed as read.
"""

from __future__ import annotations

import re

from avial_lab.compiler.frontends.notation import types
from avial_lab.compiler.frontends.notation.blocks import close
from avial_lab.compiler.frontends.notation.buffers import buffer_type_of
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.elaboration import BUFFER, Listed
from avial_lab.compiler.frontends.notation.rules import RULES, USAGE
from avial_lab.compiler.frontends.notation.source import ID, did_you_mean, quote
from avial_lab.compiler.frontends.notation.types import SCALAR
from avial_lab.core.errors import ParseError, VerifyError

TARGET, TASK = "!avial.target_ref", "!avial.task_ref"
_NAMES = re.compile(rf"({ID})")
_PLAIN = re.compile(rf"\s*({ID})((?:\s*,\s*{ID})*)\s*\{{")
USAGE |= {
    "avial.schedule": "avial.schedule %a, %b { … }",
    "avial.task": "%task1 = avial.task %cpu, %a, %b { … }",
    "avial.replicate": "%all = avial.replicate %cpu, %a, %b { … }",
    "avial.target": '%cpu = avial.target {arch = "x86_64"}',
}


def _schedule(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    if results is not None:
        raise e.error("avial.schedule has no result", start, "leave out the name and the '='")
    program = e.program
    if program.in_schedule:
        raise e.error("avial.schedule cannot be nested in another one", start, kind=VerifyError)
    buffers: list[tuple[str, str]] = []
    undefined: list[tuple[str, str]] = []
    end = e.at(offset, "{")
    while end is None:
        name, where, offset = e.value(offset, f"or '{{' after {op}" if not buffers else "after ','")
        written: str | None = None
        colon = e.at(offset, ":")
        if colon is not None:
            written, offset = e.read_type(colon)
        type_ = buffer_type_of(e, name, where, written, undefined)
        if SCALAR.fullmatch(type_) is None and name not in [known for known, _ in buffers]:
            buffers.append((name, type_))
        comma = e.at(offset, ",")
        if comma is None:
            end = e.expect(
                offset, "{", "after the buffers", f"separate buffers by ',': {USAGE[op]}"
            )
        else:
            offset = comma
    mark = len(e.undo)
    for name, type_ in undefined:
        e.define(name, type_)
    refs = e.buffer_refs([name for name, _ in buffers], start)
    signature = ", ".join([BUFFER] * len(buffers))
    e.out.put(f'"{op}"({", ".join(refs.values())}) ({{\n', start)
    program.in_schedule = True
    end = body(e, start, end)
    program.in_schedule = False
    if not program.in_main:
        e.leave(mark)
    e.out.put(f"}}) : ({signature}) -> ()", end - 1)
    return close(e, None, start, end)


def body(e: Elaborator, start: int, opened: int) -> int:
    """The region of an avial operation with its terminator; the place behind the brace."""
    end = e.region(opened, fresh_constants=True, opened_at=opened - 1)
    if e.last_op not in ("omp.terminator", '"omp.terminator"'):
        e.out.put(f"omp.terminator{e.loc(start)}\n", end - 1)
    return end


def require_schedule(e: Elaborator, op: str, start: int) -> None:
    if not e.program.in_schedule:
        raise e.error(
            f"{op} is outside avial.schedule", start, "put it into avial.schedule %a, … { … }",
            VerifyError,
        )  # fmt: skip


def _target(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    require_schedule(e, op, start)
    if results is None or not _NAMES.fullmatch(results):
        raise e.error("avial.target needs a name", start, f"{USAGE[op]}")
    found = e.dictionary(offset)
    inside, end = found if found is not None else ("", offset)
    pieces = [piece for piece in types.split_commas(inside) if piece]
    keys = [re.match(r'\s*"?([\w.$]+)', piece) for piece in pieces]
    if not any(key and key[1] == "name" for key in keys):
        pieces.append(f"name = {quote(results[1:])}")
    e.out.put(f'{results} = "{op}"() {{', start)
    e.out.put(", ".join(pieces), e.source.skip(end if found is None else e.source.skip(offset) + 1))
    e.out.put(f"}} : () -> {TARGET}", end)
    e.define(results, TARGET)
    return close(e, results, start, end)


def _task(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """avial.task and avial.replicate."""
    require_schedule(e, op, start)
    if results is not None and not _NAMES.fullmatch(results):
        raise e.error(f"{op} has one result", start, USAGE[op])
    plain: list[tuple[str, int]] = []
    simple = _PLAIN.match(e.text, offset)
    if simple is not None:  # most heads: what follows would find the same, more slowly
        target, where, offset = simple[1], simple.start(1), simple.end(2)
        base = simple.start(2)
        plain = [(m[0], base + m.start()) for m in _NAMES.finditer(simple[2])]
    else:
        target, where, offset = e.value(offset, f"after {op}: the target")
    _check_target(e, target, where)
    while simple is None and (comma := e.at(offset, ",")) is not None:
        if _role_ahead(e, comma):
            offset = comma
            break
        name, name_at, offset = e.value(comma, "after ','")
        plain.append((name, name_at))
    roles: dict[str, list[tuple[str, int]]] = {}
    while simple is None and (role := _role_ahead(e, offset)) is not None:
        if plain:
            raise e.error(
                f"{role}(…) after a plain list of buffers",
                e.source.skip(offset),
                f"either list them all ({op} {target}, {plain[0][0]}) or give every one a role",
            )
        if role in roles:
            raise e.error(f"{role}(…) is given twice", e.source.skip(offset))
        behind = e.at(offset, role)
        assert behind is not None
        roles[role], offset = e.parens(behind, role)
        offset = e.at(offset, ",") or offset
    after: list[tuple[str, int]] = []
    extra: dict[str, str] = {}
    if simple is None:
        after, offset = tasks_after(e, results, offset)
        extra, offset = extra_attributes(e, offset)
        opened = e.at(offset, "{") or e.expect(
            offset, "{", f"after the head of {op}", _head_hint(e, offset, op)
        )
    else:
        opened = simple.end()
    for name, at in (*plain, *roles.get("reads", ()), *roles.get("writes", ())):
        _check_buffer(e, name, at)
    name, written = unique_name(e, results, extra, start)
    place = e.source.line_and_column(start)
    e.result.listed[place] = Listed(
        None if roles else tuple(plain),
        tuple(roles.get("reads", ())),
        tuple(roles.get("writes", ())),
    )
    reads = _distinct(roles.get("reads", [] if roles else plain))
    writes = _distinct(roles.get("writes", []))
    refs = e.buffer_refs(list(dict.fromkeys([*reads, *writes])), start)
    operands = [target, *(refs[n] for n in (*reads, *writes)), *(n for n, _ in after)]
    signature = ", ".join([TARGET, *[BUFFER] * (len(reads) + len(writes)), *[TASK] * len(after)])
    head = f"{results} = " if results else ""
    e.out.put(f'{head}"{op}"({", ".join(operands)}) ({{\n', start)
    end = body(e, start, opened)
    sizes = f"1, {len(reads)}, {len(writes)}, {len(after)}"
    e.out.put(
        f"}}) {{name = {quote(name)}, operandSegmentSizes = array<i32: {sizes}>{written}}}"
        f" : ({signature}) -> {TASK}",
        end - 1,
    )
    return close_task(e, results, name, start, end)


def close_task(e: Elaborator, results: str | None, name: str, start: int, end: int) -> int:
    """What may follow the body of a task or converge: where its result has no name, a location with
    its own.
    """
    if results:
        e.define(results, TASK)
        return close(e, results, start, end)
    e.out.put(f"{e.loc(start, name)}\n", start)
    return end


def _role_ahead(e: Elaborator, offset: int) -> str | None:
    match = e.take(re.compile(r"(reads|writes)\s*\("), offset)
    return match[1] if match else None


def _head_hint(e: Elaborator, offset: int, op: str) -> str | None:
    if e.take(_NAMES, offset):
        return "separate buffers by ','"
    return f"write it as: {USAGE[op]}"


def _distinct(pairs: list[tuple[str, int]]) -> list[str]:
    return list(dict.fromkeys(name for name, _ in pairs))


def _check_target(e: Elaborator, name: str, where: int) -> None:
    known = e.values.get(name)
    if known == TARGET:
        return
    targets = [n for n, t in e.values.items() if t == TARGET]
    hint = did_you_mean(name, targets)
    if hint is None and targets:
        hint = f"the target comes first: {', '.join(targets)}"
    if hint is None:
        hint = f"declare it above: {USAGE['avial.target']}"
    problem = f"unknown target {name}" if known is None else f"{name} is {known}, not a target"
    raise e.error(problem, where, hint, VerifyError)


def _check_buffer(e: Elaborator, name: str, where: int) -> None:
    if name not in e.values:
        buffers = [n for n, t in e.values.items() if isinstance(t, str) and t.startswith("memref")]
        hint = did_you_mean(name, buffers)
        if hint is None and e.program.in_main:
            hint = f"add {name} to the buffers of avial.schedule"
        raise e.error(f"unknown buffer {name}", where, hint, VerifyError)
    type_ = e.type_of(name, where)
    if type_ == TASK:
        raise e.error(f"{name} is a task", where, f"to wait for it: after {name}", VerifyError)
    if type_ is not None and (type_ == TARGET or SCALAR.fullmatch(type_)):
        hint = "a number need not be listed" if type_ != TARGET else None
        raise e.error(f"{name} is {type_}, not a buffer", where, hint, VerifyError)


def tasks_after(e: Elaborator, own: str | None, offset: int) -> tuple[list[tuple[str, int]], int]:
    """`after %task1, %task2`, in the head of the task named `own`."""
    match = e.take(re.compile(r"after\b"), offset)
    if match is None:
        return [], offset
    found, offset = e.value_list(match.end(), "after 'after'")
    for name, where in found:
        if e.values.get(name) == TASK:
            continue
        if name in e.values:
            raise e.error(f"{name} is not a task", where, kind=VerifyError)
        if name == own:
            raise e.error(f"task {name} waits for itself", where, kind=VerifyError)
        later = re.compile(rf"{re.escape(name)}\s*=\s*avial\.").search(e.text, where)
        if later:
            line, _ = e.source.line_and_column(later.start())
            raise e.error(
                f"after {name}, which comes later (line {line})",
                where,
                "a task can wait only for tasks before it; move this one down",
                VerifyError,
            )
        tasks = [n for n, t in e.values.items() if t == TASK]
        raise e.error(f"unknown task {name}", where, did_you_mean(name, tasks), VerifyError)
    return list({name: (name, where) for name, where in found}.values()), offset


def extra_attributes(e: Elaborator, offset: int) -> tuple[dict[str, str], int]:
    """`attributes {key = value, …}` by key."""
    match = e.take(re.compile(r"attributes\b"), offset)
    if match is None:
        return {}, offset
    found = e.dictionary(match.end())
    if found is None:
        raise e.expected_error("'{'", match.end(), "after 'attributes'")
    result: dict[str, str] = {}
    for piece in types.split_commas(found[0]):
        key = re.match(r'"?([\w.$]+)"?\s*', piece)
        if key is None:
            raise e.error(f"'{piece[:30]}' is not an attribute", match.end(), kind=ParseError)
        result[key[1]] = piece
    return result, found[1]


def unique_name(
    e: Elaborator, results: str | None, extra: dict[str, str], start: int
) -> tuple[str, str]:
    """The task's name, and its further attributes as text."""
    program = e.program
    program.tasks += 1
    explicit = extra.pop("name", None)
    extra.pop("operandSegmentSizes", None)
    if explicit is not None:
        match = re.fullmatch(r'"?name"?\s*=\s*"((?:[^"\\]|\\.)*)"', explicit)
        if match is None:
            raise e.error("a task's name is a string", start)
        name = _unquoted(match[1])
    elif results is not None:
        name = results[1:]
    else:
        k = program.tasks
        while f"task{k}" in program.names:
            k += 1
        name = f"task{k}"
    if name in program.names:
        line, _ = e.source.line_and_column(program.names[name])
        raise e.error(
            f"two tasks are named {name}; the other one is in line {line}",
            start,
            "give one of them another name",
            VerifyError,
        )
    program.names[name] = start
    return name, "".join(f", {piece}" for piece in extra.values())


def _unquoted(text: str) -> str:
    """What an MLIR string literal stands for; its escapes are bytes in hexadecimal."""
    raw = re.sub(
        rb'\\([0-9a-fA-F]{2}|[nt\\"])',
        lambda m: {b"n": b"\n", b"t": b"\t"}.get(
            m[1], m[1] if len(m[1]) == 1 else bytes.fromhex(m[1].decode())
        ),
        text.encode(),
    )  # fmt: skip
    return raw.decode(errors="replace")


RULES |= {
    "avial.schedule": _schedule,
    "avial.target": _target,
    "avial.task": _task,
    "avial.replicate": _task,
}

"""avial's own operations in short notation; the grammar stands in `elaborate.py`.

A task in plain form gets its roles from `roles.py` after MLIR has parsed the body; until then its
buffers are listed as read.
"""

from __future__ import annotations

import re

from avial_lab.errors import AvialError, BindError, ParseError, VerifyError
from avial_lab.notation import types
from avial_lab.notation.elaborate import _SCALAR, BUFFER, Elaborator, Listed, Type, _first_name
from avial_lab.notation.loops import _close
from avial_lab.notation.operations import RULES, USAGE
from avial_lab.notation.source import ID, did_you_mean, quote

TARGET, TASK = "!avial.target_ref", "!avial.task_ref"
_NAMES = re.compile(rf"({ID})")
_PLAIN = re.compile(rf"\s*({ID})((?:\s*,\s*{ID})*)\s*\{{")
_FLOAT = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
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

USAGE |= {
    "avial.schedule": "avial.schedule %a, %b { … }",
    "avial.task": "%task1 = avial.task %cpu, %a, %b { … }",
    "avial.replicate": "%all = avial.replicate %cpu, %a, %b { … }",
    "avial.target": '%cpu = avial.target {arch = "x86_64"}',
    "avial.converge": "avial.converge until %error lt 1.0e-6 max 1000 { … }",
}


def _schedule(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    if results is not None:
        raise e.error("avial.schedule has no result", start, "leave out the name and the '='")
    program = e.program
    if program.in_schedule:
        raise e.error("avial.schedule cannot stand inside another", start, kind=VerifyError)
    buffers: list[tuple[str, str]] = []
    undefined: list[tuple[str, str]] = []
    end = e.at(offset, "{")
    while end is None:
        name, where, offset = e.value(offset, f"or '{{' after {op}" if not buffers else "after ','")
        written: str | None = None
        colon = e.at(offset, ":")
        if colon is not None:
            written, offset = e.read_type(colon)
        type_ = _buffer(e, name, where, written, undefined)
        if _SCALAR.fullmatch(type_) is None and name not in [known for known, _ in buffers]:
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
    end = _body(e, start, end)
    program.in_schedule = False
    if not program.in_main:
        e.leave(mark)
    e.out.put(f"}}) : ({signature}) -> ()", end - 1)
    return _close(e, None, start, end)


def _buffer(
    e: Elaborator, name: str, where: int, written: str | None, undefined: list[tuple[str, str]]
) -> str:
    """The type of a schedule's buffer; one nothing defines becomes an argument of @main."""
    key = name[1:]
    if name in e.values:
        known = e.type_of(name, where)
        if known is not None and written is not None and _plain(written) != _plain(known):
            raise e.error(f"{name} is {known}, not {written}", where, kind=VerifyError)
        if known is None and written is None:
            raise e.error(f"the type of {name} cannot be told here", where, f"write {name}: TYPE")
        return known or written or ""
    if not e.program.in_main:
        raise e.unknown_value(name, where)
    if written is not None:
        check_written(e, name, written, where)
    type_ = written or bound_type(e, key)
    if type_ is None:
        raise no_array(e, name, where)
    if _SCALAR.fullmatch(type_) is None and types.memref(type_) is None:
        raise e.error(
            f"{name} is {type_}; a buffer is a memref or a number", where,
            "memref<20xi32>, for example",
            VerifyError,
        )  # fmt: skip
    e.program.buffers[key] = (type_, where)
    undefined.append((name, type_))
    return type_


def _plain(type_: str) -> str:
    return re.sub(r"\s+", "", type_)


def bound_type(e: Elaborator, name: str) -> str | None:
    """The type of the caller's array or number of that name."""
    buffer = e.binding.buffer(name) if e.binding is not None else None
    if buffer is not None:
        return types.buffer_type(buffer)
    if name in e.scalars:
        number = e.scalars[name]
        if isinstance(number, bool):
            return "i1"
        return "index" if isinstance(number, int) else "f64"
    return None


def check_written(e: Elaborator, name: str, written: str, where: int) -> None:
    """The element type and the sizes that a buffer is written with have to be those of the caller's
    array.
    """
    buffer = e.binding.buffer(name[1:]) if e.binding is not None else None
    known = types.memref(written)
    if buffer is None or known is None or known.shape is None:
        return
    if re.match(r"-?\d|i\d+\D|f\d+\D", known.element):
        raise e.error(f"{written} is no type: {known.element} is no type of elements", where)
    if known.element != buffer.element:
        problem = f"holds {buffer.element}"
    elif len(known.shape) != len(buffer.shape):
        dims = len(buffer.shape)
        problem = f"has {dims} dimension{'' if dims == 1 else 's'}"
    elif any(n not in (types.DYNAMIC, m) for n, m in zip(known.shape, buffer.shape, strict=True)):
        problem = f"has shape {buffer.shape}"
    else:
        return
    raise e.error(
        f"{name} is written {written}, but the array '{buffer.name}' {problem}",
        where,
        f"write {name}: {types.buffer_type(buffer)}, or leave the type out",
        BindError,
    )


def no_array(e: Elaborator, name: str, where: int) -> AvialError:
    known = [f"%{b.name}" for b in e.binding.buffers] if e.binding is not None else []
    hint = did_you_mean(name, known)
    hint = f"{hint} Or pass" if hint else "pass"
    return e.error(
        f"buffer {name} has no type and no array of the caller is named '{name[1:]}'",
        where,
        f"{hint} the array {name[1:]}, or write its type: {name}: memref<20xf32>",
        BindError,
    )


def _body(e: Elaborator, start: int, opened: int) -> int:
    """The region of an avial operation with its terminator; the place behind the brace."""
    end = e.region(opened, fresh_constants=True, opened_at=opened - 1)
    if e.last_op not in ("omp.terminator", '"omp.terminator"'):
        e.out.put(f"omp.terminator{e.loc(start)}\n", end - 1)
    return end


def _require_schedule(e: Elaborator, op: str, start: int) -> None:
    if not e.program.in_schedule:
        raise e.error(
            f"{op} stands outside avial.schedule", start, "put it into avial.schedule %a, … { … }",
            VerifyError,
        )  # fmt: skip


def _target(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    _require_schedule(e, op, start)
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
    return _close(e, results, start, end)


def _task(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """avial.task and avial.replicate."""
    _require_schedule(e, op, start)
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
            raise e.error(f"{role}(…) stands here twice", e.source.skip(offset))
        behind = e.at(offset, role)
        assert behind is not None
        roles[role], offset = e.parens(behind, role)
        offset = e.at(offset, ",") or offset
    after: list[tuple[str, int]] = []
    extra: dict[str, str] = {}
    if simple is None:
        after, offset = _after(e, results, offset)
        extra, offset = _attributes(e, offset)
        opened = e.at(offset, "{") or e.expect(
            offset, "{", f"after the head of {op}", _head_hint(e, offset, op)
        )
    else:
        opened = simple.end()
    for name, at in (*plain, *roles.get("reads", ()), *roles.get("writes", ())):
        _check_buffer(e, name, at)
    name, written = _unique_name(e, results, extra, start)
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
    end = _body(e, start, opened)
    sizes = f"1, {len(reads)}, {len(writes)}, {len(after)}"
    e.out.put(
        f"}}) {{name = {quote(name)}, operandSegmentSizes = array<i32: {sizes}>{written}}}"
        f" : ({signature}) -> {TASK}",
        end - 1,
    )
    if results:
        e.define(results, TASK)
        return _close(e, results, start, end)
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
    problem = f"unknown target {name}" if known is None else f"{name} is no target but {known}"
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
    if type_ is not None and (type_ == TARGET or _SCALAR.fullmatch(type_)):
        hint = "a number need not be listed" if type_ != TARGET else None
        raise e.error(f"{name} is no buffer but {type_}", where, hint, VerifyError)


def _after(e: Elaborator, own: str | None, offset: int) -> tuple[list[tuple[str, int]], int]:
    """`after %task1, %task2`, in the head of the task named `own`."""
    match = e.take(re.compile(r"after\b"), offset)
    if match is None:
        return [], offset
    found, offset = e.value_list(match.end(), "after 'after'")
    for name, where in found:
        if e.values.get(name) == TASK:
            continue
        if name in e.values:
            raise e.error(f"{name} is no task", where, kind=VerifyError)
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


def _attributes(e: Elaborator, offset: int) -> tuple[dict[str, str], int]:
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
            raise e.error(f"'{piece[:30]}' is no attribute", match.end(), kind=ParseError)
        result[key[1]] = piece
    return result, found[1]


def _unique_name(
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
            f"two tasks are named {name}; the other stands in line {line}",
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


def _converge(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    _require_schedule(e, op, start)
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
            raise e.error(f"{number[0]} is no finite number", number.start())
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
    if count is None:
        raise e.expected_error(
            "a number of rounds or 'until'", offset, f"after {op}", f"write it as: {USAGE[op]}"
        )
    if len(count[0]) > 18 or int(count[0]) < 1:
        raise e.error(f"{count[0]} rounds; at least 1 is needed", count.start(), kind=VerifyError)
    after, offset = _after(e, results, count.end())
    extra, offset = _attributes(e, offset)
    for key in ("max", "predicate", "threshold"):
        extra.pop(key, None)
    opened = e.expect(offset, "{", "after the number of rounds")
    name, written = _unique_name(e, results, extra, start)
    operands = ", ".join([*operand, *(n for n, _ in after)])
    types_ = ", ".join([*signature, *[TASK] * len(after)])
    head = f"{results} = " if results else ""
    e.out.put(f'{head}"{op}"({operands}) ({{\n', start)
    end = _body(e, start, opened)
    e.out.put(
        f"}}) {{name = {quote(name)}, max = {count[0]} : i64{attributes}, "
        f"operandSegmentSizes = array<i32: {len(operand)}, {len(after)}>{written}}}"
        f" : ({types_}) -> {TASK}",
        end - 1,
    )
    if results:
        e.define(results, TASK)
        return _close(e, results, start, end)
    e.out.put(f"{e.loc(start, name)}\n", start)
    return end


def _condition_type(e: Elaborator, name: str, where: int) -> str:
    type_ = e.type_of(name, where)
    known = types.memref(type_) if type_ else None
    if type_ is None or known is None or known.shape is None:
        raise e.error(f"{name} is no buffer but {type_}", where, kind=VerifyError)
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


RULES |= {
    "avial.schedule": _schedule,
    "avial.target": _target,
    "avial.task": _task,
    "avial.replicate": _task,
    "avial.converge": _converge,
}

__all__ = ["Type", "_first_name"]

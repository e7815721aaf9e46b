"""Modules and functions: what stands around schedules.

A whole cell -> Elaboration. Schedules that stand alone go, in program order, into one `@main` over
all their buffers; a schedule in a `func.func` of the user's stays there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mlir import ir

from avial_lab.compiler.frontends.notation import (  # noqa: F401  they fill RULES
    arithmetic,
    blocks,
    converge,
    loops,
    memory,
    tasks,
    vectors,
)
from avial_lab.compiler.frontends.notation.blocks import close
from avial_lab.compiler.frontends.notation.buffers import bound_type, check_written, no_array
from avial_lab.compiler.frontends.notation.elaborate import Elaborator
from avial_lab.compiler.frontends.notation.elaboration import Elaboration, Program, Scalar, Type
from avial_lab.compiler.frontends.notation.header import holds_schedule
from avial_lab.compiler.frontends.notation.output import Output
from avial_lab.compiler.frontends.notation.rules import RULES
from avial_lab.compiler.frontends.notation.source import (
    STATEMENT,
    TOKEN,
    Source,
    quote,
    starts_statement,
)
from avial_lab.compiler.frontends.notation.vocabulary import (
    MODULE_OPS,
    QUOTED_MODULE_OPS,
    TERMINATORS,
)
from avial_lab.core.buffers import Binding

_ALIAS = re.compile(r"([#!][\w$.-]+)\s*=\s*")
_FUNCTION = re.compile(
    r'\s*(?:(?:private|public|nested)\s+)?@(?:[\w$.-]+|"(?:[^"\\\n]|\\.)*")\s*\('
)
_MODULE = re.compile(
    r'\s*(?:@(?:[\w$.-]+|"(?:[^"\\\n]|\\.)*")\s*)?(?P<attributes>attributes\s*(?=\{))?'
)


def elaborate(
    source: Source,
    context: ir.Context,
    *,
    binding: Binding | None = None,
    scalars: Mapping[str, Scalar] | None = None,
) -> Elaboration:
    """The cell as one module in full MLIR. Raises ParseError, VerifyError or BindError."""
    source.check_characters()
    e = Elaborator(source, context, binding, scalars or {}, RULES)
    end = _module_level(e, 0, closing=False)
    if end < len(source.text):
        raise e.error("'}' closes nothing", end - 1, "delete it")
    result = Output()
    result.extend(e.aliases)
    result.extend(e.out)
    e.result.output = result
    return e.result


def _module_level(e: Elaborator, offset: int, *, closing: bool) -> int:
    """Functions, aliases and schedules up to the end (or the closing brace); the place behind it.

    Functions are written first, then `@main` with everything else.
    """
    outer, program, undo = e.out, e.program, len(e.undo)
    functions, main = Output(), Output()
    e.program = here = Program(in_main=True)
    first: int | None = None
    while True:
        match = STATEMENT.match(e.text, offset)
        assert match is not None
        op = match["op"] or match["quoted"]
        if op is None:
            char = match["other"]
            if match["results"] is None and char in ("", "}"):
                if closing and char == "":
                    raise e.error("'{' is never closed", offset, "add the missing '}'")
                offset = match.end()
                break
            alias = _ALIAS.match(e.text, match.start("other")) if char in ("#", "!") else None
            if alias is None or match["results"] is not None:
                raise e.stray(match)
            offset = _alias(e, alias)
            continue
        start = (
            match.start("results")
            if match["results"]
            else match.start("op" if match["op"] else "quoted")
        )
        if (op in MODULE_OPS or op in QUOTED_MODULE_OPS) and match["results"] is None:
            e.out = functions
            saved = e.values, e.undo, e.constants
            e.values, e.undo, e.constants = {}, [], {}
            offset = _module_op(e, op, start, match.end())
            e.values, e.undo, e.constants = saved
            continue
        first = start if first is None else first
        e.out, e.program = main, here
        rule = RULES.get(op)
        if rule is None:
            offset = e.copied(match["results"], op, start, match.end())
        else:
            offset = rule(e, match["results"], op, start, match.end())
        e.last_op = op
    e.leave(undo)
    e.settle_constants()
    e.out, e.program = outer, program
    e.out.extend(functions)
    if first is not None:
        e.result.main = first
        _write_main(e, here, main, first)
    return offset


def _write_main(e: Elaborator, program: Program, main: Output, first: int) -> None:
    """`func.func @main(buffers) { … return }`."""
    e.out.put("func.func @main(", first)
    for k, (name, (type_, where)) in enumerate(program.buffers.items()):
        comma = ", " if k else ""
        e.out.put(
            f"{comma}%{name}: {type_} {{avial.name = {quote(name)}}}{e.loc(where, name)}", where
        )
    e.out.put(") {\n", first)
    e.out.extend(main)
    if e.last_op not in TERMINATORS:
        e.out.put(f"return{e.loc(first)}\n", first)
    e.out.put(f"}}{e.loc(first)}\n", first)


def _alias(e: Elaborator, match: re.Match[str]) -> int:
    """`#map = affine_map<…>` or `!t = memref<…>`, moved to the top of the module."""
    start, end = match.start(), match.end()
    depth = 0
    for token in TOKEN.finditer(e.text, match.end()):
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and (token[0] == "module" or starts_statement(e.text, token)):
            break
        if token.lastgroup != "comment":
            end = token.end()
    name = match[1]
    if name[0] == "!":
        e.type_aliases[name] = e.text[match.end() : end].strip()
    e.aliases.put(e.text[start:end], start)
    e.aliases.put("\n", end)
    return end


def _module_op(e: Elaborator, op: str, start: int, offset: int) -> int:
    if op in ("module", "builtin.module"):
        head = _MODULE.match(e.text, offset)
        assert head is not None
        end = head.end()
        if head["attributes"]:
            end = e.bracket_end(end)
        opened = e.expect(end, "{", "after 'module'")
        if head["attributes"] and not holds_schedule(e.text):
            # Of another compiler: what it knew of its machine, in the words of its own version.
            kept = e.text[head.start("attributes") : opened]
            e.out.put(e.text[start : head.start("attributes")], start)
            e.out.put(
                "attributes {gpu.container_module} {" if "gpu.container_module" in kept else "{",
                start,
            )
        else:
            e.out.put(e.text[start:opened], start)
        e.out.put("\n", opened)
        end = _module_level(e, opened, closing=True)
        e.out.put("}", end - 1)
        return close(e, None, start, end)
    return RULES.get(op, _copy_whole)(e, None, op, start, offset)


def _copy_whole(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    saved, e.program = e.program, Program()
    end = e.copied(results, op, start, offset)
    e.program = saved
    return end


def _function(e: Elaborator, results: str | None, op: str, start: int, offset: int) -> int:
    """func.func: its arguments may leave out the types the caller's arrays give them, its end the
    `return`.
    """
    head = _FUNCTION.match(e.text, offset)
    if head is None or results is not None:
        return e.copied(results, op, start, offset)
    if (
        e.source.skip(head.end()) < len(e.text)
        and e.at(head.end(), "%") is None
        and e.at(head.end(), ")") is None
    ):
        return e.copied(results, op, start, offset)
    program, e.program = e.program, Program()
    e.out.put(e.text[start : head.end()], start)
    arguments, end = _arguments(e, start, head.end())
    opened, has_results = _body_brace(e, end)
    if opened is None:
        raise e.expected_error("'{'", end, "after the function's head")
    e.out.put(e.text[end:opened], end)
    e.out.put("\n", opened)
    owner, e.owner = e.owner, e.place(start)
    for name, _, where in arguments:
        e.own_argument(name, where)
    closed = e.region(
        opened,
        arguments=[(name, type_) for name, type_, _ in arguments],
        fresh_constants=True,
        opened_at=opened - 1,
    )
    e.owner = owner
    if not has_results and e.last_op not in TERMINATORS:
        e.out.put(f"return{e.loc(start)}\n", closed - 1)
    e.out.put("}", closed - 1)
    e.program = program
    return close(e, None, start, closed)


def _arguments(e: Elaborator, start: int, offset: int) -> tuple[list[tuple[str, Type, int]], int]:
    """`%a: type {attributes} loc(…), …)`, written; the arguments and the place behind the
    parenthesis.
    """
    found: list[tuple[str, Type, int]] = []
    end = e.at(offset, ")")
    while end is None:
        name, where, offset = e.value(offset, "in the function's arguments")
        colon = e.at(offset, ":")
        if colon is not None:
            type_, offset = e.read_type(colon)
            check_written(e, name, type_, where)
        else:
            bound = bound_type(e, name[1:])
            if bound is None:
                raise no_array(e, name, where)
            type_ = bound
        e.out.put(f"{', ' if found else ''}", where)
        e.out.put(f"{name}: {type_}", where)
        dictionary = e.dictionary(offset)
        if dictionary is not None:
            e.out.put(f" {{{dictionary[0]}}}", offset)
            offset = dictionary[1]
        located = e.at(offset, "loc(")
        if located is not None:
            offset = e.bracket_end(located - 1)
        e.out.put(e.loc(where, name[1:]), where)
        found.append((name, type_, where))
        comma = e.at(offset, ",")
        if comma is None:
            end = e.expect(offset, ")", "after the function's arguments")
        else:
            offset = comma
    e.out.put(")", end - 1)
    return found, end


def _body_brace(e: Elaborator, offset: int) -> tuple[int | None, bool]:
    """The place behind the `{` of the function's body, and whether the function has results."""
    previous, has_results, depth = "", False, 0
    for token in TOKEN.finditer(e.text, offset):
        kind = token.lastgroup
        if kind == "comment":
            continue
        if kind == "arrow" and depth == 0:
            has_results = True
        if kind == "open":
            if token[0] == "{" and depth == 0 and previous != "attributes":
                return token.end(), has_results
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and starts_statement(e.text, token) and kind != "sigil":
            break
        previous = token[0]
    return None, has_results


RULES["func.func"] = _function

"""A module back in short notation.

ir.Module -> text that `parse_cell` reads as an equal module. MLIR prints it; of its text only the
lines of avial's own operations are rewritten, so names, bodies and everything else are MLIR's.
`compiler/frontends/mlir/canonical.py` has seen to it that there is nothing the notation cannot say.

    %task1 = "avial.task"(%cpu, %a, %b, %c) ({          %task1 = avial.task %cpu, %a, %b, %c {
      …                                            ->     …
      omp.terminator
    }) {name = "task1", …} : (…) -> !avial.task_ref     }
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.calls import Functions
from avial_lab.compiler.frontends.mlir.roles import declared_roles, inferred_roles
from avial_lab.compiler.frontends.notation.types import split_commas
from avial_lab.compiler.ir.dialects.avial import CAST, SEGMENTS, buffer_of, operand_segments
from avial_lab.compiler.ir.ptensor_types import short_types

_HEAD = re.compile(
    r'( *)(?:(?P<result>%[\w$.-]+) = )?"avial\.(?P<kind>\w+)"\((?P<operands>[^()]*)\)(?P<rest>.*)'
)
_TAIL = re.compile(r"( *)\}\)(?P<attributes> \{.*\})? : \((?P<types>.*)\) -> .*")
_REF = re.compile(
    r" *(?P<ref>%[\w$.-]+) = builtin\.unrealized_conversion_cast (?P<name>%[\w$.#-]+)"
    r" : (?P<type>.*) to !avial\.buffer_ref"
)
_TARGET = re.compile(r" (?P<attributes>\{.*\} )?: \(\) -> .*")
_ARGUMENT = re.compile(r'%([\w$.-]+): .* \{avial\.name = "([^"]*)"\}')


@dataclass
class _Open:
    """An avial operation whose region is being printed: where its head stands in the output."""

    line: int
    match: re.Match[str]
    op: ir.Operation
    functions: Functions


def print_module(module: ir.Module | ir.Operation) -> str:
    """The module in short notation; `parse_cell(print_module(m), …)` prints as `m` does."""
    lines = module.operation.get_asm(use_name_loc_as_prefix=True).splitlines()
    operations = _operations(module)
    rewritten = _rewritten(lines, operations)
    return short_types("\n".join(_unwrapped(module, rewritten)) + "\n")


def print_explained(module: ir.Module | ir.Operation) -> str:
    """A program that a pass took apart in short notation: its tasks called by their names, and what
    the pass says of each (`avial.why`) above it. The module's places are gone after it.
    """
    for op in _operations(module):
        if "name" in op.attributes:
            name = ir.StringAttr(op.attributes["name"]).value
            op.location = ir.Location.name(name, op.location, context=op.context)
    return print_module(module)


def _operations(module: ir.Module | ir.Operation) -> list[ir.Operation]:
    """avial's operations in the order MLIR prints them."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("avial."):
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def _rewritten(lines: list[str], operations: list[ir.Operation]) -> list[str]:
    """`lines` with avial's operations in short form."""
    result: list[str] = []
    pending = iter(operations)
    stack: list[_Open] = []
    seen: set[str] = set()
    buffers: dict[str, tuple[str, str]] = {}
    functions = Functions()
    for line in lines:
        ref = _REF.fullmatch(line)
        if ref is not None:
            buffers[ref["ref"]] = ref["name"], ref["type"]
            continue
        head = _HEAD.match(line)
        if head is not None:
            op = next(pending)
            if head["kind"] == "target":
                result.append(_target(head, op) or line)
                continue
            result += [f"{head[1]}// {line}" for line in _said_of(op)]
            stack.append(_Open(len(result), head, op, functions))
            result.append(line)
            continue
        tail = _TAIL.match(line) if stack else None
        if tail is not None and stack[-1].match[1] == tail[1]:
            opened = stack.pop()
            short = _short(opened, tail, seen, buffers)
            result[opened.line] = f"{tail[1]}{short} {{"
            if result[-1].strip() == "omp.terminator":
                result.pop()
            result.append(f"{tail[1]}}}")
            continue
        result.append(line)
    return result


WHY = "avial.why"
"""What a pass says of an operation, for people: a comment, and no part of the program."""


def _said_of(op: ir.Operation) -> list[str]:
    if WHY not in op.attributes:
        return []
    return [ir.StringAttr(line).value for line in ir.ArrayAttr(op.attributes[WHY])]


def _target(head: re.Match[str], op: ir.Operation) -> str | None:
    match = _TARGET.fullmatch(head["rest"])
    if match is None or head["result"] is None or head["operands"]:
        return None
    kept = _attributes(match["attributes"] or "", {"name"} if _named(op, head["result"]) else set())
    return f"{head[1]}{head['result']} = avial.target {{{', '.join(kept)}}}"


def _named(op: ir.Operation, result: str | None) -> bool:
    """Whether the operation's name is that of its result."""
    return (
        result is not None
        and "name" in op.attributes
        and ir.StringAttr(op.attributes["name"]).value == result[1:]
    )


def _attributes(text: str, drop: set[str]) -> list[str]:
    """The entries of an attribute dictionary without those named."""
    inner = text.strip()[1:-1]
    return [part for part in split_commas(inner) if part.partition(" =")[0].strip('"') not in drop]


def _short(
    opened: _Open, tail: re.Match[str], seen: set[str], buffers: dict[str, tuple[str, str]]
) -> str:
    """The head of an operation in short form."""
    handles = [part.strip() for part in opened.match["operands"].split(",") if part.strip()]
    kind = opened.match["kind"]
    if kind == "schedule":
        return _schedule([buffers[handle] for handle in handles], seen)
    operands = [buffers[handle][0] if handle in buffers else handle for handle in handles]
    if kind == "converge":
        return _converge(opened, operands, tail["attributes"] or "{}")
    return _task(opened, operands, tail["attributes"] or "{}")


def _schedule(buffers: list[tuple[str, str]], seen: set[str]) -> str:
    shown = [name if name in seen else f"{name}: {type_}" for name, type_ in buffers]
    seen.update(name for name, _ in buffers)
    return f"avial.schedule {', '.join(shown)}".rstrip()


def _task(opened: _Open, operands: list[str], attributes: str) -> str:
    op = opened.op
    sizes = operand_segments(op)
    reads = operands[1 : 1 + sizes[1]]
    writes = operands[1 + sizes[1] : 1 + sizes[1] + sizes[2]]
    after = operands[1 + sizes[1] + sizes[2] :]
    head = f"{_result(opened)}avial.{opened.match['kind']} {operands[0]}"
    if _follows(op, opened.functions):
        listed = [*reads, *(name for name in writes if name not in reads)]
        head += "".join(f", {name}" for name in listed)
    else:
        head += f" reads({', '.join(reads)}) writes({', '.join(writes)})"
    return head + _after(after) + _rest(opened, attributes, {SEGMENTS})


def _follows(op: ir.Operation, functions: Functions) -> bool:
    """Whether the plain list of the task's buffers would be given these roles again."""
    reads, writes = declared_roles(op)
    listed = [*reads, *(value for value in writes if value not in reads)]
    return inferred_roles(op, listed, functions) == (reads, writes)


def _converge(opened: _Open, operands: list[str], attributes: str) -> str:
    op = opened.op
    until, _ = operand_segments(op)
    head = f"{_result(opened)}avial.converge"
    if "max" not in op.attributes:  # its rounds are those of the loop inside
        return head + _after(operands) + _rest(opened, attributes, {SEGMENTS})
    rounds = ir.IntegerAttr(op.attributes["max"])
    head += " "
    if until:
        threshold = op.attributes["threshold"]
        predicate = ir.StringAttr(op.attributes["predicate"]).value
        head += f"until {operands[0]} {predicate} {ir.FloatAttr(threshold).value!r} max "
    drop = {SEGMENTS, "max", "predicate", "threshold"}
    return head + str(rounds.value) + _after(operands[until:]) + _rest(opened, attributes, drop)


def _result(opened: _Open) -> str:
    result = opened.match["result"]
    return f"{result} = " if result else ""


def _after(names: list[str]) -> str:
    return f" after {', '.join(names)}" if names else ""


def _rest(opened: _Open, attributes: str, drop: set[str]) -> str:
    """` attributes {…}` with what the head does not say."""
    named = {"name"} if _named(opened.op, opened.match["result"]) else set()
    kept = _attributes(attributes, drop | named | {WHY})
    return f" attributes {{{', '.join(kept)}}}" if kept else ""


def _unwrapped(module: ir.Module | ir.Operation, lines: list[str]) -> list[str]:
    """Without the module, and without @main where its schedules alone say the same."""
    start = next((k for k, line in enumerate(lines) if line == "module {"), None)
    if start is None or lines[-1] != "}" or len(module.operation.attributes) > 0:
        return _untyped(lines)
    aliases, body = lines[:start], [line[2:] for line in lines[start + 1 : -1]]
    begin = next((k for k, line in enumerate(body) if line.startswith("func.func @main(")), None)
    if begin is None:
        return _untyped([*aliases, *body])
    end = next(k for k in range(begin, len(body)) if body[k] == "}")
    if not _is_implied(module, body[begin]) or end != len(body) - 1:
        return _untyped([*aliases, *body])
    # The functions before @main stay before it; the last line of @main is its `return`.
    return [*aliases, *body[:begin], *(line[2:] for line in body[begin + 1 : end - 1])]


_TYPED = re.compile(r" *avial\.schedule ")


def _untyped(lines: list[str]) -> list[str]:
    """Inside a function the buffers of a schedule have their types already."""
    return [
        re.sub(r"(%[\w$.-]+): memref<.*?>(?=, %| \{$)", r"\1", line) if _TYPED.match(line) else line
        for line in lines
    ]


def _is_implied(module: ir.Module | ir.Operation, head: str) -> bool:
    """Whether @main is what the notation makes of its schedules: the same arguments in the same
    order.
    """
    function = next(
        op.operation
        for op in module.operation.regions[0].blocks[0]
        if op.operation.name == "func.func"
        and ir.StringAttr(op.operation.attributes["sym_name"]).value == "main"
    )
    plain = {"sym_name", "function_type", "arg_attrs"}
    if not set(function.attributes) <= plain or len(function.regions[0].blocks) != 1:
        return False
    block = function.regions[0].blocks[0]
    *schedules, last = [op.operation for op in block if op.operation.name != CAST]
    if last.name != "func.return" or len(last.operands):
        return False
    if not schedules or any(op.name != "avial.schedule" for op in schedules):
        return False
    used = list(dict.fromkeys(buffer_of(handle) for op in schedules for handle in op.operands))
    if used != list(block.arguments):
        return False
    if any(len(op.regions[0].blocks) != 1 or len(op.attributes) for op in schedules):
        return False
    arguments = split_commas(head[len("func.func @main(") : head.rindex(")")])
    return all(
        (match := _ARGUMENT.fullmatch(argument)) is not None and match[1] == match[2]
        for argument in arguments
    )

"""Scops from MLIR text, for tests: named as written, the module kept as long as its operations."""

from __future__ import annotations

import re

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.ir.operations import operations_in

_KEPT: list[ir.Module] = []


def scop_of(text: str, context: ir.Context) -> Scop:
    """The scop of the first function in `text`; its arguments are named as they are written."""
    module = ir.Module.parse(with_names(text), context)
    _KEPT.append(module)
    return read_scop(module.body.operations[0])


def with_names(text: str) -> str:
    """Every argument of the first function gets its name as its location."""
    head, brace, body = text.partition(") {")
    arguments = head.partition("(")[2]
    named = [
        f'{argument} loc("{argument.strip()[1:].partition(":")[0]}")'
        for argument in arguments.split(", ")
    ]
    return head.replace(arguments, ", ".join(named)) + brace + body


def named_module(text: str, context: ir.Context) -> ir.Module:
    """The module in `text`: arguments and loop variables are named as they are written, so that
    what is said of them reads like it. A loop's variables stand in its first line.
    """
    module = ir.Module.parse(text, context)
    lines = text.splitlines()
    for view in module.body.operations:
        function = view.operation
        start = text.index("func.func")
        names = re.findall(r"%(\w+):", text[start : text.index(") {", start)])
        if len(function.regions[0].blocks):
            _name(function.regions[0].blocks[0].arguments, names)
        for op in operations_in(function):
            if op.name.endswith((".for", ".parallel")):
                line = lines[op.location.start_line - 1]
                head = re.search(r"(?:for|parallel) \(?((?:%\w+(?:, )?)+)\)? =", line)
                assert head is not None, line
                _name(op.regions[0].blocks[0].arguments, re.findall(r"%(\w+)", head.group(1)))
    return module


def _name(arguments: ir.BlockArgumentList, names: list[str]) -> None:
    for argument, name in zip(arguments, names, strict=False):
        argument.set_location(ir.Location.name(name, argument.location, argument.context))

"""Scops from MLIR text, for tests: named as written, the module kept as long as its operations."""

from __future__ import annotations

from mlir import ir

from avial_lab.polyhedra import Scop, read_scop

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

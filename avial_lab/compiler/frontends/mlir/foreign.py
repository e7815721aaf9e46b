"""Text as MLIR alone reads it, for what the notation does not understand.

Cell text -> ir.Module whose operations and block arguments have the user's names and places, or
None.
"""

from __future__ import annotations

import re

from mlir import ir

from avial_lab.compiler.frontends.notation.header import function_arguments
from avial_lab.compiler.frontends.notation.source import Source
from avial_lab.compiler.ir.program import functions_of, has_body, symbol_of
from avial_lab.compiler.ir.ptensor_types import full_types

_RESULT_BEFORE = re.compile(r"(%[\w$.-]+)(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*\s*=\s*\Z")
_VALUE = re.compile(r"%([\w$.-]+)")
_NUMBER = re.compile(r"(?<=.)_\d+$")
_MADE_UP = re.compile(r"(?:arg)?\d+")
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")
"""Half characters have no bytes, and MLIR takes a NUL for the end."""
_UNNAMED = "-"
"""What MLIR calls the file of a text without one."""


def read_mlir(source: Source) -> ir.Module | None:
    """The module in the text; None where MLIR cannot read it."""
    if _NO_TEXT.search(source.text):
        return None
    try:
        module = ir.Module.parse(full_types(source.text))
    except ir.MLIRError:
        return None

    def visit(op: ir.Operation) -> ir.WalkResult:
        op.location = _located(op.location, source, result=True)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(_located(argument.location, source, result=False))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    _name_arguments(module, source)
    return module


def name_printed(module: ir.Module, source: Source) -> None:
    """The same for the module of a text that MLIR printed: the names that it makes up itself
    (`%0`, `%c1`, `%arg2`) are left to it, and so are the numbers that it tells others apart by
    (`%x_3`).
    """
    state = ir.AsmState(module.operation)
    there = set(_VALUE.findall(source.text))

    def place(location: ir.Location, made_up: str, *, result: bool) -> ir.Location:
        found = _located(location, source, result=result)
        if not found.is_a_name():
            return found
        name, plain = found.name_str, _NUMBER.sub("", found.name_str)
        if _MADE_UP.fullmatch(name) or plain == _NUMBER.sub("", made_up.removeprefix("%")):
            return found.child_loc
        return ir.Location.name(plain if plain in there else name, found.child_loc)

    def visit(op: ir.Operation) -> ir.WalkResult:
        made_up = op.results[0].get_name(state) if len(op.results) else ""
        op.location = place(op.location, made_up, result=True)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    name = argument.get_name(state)
                    argument.set_location(place(argument.location, name, result=False))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)


def _name_arguments(module: ir.Module, source: Source) -> None:
    """Also where a front end has put places of its own: callers give arrays by these names."""
    known = function_arguments(source.text)
    for function in functions_of(module):
        names = known.get(symbol_of(function), ()) if has_body(function) else ()
        arguments = list(function.regions[0].blocks[0].arguments) if names else []
        for argument, name in zip(arguments, names, strict=False):
            location = argument.location
            place = location.child_loc if location.is_a_name() else location
            argument.set_location(ir.Location.name(name, place))


def _located(location: ir.Location, source: Source, *, result: bool) -> ir.Location:
    """The same place under the cell's name, and the value's name around it."""
    if not location.is_a_file() or location.filename != _UNNAMED:
        return location
    line, column = location.start_line, location.start_col
    place = ir.Location.file(source.cell, line, column)
    offset = source.offset_of(line, column)
    if result:
        before = source.text[source.line_starts[line - 1] if line else 0 : offset]
        match = _RESULT_BEFORE.search(before)
        return ir.Location.name(match[1][1:], place) if match else place
    match = _VALUE.match(source.text, offset)
    return ir.Location.name(match[1], place) if match else place

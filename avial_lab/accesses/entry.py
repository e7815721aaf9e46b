"""The function that holds the program, and its operations in order.

Module -> the function with the schedules, and what stands in them.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.dialects.places import span_of
from avial_lab.errors import PassError


def entry_function(module: ir.Module) -> ir.Operation:
    """The function that holds the schedules; there has to be exactly one."""
    found = [
        view.operation
        for view in module.body.operations
        if view.operation.name == "func.func"
        and any(op.name == "avial.schedule" for op in top_operations(view.operation))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise PassError(
            "several functions have an avial.schedule",
            span=span_of(found[1].location),
            hint="keep the program in one function",
        )
    raise PassError(
        "the program has no avial.schedule", hint="put the tasks into avial.schedule %a, %b { … }"
    )


def schedule_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    """The operations in the function's schedules, in program order, without the terminators."""
    for op in top_operations(function):
        if op.name != "avial.schedule":
            continue
        for inner in op.regions[0].blocks[0].operations:
            if inner.operation.name != "omp.terminator":
                yield inner.operation


def top_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    """The operations of the function itself, schedules included."""
    for region in function.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation

"""The function that holds the program: with avial's schedules, or a plain one as other compilers
write it.

Module -> the function, its schedules, the tasks in them. Read only.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.compiler.ir.locations import span_of
from avial_lab.core.errors import PassError, VerifyError

PROGRAMS = "avial.programs"
"""On a function whose tasks are placed: the steps of every rank."""


def program_function(module: ir.Module | ir.Operation) -> ir.Operation:
    """The one function with schedules; where there is none, the one public function with a body.

    Raises VerifyError where several hold schedules, PassError where there is none to take.
    """
    if not is_plain(module):
        return scheduled_function(module)
    found = [f for f in functions_of(module) if is_public(f) and has_body(f)]
    if len(found) != 1:
        raise PassError(
            f"{len(found)} public functions of this module may be the program",
            hint="keep one of them public",
        )
    return found[0]


def scheduled_function(module: ir.Module | ir.Operation) -> ir.Operation:
    """The one function that holds the schedules; errors as `program_function`."""
    found = [f for f in functions_of(module) if any(True for _ in schedules_of(f))]
    if not found:
        raise PassError(
            "there is no avial.schedule in this module",
            hint="wrap the tasks in avial.schedule { … }",
        )
    if len(found) > 1:
        raise VerifyError(
            "a second function holds an avial.schedule",
            span=span_of(found[1].location),
            hint="keep the program's schedules in one function",
        )
    return found[0]


STRICT = "avial.strict"
"""On a module: floating-point operations are rounded one by one, in the program's order."""


def is_strict(op: ir.Operation) -> bool:
    """Whether the module that `op` is, or stands in, is strict."""
    while op.name != "builtin.module" and op.parent is not None:
        op = op.parent.operation
    return STRICT in op.attributes


def is_plain(module: ir.Module | ir.Operation) -> bool:
    """Whether the program is a plain function: no schedule anywhere."""
    return not any(True for function in functions_of(module) for _ in schedules_of(function))


def is_structured(module: ir.Module | ir.Operation) -> bool:
    """Whether the program has replicates or converges: more than tasks one after the other."""
    return any(
        op.name in ("avial.replicate", "avial.converge")
        for function in functions_of(module)
        for op in schedule_operations(function)
    )


def functions_of(module: ir.Module | ir.Operation) -> Iterator[ir.Operation]:
    """Every func.func, those in modules inside the module included, in textual order."""
    for view in module.operation.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "func.func":
            yield op
        elif op.name == "builtin.module":
            yield from functions_of(op)


def schedules_of(function: ir.Operation) -> Iterator[ir.Operation]:
    """The function's `avial.schedule` operations, in program order."""
    return (op for op in top_operations(function) if op.name == "avial.schedule")


def schedule_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    """The operations in the function's schedules, in program order, without the terminators."""
    for schedule in schedules_of(function):
        for inner in schedule.regions[0].blocks[0].operations:
            if inner.operation.name != "omp.terminator":
                yield inner.operation


def tasks_of(function: ir.Operation) -> Iterator[ir.Operation]:
    """The program's tasks, in program order."""
    return (op for op in schedule_operations(function) if op.name == "avial.task")


def top_operations(function: ir.Operation) -> Iterator[ir.Operation]:
    """The operations of the function itself, schedules included."""
    for region in function.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation


def symbol_of(function: ir.Operation) -> str:
    """The function's name, without the @."""
    return ir.StringAttr(function.attributes["sym_name"]).value


def is_public(function: ir.Operation) -> bool:
    """Whether other modules may call it; one without a visibility is public."""
    attributes = function.attributes
    return (
        "sym_visibility" not in attributes
        or ir.StringAttr(attributes["sym_visibility"]).value == "public"
    )


def has_body(function: ir.Operation) -> bool:
    """Whether it is defined here, not only declared."""
    return len(function.regions[0].blocks) > 0

"""The program in a module: its function, its tasks, and what may stand between them.

Module -> the operations a pass works on. Read only.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.dialects.places import span_of
from avial_lab.errors import PassError

PURE_BETWEEN_TASKS = frozenset(
    {
        "affine.apply",
        "affine.max",
        "affine.min",
        "builtin.unrealized_conversion_cast",
        "memref.cast",
        "memref.collapse_shape",
        "memref.dim",
        "memref.expand_shape",
        "memref.extract_strided_metadata",
        "memref.get_global",
        "memref.memory_space_cast",
        "memref.reinterpret_cast",
        "memref.subview",
        "memref.transpose",
        "memref.view",
        "ub.poison",
        "complex.constant",
        "complex.create",
    }
)
"""Operations without effect that may stand between tasks, besides all of `arith`, `math` and
`index`.
"""


def is_pure(op: ir.Operation) -> bool:
    """Whether `op` has no effect, so that it may stand between tasks and be repeated inside
    them.
    """
    return op.name in PURE_BETWEEN_TASKS or op.name.startswith(("arith.", "index.", "math."))


def program_function(module: ir.Operation) -> ir.Operation:
    """The function that holds the schedules; PassError where there is none, or more than one."""
    found = [
        op.operation
        for op in module.regions[0].blocks[0].operations
        if op.operation.name == "func.func" and any(True for _ in schedules_of(op.operation))
    ]
    if not found:
        raise PassError(
            "there is no avial.schedule in this module",
            hint="wrap the tasks in avial.schedule { … }",
        )
    if len(found) > 1:
        raise PassError(
            "several functions hold an avial.schedule; not yet lowered",
            span=span_of(found[1].location),
            hint="keep one function for the program; put all schedules into it",
        )
    return found[0]


def schedules_of(function: ir.Operation) -> Iterator[ir.Operation]:
    """The function's `avial.schedule` operations, in program order."""
    region = function.regions[0]
    if len(region.blocks) == 0:
        return
    for op in region.blocks[0].operations:
        if op.operation.name == "avial.schedule":
            yield op.operation


def tasks_of(function: ir.Operation) -> Iterator[ir.Operation]:
    """The program's tasks, in program order."""
    for schedule in schedules_of(function):
        for op in schedule.regions[0].blocks[0].operations:
            if op.operation.name == "avial.task":
                yield op.operation


def text_attribute(op: ir.Operation, name: str) -> str:
    """The string attribute `name` of `op`; a broken precondition where it is missing."""
    if name not in op.attributes:
        raise PassError(f"{op.name} has no attribute '{name}'", span=span_of(op.location))
    return ir.StringAttr(op.attributes[name]).value

"""Which functions' arrays share no memory."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.compiler.ir.attributes import NO_ALIAS, OF_TASK, PART, SHARED
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.operations import functions_in
from avial_lab.compiler.ir.views import is_memref

ALLOCATIONS = ("memref.alloc", "memref.alloca")


def functions_without_aliases(module: ir.Operation) -> list[ir.Operation]:
    """Those with a body in which different arrays are different memory, and whose loops are not as
    another pass wants to have them.
    """
    return [f for f in functions_in(module) if has_no_aliases(f) and SHARED not in f.attributes]


def functions_of_tasks(module: ir.Operation) -> list[ir.Operation]:
    """Those that are a phase, or the body of a task, and not to be left as they are."""
    return [
        f for f in functions_in(module) if OF_TASK in f.attributes and SHARED not in f.attributes
    ]


def has_no_aliases(function: ir.Operation) -> bool:
    """Whether different arguments are different memory."""
    blocks = function.regions[0].blocks
    return bool(len(blocks)) and (
        NO_ALIAS in function.attributes or sum(map(is_memref, blocks[0].arguments)) < 2
    )


def functions_and_phases(module: ir.Operation) -> Iterator[tuple[ir.Operation, ir.Operation]]:
    """Each function whose arrays do not alias, and the phase's that it is a part of, or it itself:
    what threads run together is told of that.
    """
    functions = functions_without_aliases(module)
    phases = {text_attribute(each, "sym_name"): each for each in functions}
    for function in functions:
        name = text_attribute(function, "sym_name")
        yield function, phases.get(name.partition(PART)[0], function)

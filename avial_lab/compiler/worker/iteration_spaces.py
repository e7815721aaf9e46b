"""The nests of a program of tasks, each as a picture of its iterations can be drawn of it.

Module of replicates, converges and tasks -> Nests, in textual order.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.artifact.explanation import Nest
from avial_lab.compiler.analysis.polyhedral.drawing import nest_of
from avial_lab.compiler.analysis.polyhedral.operations import LOOPS
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.program import program_function
from avial_lab.planning.task_graph import TaskKind

MOST_NESTS = 60

_KINDS = {
    "avial.replicate": TaskKind.REPLICATE,
    "avial.converge": TaskKind.CONVERGE,
    "avial.task": TaskKind.TASK,
}


def nests_on(structured: ir.Operation) -> Iterator[Nest]:
    """The first 60 nests that have loops; places without their text. `structured` stays."""
    work = structured.clone().operation
    units = list(_units(program_function(work)))[:MOST_NESTS]
    _unfold(work)
    for name, kind, loop in units:
        nest = nest_of(name, kind, loop)
        if nest is not None:
            yield nest


def _units(function: ir.Operation) -> Iterator[tuple[str, TaskKind, ir.Operation]]:
    """Name, kind and outermost loop of all that has one."""
    for op in operations_in(function):
        kind = _KINDS.get(op.name)
        if kind is None:
            continue
        inside = [view.operation for view in op.regions[0].blocks[0]]
        loop = next((inner for inner in inside if inner.name in LOOPS), None)
        if loop is not None:
            yield text_attribute(op, "name"), kind, loop


def _unfold(module: ir.Operation) -> None:
    """What stood in converges stands where they were: they would count as loops themselves."""
    converges = [op for op in operations_in(module) if op.name == "avial.converge"]
    for op in converges:
        for inner in list(op.regions[0].blocks[0].operations)[:-1]:
            inner.operation.move_before(op)
    for op in reversed(converges):
        # One that others wait for stays, empty: it is outside of every loop.
        if not any(True for result in op.results for _ in result.uses):
            op.erase()

"""The whole of a function as one task: for what cannot be taken apart.

Plain function -> the same function with an avial.schedule of one avial.task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from avial_lab.compiler.analysis.accesses.calls import Functions
from avial_lab.compiler.analysis.accesses.footprints import body_touches
from avial_lab.compiler.ir.dialects.avial import CAST, SEGMENTS, rebuilt
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.program import program_function


@dataclass(frozen=True)
class OneTask:
    """Put everything with an effect into one task, with `why` it is not more.

    before:  func.func @f(%A) { body }
    after:   func.func @f(%A) { avial.schedule %A { %t = avial.task %cpu, %A { body } } }
    """

    why: str
    has_command_line: ClassVar[bool] = False
    """Its name says nothing of `why`: no command line repeats it."""

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        with module.context, function.location:
            _wrap(function, self.why)

    def __str__(self) -> str:
        return "one-task"


def _wrap(function: ir.Operation, why: str) -> None:
    block = function.regions[0].blocks[0]
    *body, end = [view.operation for view in block.operations]
    types = {
        name: ir.Type.parse(f"!avial.{name}") for name in ("buffer_ref", "target_ref", "task_ref")
    }
    with ir.InsertionPoint(end):
        handles: dict[ir.Value, ir.Value] = {
            a: ir.Operation.create(CAST, [types["buffer_ref"]], [a]).result
            for a in block.arguments
            if isinstance(a.type, ir.MemRefType)
        }
        schedule = ir.Operation.create("avial.schedule", operands=list(handles.values()), regions=1)
    with ir.InsertionPoint(ir.Block.create_at_start(schedule.regions[0], [])):
        cpu = ir.StringAttr.get("cpu")
        target = ir.Operation.create(
            "avial.target", [types["target_ref"]], attributes={"name": cpu, "arch": cpu}
        ).result
        attributes = {
            "name": ir.StringAttr.get("S1"),
            "avial.why": ir.ArrayAttr.get([ir.StringAttr.get(why)]),
            SEGMENTS: ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        }
        task = ir.Operation.create(
            "avial.task", [types["task_ref"]], [target], attributes=attributes, regions=1
        )
        ir.Operation.create("omp.terminator")
    with ir.InsertionPoint(ir.Block.create_at_start(task.regions[0], [])):
        last = ir.Operation.create("omp.terminator")
    outside: set[ir.Value] = set(block.arguments)
    for op in body:
        if is_pure(op) and all(operand in outside for operand in op.operands):
            outside.update(op.results)
        else:
            op.move_before(last)
    touches = body_touches(task.regions[0].blocks[0], Functions())
    reads = _listed(handles, (touch.root for touch in touches if touch.reads))
    writes = _listed(handles, (touch.root for touch in touches if touch.writes))
    sizes = ir.DenseI32ArrayAttr.get([1, len(reads), len(writes), 0])
    rebuilt(task, [target, *reads, *writes], {SEGMENTS: sizes})


def _listed(handles: Mapping[ir.Value, ir.Value], roots: Iterable[ir.Value]) -> list[ir.Value]:
    return [handles[root] for root in dict.fromkeys(roots) if root in handles]

"""What became of each loop, as the caller is told."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.artifact.explanation import LoopReport
from avial_lab.compiler.ir.effects import text_attribute
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.program import program_function
from avial_lab.planning.task_graph import TaskKind

_KINDS = {
    "avial.replicate": TaskKind.REPLICATE,
    "avial.converge": TaskKind.CONVERGE,
    "avial.task": TaskKind.TASK,
}


def loop_reports_on(structured: ir.Operation) -> Iterator[LoopReport]:
    """What each loop became, from the program of tasks; places without their text."""

    def inside(op: ir.Operation, around: int) -> Iterator[LoopReport]:
        for view in (v for region in op.regions for block in region.blocks for v in block):
            inner = view.operation
            kind = _KINDS.get(inner.name)
            if kind is not None:
                why = inner.attributes.get("avial.why") or ir.ArrayAttr.get([], inner.context)
                yield LoopReport(
                    text_attribute(inner, "name"),
                    kind,
                    around,
                    tuple(ir.StringAttr(line).value for line in ir.ArrayAttr(why)),
                    span_of(inner.location),
                )
            if kind in (None, TaskKind.CONVERGE):
                yield from inside(inner, around + (kind is TaskKind.CONVERGE))

    yield from inside(program_function(structured), 0)

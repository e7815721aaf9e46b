"""The sequential meaning of a program: what stands in tasks, one after the other.

Module in the avial dialect -> the same function without it: bodies where their tasks stood.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.dialects.avial import CAST
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import operations_in

WRAPPERS = ("avial.task", "avial.replicate", "avial.converge", "avial.schedule")


@dataclass(frozen=True)
class UnwrapTasks:
    """Put every body in the place of its task.

    before:  avial.schedule %a { %t = avial.replicate %cpu, %a { scf.parallel … } }
    after:   scf.parallel …
    """

    def __call__(self, module: ir.Operation) -> None:
        wrappers = [op for op in operations_in(module) if op.name in WRAPPERS]
        for op in wrappers:
            for inner in body_of(op):
                inner.move_before(op)
        for op in reversed(wrappers):
            op.erase()
        for op in [op for op in operations_in(module) if op.name in ("avial.target", CAST)]:
            if not any(True for result in op.results for _ in result.uses):
                op.erase()

    def __str__(self) -> str:
        return "unwrap-tasks"

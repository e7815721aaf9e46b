"""Tasks for a GPU whose loops wait for each other, in an order that leaves inner ones free.

Module of tasks -> the same values, every element's in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.loops.kernel_bodies import are_launched_from_host, why_no_kernel
from avial_lab.compiler.codegen.loops.kernel_orders import put_in_fronts
from avial_lab.compiler.ir.nesting import FORS, body_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.remarks import say_why
from avial_lab.compiler.passes.tasks.iter_args_to_memory import live_in_own_elements
from avial_lab.machine.devices import kind_for


@dataclass(frozen=True)
class OrderForThreads:
    """What one front computes waits for those before it, and for nothing in it.

    before:  avial.task { affine.for %i { affine.for %j = 0 to %i { x[i] -= L[i, j] * x[j] }
                                          x[i] /= L[i, i] } }
    after:   avial.task { affine.for %front { affine.for %i = … { x[i] -= L[i, front - i] * … }
                                              affine.if %front mod 2 == 0 { x[…] /= … } } }

    Of nests alone that cannot be launched as they are, and can be then.
    """

    on: str = "gpu"

    def __call__(self, module: ir.Operation) -> None:
        if kind_for(self.on).family != "gpu":
            return
        with module.context:
            for task in operations_named(module, "avial.task"):
                if not why_no_kernel(task):
                    _in_task(task)

    def __str__(self) -> str:
        return f"order-for-threads{{on={self.on}}}"


def _in_task(task: ir.Operation) -> None:
    for op in body_of(task):
        waits = op.name in FORS and not are_launched_from_host([op], read_scop(task))
        if waits and (put_in_fronts(op) or _put_in_fronts_in_memory(op)):
            say_why(task, "its loops run in fronts: what one front computes is free of order")


def _put_in_fronts_in_memory(loop: ir.Operation) -> bool:
    """The same with values that its loops carry in the elements that they end up in."""
    with loop.location, ir.InsertionPoint(loop):
        trial = loop.clone().operation
    if live_in_own_elements(trial) and put_in_fronts(trial):
        loop.erase()
        return True
    trial.erase()
    return False

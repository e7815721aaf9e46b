"""Loops of a kernel that only wait: for memory that another thread, block or launch is to write.

Launch -> loops in it. Where these run one after the other, what such a loop waits for is there when
it begins, or never.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.updates import declared
from avial_lab.compiler.ir.effects import LOADS, is_pure
from avial_lab.compiler.ir.operations import constant_of, operations_in, operations_named

_NOTHING_CHANGES = frozenset(
    {"scf.yield", "scf.condition", "scf.if", "scf.for", "vector.load", "llvm.load", *LOADS}
)

_READS = frozenset({"arith.addi", "arith.ori", "arith.xori", "arith.maxui"})
"""What an atomic operation with 0 does that only reads."""


def waiting_loops(launch: ir.Operation) -> Iterator[ir.Operation]:
    """Each scf.while whose next iteration would be like the last one: it hands no value on, and
    changes nothing.
    """
    for loop in operations_named(launch, "scf.while"):
        if not loop.operands and all(map(_changes_nothing, operations_in(loop))):
            yield loop


def _changes_nothing(op: ir.Operation) -> bool:
    if op.name == "memref.atomic_rmw":
        does = declared(ir.IntegerAttr(op.attributes["kind"]).value)
        return does is not None and does.op in _READS and constant_of(op.operands[0]) == 0
    return op.name in _NOTHING_CHANGES or is_pure(op)

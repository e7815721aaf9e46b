"""What stands inside what.

MLIR operations and values -> yes or no, the operation around, those inside.
"""

from __future__ import annotations

from mlir import ir

FORS = ("affine.for", "scf.for")
"""Loops whose iterations come one after the other, as many as is known when they begin."""


def holds(loop: ir.Operation, op: ir.Operation | None) -> bool:
    """Whether `op` stands somewhere inside `loop`."""
    while op is not None:
        if op == loop:
            return True
        op = parent_of(op)
    return False


def parent_of(op: ir.Operation) -> ir.Operation | None:
    # `.operation`: an OpView's `name` may be its symbol.
    return op.parent.operation if op.parent is not None else None


def body_of(op: ir.Operation) -> list[ir.Operation]:
    """What stands in its one block, without the terminator."""
    return [view.operation for view in op.regions[0].blocks[0].operations][:-1]


def defined_in(op: ir.Operation, value: ir.Value) -> bool:
    owner = value.owner
    inner = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    return holds(op, inner)

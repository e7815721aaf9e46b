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


def inits_of(loop: ir.Operation) -> list[ir.Value]:
    """What a `for` hands to its first iteration."""
    return list(loop.operands)[len(loop.operands) - len(loop.results) :]


def end_of(op: ir.Operation) -> ir.Operation:
    """The terminator of its one block."""
    block = op.regions[0].blocks[0]
    return block.operations[len(block.operations) - 1].operation


def defined_in(op: ir.Operation, value: ir.Value) -> bool:
    owner = value.owner
    inner = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    return holds(op, inner)


def comes_from(value: ir.Value, source: ir.Value) -> bool:
    """Whether the one is computed from the other, or is it."""
    if value == source:
        return True
    owner = value.owner
    return not isinstance(owner, ir.Block) and any(
        comes_from(each, source) for each in owner.operation.operands
    )


def handed_through(loop: ir.Operation, number: int) -> tuple[ir.Operation, int] | None:
    """The loop inside that this carried value of a `for` is given to and comes back from, and which
    of its values it is there; None where the iteration does anything else with it.
    """
    block = loop.regions[0].blocks[0]
    uses = list(block.arguments[1 + number].uses)
    if len(uses) != 1:
        return None
    inner = uses[0].owner.operation
    if inner.name not in FORS or inner.block != block:
        return None
    there = uses[0].operand_number - (len(inner.operands) - len(inner.results))
    if there < 0:
        return None
    back = list(inner.results[there].uses)
    if [(use.owner.operation, use.operand_number) for use in back] != [(end_of(loop), number)]:
        return None
    return inner, there

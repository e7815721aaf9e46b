"""Allocations: how large they may be on a stack, and who uses them."""

from __future__ import annotations

from mlir import ir

STACK_BYTES = 16 * 1024
"""A larger alloca goes to the heap: engines' stacks are not ours to fill."""

_VIEWS = frozenset(
    {
        "memref.cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.memory_space_cast",
        "memref.reinterpret_cast",
        "memref.subview",
        "memref.transpose",
        "memref.view",
        "memref.assume_alignment",
        "arith.select",
    }
)


def uses_of(value: ir.Value) -> tuple[list[ir.Operation], bool]:
    """Who uses the buffer or a view of it, and whether it leaves its block by a terminator, or into
    a loop that hands it on.
    """
    users: list[ir.Operation] = []
    waiting, leaves = [value], False
    while waiting:
        for use in waiting.pop().uses:
            user = use.owner.operation
            users.append(user)
            if user.name in _VIEWS:
                waiting.extend(user.results)
            elif user.name in (
                "scf.yield",
                "func.return",
                "scf.condition",
                "memref.store",
                "affine.yield",
                "cf.br",
                "cf.cond_br",
            ):
                leaves = leaves or user.name != "memref.store" or user.operands[0] == value
            elif user.name in ("scf.for", "scf.while", "affine.for"):
                # Carried by a loop: it may come out as a result.
                leaves = True
    return users, leaves

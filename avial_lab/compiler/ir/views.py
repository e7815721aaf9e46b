"""Buffers and views of them: from a value to what it is a part of."""

from __future__ import annotations

from collections.abc import Iterator

from mlir import ir

from avial_lab.core.buffers import UNBOUNDED

DYNAMIC = -(2**63)
"""MLIR's mark for a size, stride or offset that is an operand."""

VIEWS = {
    "memref.subview",
    "memref.cast",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.reinterpret_cast",
    "memref.transpose",
    "memref.view",
    "memref.reshape",
    "memref.memory_space_cast",
    "memref.extract_strided_metadata",
    "memref.assume_alignment",
}

ALLOCATIONS = {"memref.alloc", "memref.alloca", "gpu.alloc", "memref.get_global"}


def view_chain(value: ir.Value) -> list[ir.Value]:
    """`value`, the memref it is a view of, and so on up to its root (a block argument or an
    allocation).
    """
    chain = [value]
    while (source := view_source(chain[-1])) is not None:
        chain.append(source)
    return chain


def view_source(value: ir.Value) -> ir.Value | None:
    op = defining(value)
    return op.operands[0] if op is not None and op.name in VIEWS else None


def defining(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def alternatives(value: ir.Value) -> Iterator[ir.Value]:
    """The memrefs `value` may stand for: itself, or, for a select or a value carried by a loop, all
    those in reach.
    """
    seen: set[ir.Value] = set()
    pending = [value]
    while pending:
        candidate = pending.pop()
        if candidate in seen:
            continue
        seen.add(candidate)
        root = view_chain(candidate)[-1]
        op = defining(root)
        if op is None:
            parent = root.owner.owner.operation
            if parent.name == "func.func" and root.owner != parent.regions[0].blocks[0]:
                pending.extend(memrefs_of(parent))  # handed over by a branch
            elif parent.name in (
                "func.func",
                "gpu.launch",
                "builtin.module",
            ) or parent.name.startswith("linalg."):
                yield candidate
            else:
                pending.extend(memrefs_of(parent))
        elif op.name in ALLOCATIONS:
            yield candidate
        else:
            pending.extend(memrefs_of(op))


def may_be(value: ir.Value) -> set[ir.Value]:
    """The memory that a memref may be of: it, or what it is a view of, for all its alternatives."""
    return {view_chain(each)[-1] for each in alternatives(value)}


def memrefs_of(op: ir.Operation) -> Iterator[ir.Value]:
    """Every memref that is an operand of `op` or of an operation in its regions."""
    for operand in op.operands:
        if is_memref(operand):
            yield operand
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from memrefs_of(inner.operation)


def is_memref(value: ir.Value) -> bool:
    return isinstance(value.type, (ir.MemRefType, ir.UnrankedMemRefType))


def extents_of(value: ir.Value) -> tuple[int, ...]:
    """The shape of a memref; a dynamic size counts as the size of what it is a view of, else as
    unbounded.
    """
    memref = value.type
    if isinstance(memref, ir.UnrankedMemRefType):
        return ()
    shape = tuple(memref.shape)
    if all(size != DYNAMIC for size in shape):
        return shape
    source = view_source(value)
    op = defining(value)
    if source is not None and op is not None and op.name == "memref.cast":
        known = extents_of(source)
        if len(known) == len(shape):
            return known
    return tuple(UNBOUNDED if size == DYNAMIC else size for size in shape)

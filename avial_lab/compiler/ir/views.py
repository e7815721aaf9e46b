"""Buffers and views of them: from a value to what it is a part of."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

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
                pending.extend(handed_to(root))
        elif op.name in ALLOCATIONS:
            yield candidate
        else:
            pending.extend(handed_to(root))


def may_be(value: ir.Value) -> set[ir.Value]:
    """The memory that a memref may be of: it, or what it is a view of, for all its alternatives."""
    return {view_chain(each)[-1] for each in alternatives(value)}


def handed_to(value: ir.Value) -> list[ir.Value]:
    """The memrefs that `value`, of a loop, a branch or a select, may be in the next step: for an
    operation that is not known here, all that it or one inside has.
    """
    op = defining(value)
    if op is None:
        return _to_argument(ir.BlockArgument(value))
    place = ir.OpResult(value).result_number
    match op.name:
        case "arith.select":
            return list(op.operands)[1:]
        case "scf.if" | "scf.index_switch" | "scf.execute_region" | "affine.if":
            return [
                _end(block).operands[place]
                for region in op.regions
                for block in region.blocks
                if _end(block).name.endswith("yield")
            ]
        case "scf.for" | "affine.for":
            return [_inits(op)[place], _end(op.regions[0].blocks[0]).operands[place]]
        case "scf.while":
            return [_end(op.regions[0].blocks[0]).operands[1 + place]]
    return list(memrefs_of(op))


def _to_argument(value: ir.BlockArgument) -> list[ir.Value]:
    block, place = value.owner, value.arg_number
    op = block.owner.operation
    match op.name:
        case "scf.for" | "affine.for":
            return [_inits(op)[place - 1], _end(block).operands[place - 1]]
        case "scf.while" if block == op.regions[0].blocks[0]:
            return [op.operands[place], _end(op.regions[1].blocks[0]).operands[place]]
        case "scf.while":
            return [_end(op.regions[0].blocks[0]).operands[1 + place]]
    return list(memrefs_of(op))


def _inits(loop: ir.Operation) -> list[ir.Value]:
    """What its carried values are at first: its last operands."""
    return list(loop.operands)[len(loop.operands) - len(loop.results) :]


def _end(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation


def memrefs_of(op: ir.Operation) -> Iterator[ir.Value]:
    """Every memref that is an operand of `op` or of an operation in its regions."""
    for operand in op.operands:
        if is_memref(operand):
            yield operand
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from memrefs_of(inner.operation)


def kept_dimensions(subview: ir.Operation) -> list[int]:
    """The dimensions of its source that a memref.subview still has; those of extent 1 that its type
    leaves out are dropped, of several side by side the last ones.

        [1, n, 1, m] as memref<1x?x?xf32>: 0, 1, 3
    """
    sizes = list(ir.DenseI64ArrayAttr(subview.attributes["static_sizes"]))
    return dimensions_left(sizes, list(ir.MemRefType(subview.results[0].type).shape))


def dimensions_left(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Those of a window of these `sizes` that are left in `shape`."""
    surplus = len(sizes) - len(shape)
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        ones = sizes[dim:].count(1)
        following = shape[len(kept)] if len(kept) < len(shape) else DYNAMIC
        if size == 1 and surplus and (following != 1 or surplus == ones):
            surplus -= 1
            continue
        kept.append(dim)
    return kept


def reassociation_of(op: ir.Operation) -> list[list[int]]:
    """The dimensions that are one on the other side of a collapse_shape or an expand_shape."""
    groups = ir.ArrayAttr(op.attributes["reassociation"])
    return [[ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)] for group in groups]


def long_dimensions(group: Sequence[int], ones: Container[int]) -> list[int]:
    """The dimensions of a group whose extent is not 1; the first of it where there are none."""
    return [dim for dim in group if dim not in ones] or [group[0]]


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

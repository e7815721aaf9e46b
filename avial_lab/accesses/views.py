"""Views: which memref a value is a window of, and where in it.

Memref values -> the chain to their root; indices of a view -> indices of what it is a view of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mlir import ir

from avial_lab.accesses.linear import ONE, Linear, Window
from avial_lab.arrays import UNBOUNDED

if TYPE_CHECKING:
    from avial_lab.accesses.index_forms import IndexForms

DYNAMIC = -(2**63)
"""MLIR's mark for a size, stride or offset that is an operand."""


def view_chain(value: ir.Value) -> list[ir.Value]:
    """`value`, the memref it is a view of, and so on up to its root (a block argument or an
    allocation).
    """
    chain = [value]
    while (source := view_source(chain[-1])) is not None:
        chain.append(source)
    return chain


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
            if parent.name in (
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


ALLOCATIONS = {"memref.alloc", "memref.alloca", "gpu.alloc", "memref.get_global"}


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


# -- views: from the index space of the result to that of the source


def _same_indices(
    _forms: IndexForms, _op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> tuple[Sequence[Linear], Sequence[Window]]:
    return indices, windows


def _through_subview(
    forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> tuple[Sequence[Linear], Sequence[Window]] | None:
    """offset + stride × index in each dimension; dimensions of size 1 may have been dropped from
    the result.
    """
    dynamic = iter(list(op.operands)[1:])

    def mixed(name: str) -> list[Linear]:
        static = ir.DenseI64ArrayAttr(op.attributes[name])
        return [forms.of(next(dynamic)) if k == DYNAMIC else Linear(k) for k in static]

    offsets, sizes, strides = (
        mixed("static_offsets"),
        mixed("static_sizes"),
        mixed("static_strides"),
    )
    if any(stride.terms or stride.constant <= 0 for stride in strides):
        return None
    kept = _kept_dimensions(sizes, list(ir.MemRefType(op.results[0].type).shape))
    mapped: list[Linear] = []
    spans: list[Window] = []
    place = 0
    for dim, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        if dim not in kept:
            mapped.append(offset)
            spans.append(ONE)
            continue
        index, window = indices[place], windows[place]
        place += 1
        bounds = size.bounds()
        count = min(window.count, bounds[1]) if bounds is not None else window.count
        mapped.append(offset.plus(index.times(stride.constant)))
        spans.append(Window(window.stride * stride.constant, count))
    return mapped, spans


def _kept_dimensions(sizes: Sequence[Linear], result: Sequence[int]) -> set[int]:
    """The source's dimensions that the result of a rank-reducing subview still has."""
    surplus = len(sizes) - len(result)
    kept: set[int] = set()
    place = 0
    for dim, size in enumerate(sizes):
        one = not size.terms and size.constant == 1
        fits = place < len(result) and (
            result[place] == DYNAMIC or (not size.terms and size.constant == result[place])
        )
        if surplus and one and not (fits and result[place] == 1 and surplus < _ones(sizes[dim:])):
            surplus -= 1
            continue
        kept.add(dim)
        place += 1
    return kept


def _ones(sizes: Sequence[Linear]) -> int:
    return sum(not size.terms and size.constant == 1 for size in sizes)


def _through_transpose(
    _forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> tuple[Sequence[Linear], Sequence[Window]]:
    permutation = op.attributes["permutation"].value
    order = [expr.position for expr in permutation.results]
    place = {source: k for k, source in enumerate(order)}
    return [indices[place[d]] for d in range(len(order))], [
        windows[place[d]] for d in range(len(order))
    ]


VIEW_MAPS = {
    "memref.cast": _same_indices,
    "memref.memory_space_cast": _same_indices,
    "memref.assume_alignment": _same_indices,
    "memref.subview": _through_subview,
    "memref.transpose": _through_transpose,
}

"""Which elements of a root memref an element, or the whole, of a view is.

Indices of a view -> indices of the memref it is a view of, and so on up to the root. An index may
hold window variables (`w0`, `w1`, …) that run over an extent: so the whole of a view is one element
with as many window variables as the view has dimensions.

    %v = memref.subview %A[2, 0] [3, 8] [2, 1]         whole of %v:  A[2*w0 + 2, w1]
                                                       0 <= w0 < 3, 0 <= w1 < 8
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.indices import Indices, size_of
from avial_lab.compiler.ir.dialects.avial import CAST
from avial_lab.compiler.ir.views import (
    ALLOCATIONS,
    DYNAMIC,
    defining,
    handed_to,
    kept_dimensions,
    long_dimensions,
    reassociation_of,
    view_source,
)

Subscripts = tuple[Affine | None, ...]


@dataclass(frozen=True)
class Window:
    """Elements of `root`: those of `subscripts` for all values 0 <= w < size of the variables.

    None for a subscript or a size that is not known.
    """

    root: ir.Value
    subscripts: Subscripts
    variables: tuple[tuple[str, Affine | None], ...] = ()

    @property
    def exact(self) -> bool:
        return None not in self.subscripts and all(size is not None for _, size in self.variables)


def element(indices: Indices, memref: ir.Value, subscripts: Subscripts) -> Window:
    """The element of a memref's root that `memref[subscripts]` is."""
    return _at_root(indices, memref, subscripts, ())


def whole(indices: Indices, memref: ir.Value) -> Window:
    """All elements that `memref` gives access to."""
    rank = len(memref.type.shape) if isinstance(memref.type, ir.MemRefType) else 0
    extents = [size_of(indices, memref, dim) for dim in range(rank)]
    return block(indices, memref, (Affine(0),) * rank, extents)


def block(
    indices: Indices, memref: ir.Value, first: Subscripts, extents: Sequence[Affine | None]
) -> Window:
    """The elements from `first` on, `extents` of them in each dimension."""
    subscripts: list[Affine | None] = []
    variables: list[tuple[str, Affine | None]] = []
    for dim, (start, extent) in enumerate(zip(first, extents, strict=True)):
        if extent == Affine(1) or start is None:
            subscripts.append(start)
            continue
        variables.append((f"w{dim}_", extent))
        subscripts.append(start.plus(Affine.of(f"w{dim}_")))
    return _at_root(indices, memref, tuple(subscripts), tuple(variables))


def _at_root(
    indices: Indices,
    memref: ir.Value,
    subscripts: Subscripts,
    variables: tuple[tuple[str, Affine | None], ...],
) -> Window:
    while (source := source_of(memref)) is not None:
        op = defining(memref)
        step = _STEPS.get(op.name) if op is not None else None
        mapped = step(indices, op, subscripts) if step is not None and op is not None else None
        rank = len(source.type.shape) if isinstance(source.type, ir.MemRefType) else 0
        if mapped is None or len(mapped) != rank:
            mapped = (None,) * rank
        subscripts, memref = mapped, source
    return Window(memref, subscripts, variables)


def source_of(memref: ir.Value) -> ir.Value | None:
    """What a memref is a view of; avial's handles of buffers are looked through."""
    op = defining(memref)
    if op is not None and op.name == CAST and len(op.operands) == 1:
        return op.operands[0]
    return view_source(memref)


def roots_of(memref: ir.Value) -> list[ir.Value] | None:
    """The roots that a memref may be a view of; several for a select or one that a loop carries.

    None where it may be any: returned by a call, loaded from memory.
    """
    roots: dict[ir.Value, None] = {}
    seen: set[ir.Value] = set()
    pending = [memref]
    while pending:
        value = pending.pop()
        while (source := source_of(value)) is not None:
            value = source
        if value in seen:
            continue
        seen.add(value)
        op = defining(value)
        carrier = op if op is not None else value.owner.owner.operation
        begins = carrier.name not in _CHOOSERS if op is None else op.name in ALLOCATIONS
        if begins:
            roots[value] = None
        elif carrier.name in _CHOOSERS:
            pending.extend(handed_to(value))
        else:
            return None
    return list(roots)


_CHOOSERS = {
    "arith.select", "scf.if", "scf.for", "scf.while", "scf.index_switch", "scf.execute_region",
    "affine.for", "affine.if", "memref.alloca_scope",
}  # fmt: skip


# -- one step from the indices of a view to those of its source


def _same(_indices: Indices, _op: ir.Operation, subscripts: Subscripts) -> Subscripts:
    return subscripts


def _mixed(
    indices: Indices, op: ir.Operation, name: str, dynamic: Iterator[ir.Value]
) -> Subscripts:
    """Numbers of a view that stand partly in an attribute, partly in operands."""
    return tuple(
        indices.of(next(dynamic)) if size == DYNAMIC else Affine(size)
        for size in ir.DenseI64ArrayAttr(op.attributes[name])
    )


def _subview(indices: Indices, op: ir.Operation, subscripts: Subscripts) -> Subscripts | None:
    dynamic = iter(list(op.operands)[1:])
    offsets = _mixed(indices, op, "static_offsets", dynamic)
    _mixed(indices, op, "static_sizes", dynamic)
    strides = _mixed(indices, op, "static_strides", dynamic)
    kept = kept_dimensions(op)
    remaining = iter(subscripts)
    mapped: list[Affine | None] = []
    for dim, (offset, stride) in enumerate(zip(offsets, strides, strict=True)):
        index = next(remaining) if dim in kept else Affine(0)
        if index is None or offset is None or stride is None or not stride.is_constant:
            mapped.append(offset if dim not in kept else None)
            continue
        mapped.append(offset.plus(index.times(stride.constant)))
    return tuple(mapped)


def _transpose(_indices: Indices, op: ir.Operation, subscripts: Subscripts) -> Subscripts:
    order = [expr.position for expr in op.attributes["permutation"].value.results]
    place = {source: k for k, source in enumerate(order)}
    return tuple(subscripts[place[dim]] for dim in range(len(order)))


def _expand_shape(_indices: Indices, op: ir.Operation, subscripts: Subscripts) -> Subscripts:
    """Source index of a group = its indices in row-major order."""
    shape = op.results[0].type.shape
    return tuple(
        linear([subscripts[dim] for dim in group], [shape[dim] for dim in group])
        for group in reassociation_of(op)
    )


def _collapse_shape(_indices: Indices, op: ir.Operation, subscripts: Subscripts) -> Subscripts:
    shape = op.operands[0].type.shape
    mapped: list[Affine | None] = [Affine(0)] * len(shape)  # of a view of no dimension, say
    ones = {dim for dim, size in enumerate(shape) if size == 1}
    for index, group in zip(subscripts, reassociation_of(op), strict=True):
        long = long_dimensions(group, ones)
        for dim, part in zip(long, delinear(index, [shape[dim] for dim in long]), strict=True):
            mapped[dim] = part
    return tuple(mapped)


def _reinterpret_cast(
    indices: Indices, op: ir.Operation, subscripts: Subscripts
) -> Subscripts | None:
    """Through the place in memory: offset + Σ stride × index, then the source's own indices."""
    source = op.operands[0].type
    if not isinstance(source, ir.MemRefType) or not _row_major(source):
        return None
    dynamic = iter(list(op.operands)[1:])
    (offset,) = _mixed(indices, op, "static_offsets", dynamic)
    _mixed(indices, op, "static_sizes", dynamic)
    strides = _mixed(indices, op, "static_strides", dynamic)
    place = offset
    for index, stride in zip(subscripts, strides, strict=True):
        if place is None or index is None or stride is None or not stride.is_constant:
            return None
        place = place.plus(index.times(stride.constant))
    return tuple(delinear(place, list(source.shape)))


def _row_major(memref: ir.MemRefType) -> bool:
    return memref.affine_map == ir.AffineMap.get_identity(memref.rank, memref.context)


def linear(subscripts: Sequence[Affine | None], shape: Sequence[int]) -> Affine | None:
    """The row-major place of an element; the first size may be dynamic."""
    place: Affine | None = Affine(0)
    for dim, (index, size) in enumerate(zip(subscripts, shape, strict=True)):
        if place is None or index is None or (dim > 0 and size == DYNAMIC):
            return None
        place = place.times(size if dim else 0).plus(index)
    return place


def delinear(place: Affine | None, shape: Sequence[int]) -> list[Affine | None]:
    """The element at a row-major place; the first size may be dynamic."""
    if not shape:
        return []
    if place is None or DYNAMIC in shape[1:] or 0 in shape[1:]:
        return [None] * len(shape)
    parts: list[Affine | None] = []
    for size in reversed(shape[1:]):
        parts.append(place.mod(size))
        place = place.floordiv(size)
    return [place, *reversed(parts)]


_STEPS: dict[str, Callable[[Indices, ir.Operation, Subscripts], Subscripts | None]] = {
    CAST: _same,
    "memref.cast": _same,
    "memref.memory_space_cast": _same,
    "memref.assume_alignment": _same,
    "memref.subview": _subview,
    "memref.transpose": _transpose,
    "memref.expand_shape": _expand_shape,
    "memref.collapse_shape": _collapse_shape,
    "memref.reinterpret_cast": _reinterpret_cast,
}

"""Views: which memref a value is a window of, and where in it.

Memref values -> the chain to their root; indices of a view -> indices of what it is a view of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mlir import ir

from avial_lab.compiler.analysis.accesses.linear import ONE, Linear, Variable, Window, unknown
from avial_lab.compiler.ir.views import (
    DYNAMIC,
    kept_dimensions,
    long_dimensions,
    reassociation_of,
    view_chain,
)
from avial_lab.core.buffers import UNBOUNDED

if TYPE_CHECKING:
    from avial_lab.compiler.analysis.accesses.index_forms import IndexForms


ABSOLUTE = {"memref.reinterpret_cast", "memref.extract_strided_metadata"}
"""Views that count from where the memory begins, whatever their source is a view of."""


# -- sizes -----------------------------------------------------------------------------------------


def open_extents(forms: IndexForms, op: ir.Operation) -> Sequence[Linear] | None:
    """The shape of what the view or allocation `op` makes, one form for each dimension; None where
    it is not followed.
    """
    match op.name:
        case "memref.cast" | "memref.memory_space_cast" | "memref.assume_alignment":
            return forms.extents(op.operands[0])
        case "memref.alloc" | "memref.alloca":
            sizes = iter(list(op.operands))
            shape = ir.MemRefType(op.results[0].type).shape
            return [forms.of(next(sizes)) if n == DYNAMIC else Linear(n) for n in shape]
        case "memref.subview":
            sizes = _cut(forms, op)[1]
            return [sizes[dim] for dim in kept_dimensions(op)]
        case "memref.reinterpret_cast":
            return _cut(forms, op)[1]
        case "memref.transpose":
            known = forms.extents(op.operands[0])
            return [known[e.position] for e in op.attributes["permutation"].value.results]
        case "memref.expand_shape":
            return _mixed(forms, op, "static_output_shape", iter(list(op.operands)[1:]))
        case "memref.collapse_shape":
            known = forms.extents(op.operands[0])
            return [_product([known[dim] for dim in group]) for group in reassociation_of(op)]
    return None


def _product(forms: Sequence[Linear]) -> Linear:
    """Of sizes that are known but for one; else unknown."""
    result = Linear(1)
    for form in forms:
        if form.terms and result.terms:
            return unknown()
        result = form.times(result.constant) if not result.terms else result.times(form.constant)
    return result


def _mixed(
    forms: IndexForms, op: ir.Operation, name: str, dynamic: Iterator[ir.Value]
) -> list[Linear]:
    """Numbers of which some are in the attribute `name` and the rest are operands."""
    static = ir.DenseI64ArrayAttr(op.attributes[name])
    return [forms.of(next(dynamic)) if k == DYNAMIC else Linear(k) for k in static]


def _cut(forms: IndexForms, op: ir.Operation) -> tuple[list[Linear], list[Linear], list[Linear]]:
    """Offsets, sizes and strides of a subview or a reinterpret_cast."""
    dynamic = iter(list(op.operands)[1:])
    offsets, sizes, strides = (
        _mixed(forms, op, f"static_{name}", dynamic) for name in ("offsets", "sizes", "strides")
    )
    return offsets, sizes, strides


# -- views: from the index space of the result to that of the source -------------------------------

Mapped = tuple[Sequence[Linear], Sequence[Window], bool]
"""A window in the source: its first indices, its extents, and whether it holds no more elements
than the view's window does.
"""


def whole_of(forms: IndexForms, value: ir.Value) -> Mapped:
    """The window that is all of `value`; the flag tells whether all its sizes are known."""
    extents = forms.extents(value)
    counts = [_most(extent) for extent in extents]
    fixed = not any(extent.terms for extent in extents)
    return [Linear(0)] * len(extents), [Window(1, count) for count in counts], fixed


def _most(extent: Linear) -> int:
    bounds = extent.bounds()
    return UNBOUNDED if bounds is None else max(bounds[1], 0)


def _same_indices(
    forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> Mapped | None:
    same = len(forms.extents(op.operands[0])) == len(indices)
    return (indices, windows, True) if same else None


def _through_subview(
    forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> Mapped | None:
    """offset + stride × index in each dimension; dimensions of size 1 may have been dropped from
    the result.
    """
    offsets, sizes, strides = _cut(forms, op)
    if any(stride.terms for stride in strides):
        forms.lose(*strides)
        return None
    kept = kept_dimensions(op)
    mapped: list[Linear] = []
    spans: list[Window] = []
    precise = True
    place = 0
    for dim, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        if dim not in kept:
            mapped.append(offset)
            spans.append(ONE)
            continue
        index, window = indices[place], windows[place]
        place += 1
        window = Window(window.stride, min(window.count, _most(size)))
        if stride.constant < 0:
            index = index.plus(Linear(window.stride * (window.count - 1)))
        mapped.append(offset.plus(index.times(stride.constant)))
        spans.append(Window(window.stride * abs(stride.constant) or 1, window.count))
        precise = precise and stride.constant != 0
    return mapped, spans, precise


def _through_transpose(
    _forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> Mapped:
    permutation = op.attributes["permutation"].value
    order = [expr.position for expr in permutation.results]
    place = {source: k for k, source in enumerate(order)}
    dims = range(len(order))
    return [indices[place[d]] for d in dims], [windows[place[d]] for d in dims], True


def _through_expansion(
    forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> Mapped | None:
    """Several dimensions of the view are one of the source, the last of them the fastest."""
    sizes = forms.extents(op.results[0])
    mapped: list[Linear] = []
    for group in reassociation_of(op):
        if any(sizes[dim].terms for dim in group[1:]):
            forms.lose(*sizes)
            return None
        index = Linear(0)
        for dim in group:
            index = index.times(sizes[dim].constant) if dim != group[0] else index
            index = index.plus(_ranging(indices[dim], windows[dim]))
        mapped.append(index)
    return mapped, [ONE] * len(mapped), True


def _through_collapse(
    forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> Mapped | None:
    """One dimension of the view is several of the source."""
    sizes = forms.extents(op.operands[0])
    if not sizes:  # of no dimension: it becomes one of size 1
        return [], [], True
    # In a view of no dimension there is no group: the one element.
    mapped, spans = [Linear(0)] * len(sizes), [ONE] * len(sizes)
    precise = True
    ones = {dim for dim, size in enumerate(sizes) if not size.terms and size.constant == 1}
    for group, index, window in zip(reassociation_of(op), indices, windows, strict=True):
        long = long_dimensions(group, ones)
        if len(long) == 1:
            found: Mapped | None = [index], [window], True
        else:
            found = delinearised(forms, index, window, [sizes[dim] for dim in long])
        if found is None:
            return None
        for dim, first, span in zip(long, found[0], found[1], strict=True):
            mapped[dim], spans[dim] = first, span
        precise = precise and found[2]
    return mapped, spans, precise


def _ranging(index: Linear, window: Window) -> Linear:
    """The indices of a window as one form."""
    if window.count == 1:
        return index
    variable = Variable(0, window.count, full=True)
    return index.plus(Linear(0, ((variable, window.stride),)))


def delinearised(
    forms: IndexForms, index: Linear, window: Window, sizes: Sequence[Linear]
) -> Mapped | None:
    """The places of a window of a row-major array of those sizes, laid out flat; None where the
    array is not large enough or its sizes are not known.
    """
    if any(size.terms for size in sizes[1:]):
        forms.lose(*sizes)
        return None
    mapped: list[Linear] = []
    spans: list[Window] = []
    rest, precise = index, True
    for dim in range(len(sizes) - 1):
        row = _row(sizes[dim + 1 :])
        if row <= 0:
            return None
        outer, inner = _divided(rest, row)
        bounds = inner.bounds()
        if bounds is None:
            forms.lose(index)
            return None
        first, last = bounds[0], bounds[1] + window.extent - 1
        carry = first // row
        if last // row == carry:  # all of it in one row, whichever
            mapped.append(outer.plus(Linear(carry)))
            spans.append(ONE)
            rest = inner.plus(Linear(carry * row), -1)
            continue
        rows = last // row - carry + 1
        full = not inner.terms and window.stride == 1 and not first % row and not (last + 1) % row
        mapped.append(outer.plus(Linear(carry)))
        spans.append(Window(1, rows))
        inside = [size.constant for size in sizes[dim + 1 :]]
        mapped += [Linear(0)] * len(inside)
        return mapped, [*spans, *(Window(1, size) for size in inside)], precise and full
    return [*mapped, rest], [*spans, window], precise


def _row(sizes: Sequence[Linear]) -> int:
    row = 1
    for size in sizes:
        row *= size.constant
    return row


def _divided(form: Linear, row: int) -> tuple[Linear, Linear]:
    """What counts whole rows, in rows, and the rest."""
    whole = tuple((v, f // row) for v, f in form.terms if not f % row)
    rest = tuple((v, f) for v, f in form.terms if f % row)
    return Linear(form.constant // row, whole), Linear(form.constant % row, rest)


def addressed(
    forms: IndexForms, op: ir.Operation, indices: Sequence[Linear], windows: Sequence[Window]
) -> tuple[ir.Value, Mapped | None]:
    """The memory that an ABSOLUTE view addresses, and the window there: offset + Σ stride × index
    elements from its beginning; None where it may be anywhere in it.
    """
    chain = view_chain(op.results[0])
    root = chain[-1]
    if op.name != "memref.reinterpret_cast":
        return root, None
    kinds = {each.owner.operation.name for each in chain[:-1]}
    memref = root.type
    if not isinstance(memref, ir.MemRefType) or not memref.rank or not kinds <= _SAME_ELEMENTS:
        return root, None
    if memref.affine_map != ir.AffineMap.get_identity(memref.rank, memref.context):
        return root, None
    (offset,), _, strides = _cut(forms, op)
    if any(stride.terms for stride in strides):
        forms.lose(*strides)
        return root, None
    place, flat = offset, Window(1, 1)
    for index, window, stride in zip(indices, windows, strides, strict=True):
        place = place.plus(index.times(stride.constant))
        span = window.stride * stride.constant
        if window.count == 1:
            continue
        if span < 0:
            place = place.plus(Linear(span * (window.count - 1)))
        fresh = Window(abs(span) or 1, window.count if span else 1)
        if flat.count == 1:
            flat = fresh
        elif flat.stride == fresh.stride * fresh.count:
            flat = Window(fresh.stride, fresh.count * flat.count)
        else:
            place = _ranging(place, flat)
            flat = fresh
    sizes = forms.extents(root)
    mapped = delinearised(forms, place, flat, sizes)
    return root, mapped if mapped is not None and _inside(forms, mapped, sizes[0]) else None


def _inside(forms: IndexForms, mapped: Mapped, size: Linear) -> bool:
    """Whether the window begins and ends in memory of so many rows."""
    bounds = mapped[0][0].bounds()
    forms.lose(size)
    return (
        bounds is not None
        and not size.terms
        and bounds[0] >= 0
        and bounds[1] + mapped[1][0].extent <= size.constant
    )


_SAME_ELEMENTS = {
    "memref.cast", "memref.memory_space_cast", "memref.assume_alignment", "memref.subview",
    "memref.transpose", "memref.collapse_shape", "memref.expand_shape", "memref.reinterpret_cast",
    "memref.extract_strided_metadata",
}  # fmt: skip
"""Views whose elements are those of the memory, of the same type."""

VIEW_MAPS = {
    "memref.cast": _same_indices,
    "memref.memory_space_cast": _same_indices,
    "memref.assume_alignment": _same_indices,
    "memref.subview": _through_subview,
    "memref.transpose": _through_transpose,
    "memref.expand_shape": _through_expansion,
    "memref.collapse_shape": _through_collapse,
}

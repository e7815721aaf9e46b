"""Bodies that read or write an array through views of views; unit extents are frequent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.witness.drawn.body import ELEMENT, Body
from tests.witness.drawn.writer import Writer


@dataclass(frozen=True)
class Dim:
    """An extent and its stride in elements; either may be `?` in the type."""

    size: int
    stride: int
    open: bool = False
    open_stride: bool = False


@dataclass(frozen=True)
class View:
    """What a memref of the text is; `identity`: its type says nothing of strides."""

    name: str
    element: str
    dims: tuple[Dim, ...]
    offset: int | None = 0
    identity: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(dim.size for dim in self.dims)

    @property
    def plain(self) -> bool:
        """Whether MLIR takes its layout for that of dense memory; `strided<[1]>` is that, too."""
        (dim, *more) = self.dims or (Dim(1, 1),)
        unit = dim.stride == 1 and not dim.open_stride and self.offset == 0 and not more
        return self.identity or unit

    @property
    def type(self) -> str:
        extents = "".join(f"{'?' if dim.open else dim.size}x" for dim in self.dims)
        if self.identity:
            return f"memref<{extents}{self.element}>"
        strides = ", ".join("?" if dim.open_stride else str(dim.stride) for dim in self.dims)
        offset = (
            "" if self.offset == 0 else f", offset: {'?' if self.offset is None else self.offset}"
        )
        return f"memref<{extents}{self.element}, strided<[{strides}]{offset}>>"


def viewed(name: str, array: np.ndarray, opened: Sequence[bool] = ()) -> View:
    """Of dense memory; an extent that the type leaves out makes the strides before it unknown."""
    opened = opened or (False,) * array.ndim
    dims = tuple(
        Dim(n, prod(array.shape[k + 1 :]), opened[k], any(opened[k + 1 :]))
        for k, n in enumerate(array.shape)
    )
    return View(f"%{name}", ELEMENT[array.dtype.name], dims)


# -- one view of another ---------------------------------------------------------------------------


def mixed(w: Writer, value: int, dynamic: bool) -> str:
    """A number in a list of offsets or sizes: as it is, or a value that is it."""
    if not dynamic:
        return str(value)
    return (w.constant("index", value) if w.flip() else w.hidden(value)).name


def _subview(w: Writer, view: View) -> View:
    sizes = [w.pick((1, w.whole(1, dim.size), dim.size)) for dim in view.dims]
    steps = [
        w.whole(1, 2) if n > 1 and 2 * (n - 1) < dim.size else 1
        for n, dim in zip(sizes, view.dims, strict=True)
    ]
    starts = [
        w.whole(0, dim.size - (n - 1) * s - 1)
        for n, s, dim in zip(sizes, steps, view.dims, strict=True)
    ]
    open_sizes = [w.whole(0, 3) == 0 for _ in sizes]
    open_starts = [w.whole(0, 3) == 0 for _ in starts]
    parts = [
        [mixed(w, value, dynamic) for value, dynamic in zip(values, flags, strict=True)]
        for values, flags in ((starts, open_starts), (sizes, open_sizes))
    ]
    known = not any(open_starts) and view.offset is not None
    known = known and all(
        a == 0 or not d.open_stride for a, d in zip(starts, view.dims, strict=True)
    )
    offset = (
        view.offset + sum(a * dim.stride for a, dim in zip(starts, view.dims, strict=True))
        if known and view.offset is not None
        else None
    )
    dims = [
        Dim(n, s * dim.stride, o, dim.open_stride)
        for n, s, o, dim in zip(sizes, steps, open_sizes, view.dims, strict=True)
    ]
    units = [k for k, dim in enumerate(dims) if dim.size == 1 and not dim.open]
    gone = _as_mlir_drops([k for k in units if w.flip()] if w.flip() else [], units, dims)
    kept = tuple(dim for k, dim in enumerate(dims) if k not in gone)
    result = View(w.fresh(), view.element, kept, offset, identity=False)
    lists = [f"[{', '.join(part)}]" for part in [*parts, [str(s) for s in steps]]]
    w.put(
        f"{result.name} = memref.subview {view.name}{' '.join(lists)} "
        f": {view.type} to {result.type}"
    )
    return result


def _as_mlir_drops(gone: Sequence[int], units: Sequence[int], dims: Sequence[Dim]) -> list[int]:
    """Of the `units` with the same stride the first ones: MLIR refuses a type without others."""
    strides = ["?" if dim.open_stride else dim.stride for dim in dims]
    found: list[int] = []
    for k in gone:
        alike = [unit for unit in units if strides[unit] == strides[k] and unit not in found]
        found.append(alike[0])
    return found


def _transpose(w: Writer, view: View) -> View:
    order = list(w.permutation(len(view.dims)))
    result = replace(view, name=w.fresh(), dims=tuple(view.dims[k] for k in order), identity=False)
    heads = [", ".join(f"d{k}" for k in part) for part in (range(len(order)), order)]
    w.put(
        f"{result.name} = memref.transpose {view.name} ({heads[0]}) -> ({heads[1]}) "
        f": {view.type} to {result.type}"
    )
    return result


def groups_of(w: Writer, count: int) -> list[list[int]]:
    """Neighbours together."""
    groups: list[list[int]] = []
    for k in range(count):
        if groups and w.flip():
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def _collapse(w: Writer, view: View) -> View:
    """What lies behind one another, as its type shows."""
    groups: list[list[int]] = []
    for k, dim in enumerate(view.dims):
        before = view.dims[k - 1] if k else dim
        dense = not (dim.open or dim.open_stride or before.open or before.open_stride)
        dense = (
            dense and before.stride == dim.stride * dim.size and before.size > 1 and dim.size > 1
        )
        if groups and (dense or view.identity) and not (before.open and dim.open) and w.flip():
            groups[-1].append(k)
        else:
            groups.append([k])
    if any(view.dims[k].open for group in groups if len(group) > 1 for k in group):
        return view
    if not view.dims:
        return view  # MLIR keeps its layout, which is none: `strided<[]>`
    dims = tuple(
        replace(view.dims[group[-1]], size=prod(view.dims[k].size for k in group))
        for group in groups
    )
    result = replace(view, name=w.fresh(), dims=dims, identity=view.plain)
    w.put(
        f"{result.name} = memref.collapse_shape {view.name} {groups} "
        f": {view.type} into {result.type}"
    )
    return result


def factors(w: Writer, size: int) -> list[int]:
    """Two that make it, one of them often 1."""
    one = w.pick([k for k in range(1, size + 1) if size % k == 0])
    return [one, size // one]


def _expand(w: Writer, view: View) -> View:
    chosen = w.whole(0, len(view.dims) - 1) if view.dims else -1
    if chosen < 0 or view.dims[chosen].open or view.dims[chosen].open_stride or len(view.dims) > 3:
        return view
    groups: list[list[int]] = []
    dims: list[Dim] = []
    for k, dim in enumerate(view.dims):
        parts = factors(w, dim.size) if k == chosen else [dim.size]
        groups.append(list(range(len(dims), len(dims) + len(parts))))
        for j, part in enumerate(parts):
            inner = prod(parts[j + 1 :])
            dims.append(dim if len(parts) == 1 else Dim(part, dim.stride * inner))
    result = replace(view, name=w.fresh(), dims=tuple(dims), identity=view.plain)
    sizes = [w.hidden(dim.size).name if dim.open else str(dim.size) for dim in dims]
    w.put(
        f"{result.name} = memref.expand_shape {view.name} {groups} "
        f"output_shape [{', '.join(sizes)}] : {view.type} into {result.type}"
    )
    return result


def _cast(w: Writer, view: View) -> View:
    """Some extents forgotten, and perhaps the offset."""
    opened = [dim.open or w.flip() for dim in view.dims]
    dims = tuple(
        # of dense memory, an extent that is unknown makes the strides before it so
        replace(dim, open=o, open_stride=any(opened[k + 1 :]) if view.identity else dim.open_stride)
        for k, (dim, o) in enumerate(zip(view.dims, opened, strict=True))
    )
    offset = None if not view.identity and w.flip() else view.offset
    result = replace(view, name=w.fresh(), dims=dims, offset=offset)
    if result.type == view.type:
        return view
    w.put(f"{result.name} = memref.cast {view.name} : {view.type} to {result.type}")
    return result


_STEPS: tuple[Callable[[Writer, View], View], ...] = (
    _subview, _subview, _subview, _transpose, _collapse, _expand, _cast,
)  # fmt: skip


# -- bodies ----------------------------------------------------------------------------------------


def shape(w: Writer, least: int = 1) -> tuple[int, ...]:
    """Rank 1 to 4; half of the extents are 1 or 2."""
    return tuple(w.pick((1, 1, 2, 3, 4, 5)) for _ in range(w.whole(least, 4)))


def filled(w: Writer, extents: Sequence[int], dtype: type[np.generic]) -> np.ndarray:
    rng = np.random.default_rng(w.whole(0, 2**32 - 1))
    return rng.permutation(prod(extents)).reshape(extents).astype(dtype)


def views_body(draw: st.DrawFn, name: str) -> Body:
    """Elements of a view to an array, or of an array to a view."""
    w = Writer(draw, name)
    dtype = w.pick((np.int32, np.int64, np.float32, np.int8))
    base = filled(w, shape(w, 2), dtype)
    w.hold(f"{name}n")
    opened = tuple(w.whole(0, 3) == 0 for _ in base.shape)
    view = viewed(f"{name}b", base, opened)
    for _ in range(w.whole(1, 4)):
        view = w.pick(_STEPS)(w, view)
    other = filled(w, view.sizes, dtype)
    other[...] = -other - 1
    whole = viewed(f"{name}w", other)
    source, target = (view, whole) if w.flip() else (whole, view)
    w.pick((_copied, _looped, _looped, _generic))(w, source, target)
    arrays = {f"{name}b": base, f"{name}w": other, f"{name}n": np.arange(8)}
    return Body(w.lines, arrays, index=(f"{name}n",), opened={f"{name}b": opened})


def _copied(w: Writer, source: View, target: View) -> None:
    w.put(f"memref.copy {source.name}, {target.name} : {source.type} to {target.type}")


def _looped(w: Writer, source: View, target: View) -> None:
    style = w.pick(("affine", "scf", "memref"))
    indices = [w.fresh() for _ in source.dims]
    zero, one = w.constant("index", 0).name, w.constant("index", 1).name
    ends = [w.constant("index", n).name for n in source.sizes]
    for index, end, n in zip(indices, ends, source.sizes, strict=True):
        if style == "scf":
            w.put(f"scf.for {index} = {zero} to {end} step {one} {{")
        else:
            w.put(f"affine.for {index} = 0 to {n} {{")
        w.depth += 1
    prefix = "affine" if style == "affine" else "memref"
    listed, value = ", ".join(indices), w.fresh()
    w.put(f"{value} = {prefix}.load {source.name}[{listed}] : {source.type}")
    w.put(f"{prefix}.store {value}, {target.name}[{listed}] : {target.type}")
    for _ in indices:
        w.depth -= 1
        w.put("}")


def _generic(w: Writer, source: View, target: View) -> None:
    """target = source, or target - source."""
    rank = len(source.dims)
    inputs = ", ".join(f"d{k}" for k in range(rank))
    map_ = f"affine_map<({inputs}) -> ({inputs})>"
    kinds = ", ".join(['"parallel"'] * rank)
    x, old, y = w.fresh(), w.fresh(), w.fresh()
    w.put(
        f"linalg.generic {{indexing_maps = [{map_}, {map_}], iterator_types = [{kinds}]}} "
        f"ins({source.name} : {source.type}) outs({target.name} : {target.type}) {{"
    )
    w.put(f"^bb0({x}: {source.element}, {old}: {source.element}):")
    kind = "f" if source.element[0] == "f" else "i"
    w.put(f"  {y} = arith.sub{kind} {old}, {x} : {source.element}")
    w.put(f"  linalg.yield {w.pick((x, y, y))} : {source.element}")
    w.put("}")

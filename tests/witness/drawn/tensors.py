"""Bodies on tensors: slices, reshapes, maps and generics that read their init, loops over one.

Every tensor of a body stays in scope: what is read later tells whether an earlier one was written
over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.witness.drawn.body import Body
from tests.witness.drawn.views import factors, filled, groups_of, mixed, shape
from tests.witness.drawn.writer import Writer


@dataclass(frozen=True)
class Tensor:
    """`open`: which extents the type leaves out."""

    name: str
    sizes: tuple[int, ...]
    open: tuple[bool, ...]
    element: str = "i64"

    @property
    def type(self) -> str:
        extents = "".join(
            f"{'?' if open_ else n}x" for n, open_ in zip(self.sizes, self.open, strict=True)
        )
        return f"tensor<{extents}{self.element}>"


def closed(name: str, sizes: Sequence[int]) -> Tensor:
    return Tensor(name, tuple(sizes), (False,) * len(sizes))


def _closed(w: Writer, scope: list[Tensor]) -> Tensor:
    """One whose type says all of its extents; made by a cast where there is none."""
    found = [t for t in scope if not any(t.open)]
    if found:
        return w.pick(found)
    source = w.pick(scope)
    result = closed(w.fresh(), source.sizes)
    w.put(f"{result.name} = tensor.cast {source.name} : {source.type} to {result.type}")
    return result


Step = Callable[[Writer, list[Tensor]], Tensor]


def _slice(w: Writer, sizes: Sequence[int], extents: Sequence[int]) -> tuple[str, list[bool]]:
    """`[…] [sizes] [1, …]` within the extents, and which sizes are values."""
    starts = [w.whole(0, n - k) for k, n in zip(sizes, extents, strict=True)]
    opened = [w.whole(0, 3) == 0 for _ in sizes]
    first = ", ".join(mixed(w, a, w.whole(0, 3) == 0) for a in starts)
    second = ", ".join(mixed(w, n, o) for n, o in zip(sizes, opened, strict=True))
    return f"[{first}] [{second}] [{', '.join('1' for _ in sizes)}]", opened


def _extract(w: Writer, scope: list[Tensor]) -> Tensor:
    source = w.pick(scope)
    sizes = [w.pick((1, w.whole(1, n), n)) for n in source.sizes]
    written, opened = _slice(w, sizes, source.sizes)
    kept = [k for k, n in enumerate(sizes) if n > 1 or opened[k] or w.flip()]
    result = Tensor(
        w.fresh(), tuple(sizes[k] for k in kept), tuple(opened[k] for k in kept), source.element
    )
    w.put(
        f"{result.name} = tensor.extract_slice {source.name}{written} "
        f": {source.type} to {result.type}"
    )
    return result


def _insert(w: Writer, scope: list[Tensor]) -> Tensor:
    """A slice of one into another, unit extents added; or a slice of itself, elsewhere."""
    target = w.pick([t for t in scope if t.sizes] or scope)
    if not target.sizes:
        return _extract(w, scope)
    part = _extract(w, [w.pick([t for t in scope if t.element == target.element])])
    places = _fitting(part.sizes, target.sizes)
    if places is None:
        return part
    sizes = [1] * len(target.sizes)
    opened = [False] * len(target.sizes)
    for k, place in enumerate(places):
        sizes[place], opened[place] = part.sizes[k], part.open[k]
    starts = [w.whole(0, n - k) for k, n in zip(sizes, target.sizes, strict=True)]
    first = ", ".join(mixed(w, a, w.whole(0, 3) == 0) for a in starts)
    second = ", ".join(mixed(w, n, o) for n, o in zip(sizes, opened, strict=True))
    result = Tensor(w.fresh(), target.sizes, target.open, target.element)
    w.put(
        f"{result.name} = tensor.insert_slice {part.name} into {target.name}[{first}] [{second}] "
        f"[{', '.join('1' for _ in sizes)}] : {part.type} into {target.type}"
    )
    return result


def _fitting(part: Sequence[int], whole: Sequence[int]) -> list[int] | None:
    """Dimensions of `whole`, in order, that hold those of `part`."""
    places: list[int] = []
    for n in part:
        after = places[-1] + 1 if places else 0
        found = next((k for k in range(after, len(whole)) if whole[k] >= n), None)
        if found is None:
            return None
        places.append(found)
    return places


def _collapse(w: Writer, scope: list[Tensor]) -> Tensor:
    source = _closed(w, scope)
    groups = groups_of(w, len(source.sizes))
    sizes = [prod(source.sizes[k] for k in group) for group in groups]
    result = Tensor(w.fresh(), tuple(sizes), (False,) * len(sizes), source.element)
    if len(sizes) == len(source.sizes):
        return source
    w.put(
        f"{result.name} = tensor.collapse_shape {source.name} {groups} "
        f": {source.type} into {result.type}"
    )
    return result


def _expand(w: Writer, scope: list[Tensor]) -> Tensor:
    source = _closed(w, scope)
    if not source.sizes or len(source.sizes) > 3:
        return source
    chosen = w.whole(0, len(source.sizes) - 1)
    groups: list[list[int]] = []
    sizes: list[int] = []
    for k, n in enumerate(source.sizes):
        parts = factors(w, n) if k == chosen else [n]
        groups.append(list(range(len(sizes), len(sizes) + len(parts))))
        sizes += parts
    result = Tensor(w.fresh(), tuple(sizes), (False,) * len(sizes), source.element)
    w.put(
        f"{result.name} = tensor.expand_shape {source.name} {groups} "
        f"output_shape {sizes} : {source.type} into {result.type}"
    )
    return result


def _cast(w: Writer, scope: list[Tensor]) -> Tensor:
    source = w.pick(scope)
    result = Tensor(w.fresh(), source.sizes, tuple(w.flip() for _ in source.sizes), source.element)
    if result.type == source.type:
        return source
    w.put(f"{result.name} = tensor.cast {source.name} : {source.type} to {result.type}")
    return result


def _like(w: Writer, scope: list[Tensor], source: Tensor) -> Tensor:
    """Of the same type: one in scope, or a constant."""
    found = [t for t in scope if t.type == source.type]
    if any(source.open) or (found and w.whole(0, 2)):
        return w.pick(found)
    rng = np.random.default_rng(w.whole(0, 2**32 - 1))
    values = rng.integers(-9, 9, source.sizes).tolist()
    name = w.fresh()
    w.put(f"{name} = arith.constant dense<{values}> : {source.type}")
    return Tensor(name, source.sizes, source.open, source.element)


def _map(w: Writer, scope: list[Tensor]) -> Tensor:
    """The init is read, or not; `linalg.map` or a generic."""
    source = w.pick(scope)
    init = _like(w, scope, source)
    x, old, y, name = w.fresh(), w.fresh(), w.fresh(), w.fresh()
    operation = w.pick((f"arith.subi {old}, {x}", f"arith.addi {x}, {old}", f"arith.muli {x}, {x}"))
    end = f"linalg.yield {w.pick((y, y, x, old))} : i64"
    operands = f"ins({source.name} : {source.type}) outs({init.name} : {init.type})"
    named = w.flip()
    if named:
        w.put(f"{name} = linalg.map {operands}")
        w.put(f"  ({x}: i64, {old}: i64) {{")
    else:
        inputs = ", ".join(f"d{k}" for k in range(len(source.sizes)))
        map_ = f"affine_map<({inputs}) -> ({inputs})>"
        kinds = ", ".join(['"parallel"'] * len(source.sizes))
        traits = f"indexing_maps = [{map_}, {map_}], iterator_types = [{kinds}]"
        w.put(f"{name} = linalg.generic {{{traits}}} {operands} {{")
        w.put(f"^bb0({x}: i64, {old}: i64):")
    w.put(f"  {y} = {operation} : i64")
    w.put(f"  {end}")
    w.put("}" if named else f"}} -> {init.type}")
    return Tensor(name, init.sizes, init.open, init.element)


def _transpose(w: Writer, scope: list[Tensor]) -> Tensor:
    source = _closed(w, scope)
    if not source.sizes:
        return source
    order = list(w.permutation(len(source.sizes)))
    init = closed(w.fresh(), [source.sizes[k] for k in order])
    w.put(f"{init.name} = tensor.empty() : {init.type}")
    result = closed(w.fresh(), init.sizes)
    w.put(
        f"{result.name} = linalg.transpose ins({source.name} : {source.type}) "
        f"outs({init.name} : {init.type}) permutation = {order}"
    )
    return result


def _reduce(w: Writer, scope: list[Tensor]) -> Tensor:
    source = _closed(w, scope)
    if not source.sizes:
        return source
    dim = w.whole(0, len(source.sizes) - 1)
    sizes = [n for k, n in enumerate(source.sizes) if k != dim]
    init = closed(w.fresh(), sizes)
    w.put(f"{init.name} = arith.constant dense<{w.whole(-3, 3)}> : {init.type}")
    result = closed(w.fresh(), sizes)
    w.put(
        f"{result.name} = linalg.reduce {{ arith.addi }} ins({source.name} : {source.type}) "
        f"outs({init.name} : {init.type}) dimensions = [{dim}]"
    )
    return result


def _carried(w: Writer, scope: list[Tensor]) -> Tensor:
    """A loop that writes elements into a tensor it carries, and reads another (or the same)."""
    target = w.pick([t for t in scope if t.sizes] or scope)
    if not target.sizes:
        return target
    other = _like(w, scope, target)
    low, high, one = (w.constant("index", k).name for k in (0, target.sizes[0], 1))
    places = [w.constant("index", w.whole(0, n - 1)).name for n in target.sizes[1:]]
    i, carried, x, y, z, s, name = (w.fresh() for _ in range(7))
    w.put(
        f"{name} = scf.for {i} = {low} to {high} step {one} iter_args({carried} = {target.name}) "
        f"-> ({target.type}) {{"
    )
    index = ", ".join([i, *places])
    back = ", ".join([low, *places])
    w.put(f"  {x} = tensor.extract {other.name}[{w.pick((index, back))}] : {target.type}")
    w.put(f"  {y} = tensor.extract {w.pick((carried, target.name))}[{back}] : {target.type}")
    w.put(f"  {s} = arith.addi {x}, {y} : i64")
    w.put(f"  {z} = tensor.insert {s} into {carried}[{index}] : {target.type}")
    w.put(f"  scf.yield {z} : {target.type}")
    w.put("}")
    return Tensor(name, target.sizes, target.open, target.element)


def _chosen(w: Writer, scope: list[Tensor]) -> Tensor:
    """One of two by a condition that is known only at run time."""
    one = w.pick(scope)
    two = _like(w, scope, one)
    flag, zero, name = w.fresh(), w.constant("index", 0).name, w.fresh()
    number = w.hidden(w.whole(0, 1))
    w.put(f"{flag} = arith.cmpi eq, {number.name}, {zero} : index")
    w.put(f"{name} = scf.if {flag} -> ({one.type}) {{")
    w.put(f"  scf.yield {one.name} : {one.type}")
    w.put("} else {")
    w.put(f"  scf.yield {two.name} : {one.type}")
    w.put("}")
    return Tensor(name, one.sizes, one.open, one.element)


def _tosa_chosen(w: Writer, scope: list[Tensor]) -> Tensor:
    """One of two by a tensor of one truth value; what is chosen may be made in the branch."""
    one = w.pick(scope)
    two = _like(w, scope, one)
    flag, zero, truth, name = w.fresh(), w.constant("index", 0).name, w.fresh(), w.fresh()
    number = w.hidden(w.whole(0, 1))
    w.put(f"{flag} = arith.cmpi eq, {number.name}, {zero} : index")
    w.put(f"{truth} = tensor.from_elements {flag} : tensor<i1>")
    w.put(f"{name} = tosa.cond_if {truth} : tensor<i1> -> {one.type} {{")
    for source, between in ((one, "} else {"), (two, "}")):
        inside = [*scope, two]
        made = w.pick((_map, _transpose, _insert))(w, inside) if w.flip() else source
        w.put(f"  tosa.yield {(made if made.type == one.type else source).name} : {one.type}")
        w.put(between)
    return Tensor(name, one.sizes, one.open, one.element)


def _tosa_loop(w: Writer, scope: list[Tensor]) -> Tensor:
    """A few rounds that exchange two tensors, one of them written."""
    one = w.pick(scope)
    two = _like(w, scope, one)
    zero, count = w.constant("i32", 0).name, w.constant("i32", w.whole(0, 3)).name
    start, name, k, a, b, n, m = (w.fresh() for _ in range(7))
    types = f"tensor<i32>, {one.type}, {one.type}"
    w.put(f"{start} = tensor.from_elements {count} : tensor<i32>")
    pairs = f"{k} = {start}, {a} = {one.name}, {b} = {two.name}"
    w.put(f"{name}:3 = tosa.while_loop ({pairs}) : ({types}) -> ({types}) {{")
    w.put(f"  {n} = tensor.extract {k}[] : tensor<i32>")
    more, truth = w.fresh(), w.fresh()
    w.put(f"  {more} = arith.cmpi sgt, {n}, {zero} : i32")
    w.put(f"  {truth} = tensor.from_elements {more} : tensor<i1>")
    w.put(f"  tosa.yield {truth} : tensor<i1>")
    w.put("} do {")
    k, a, b, rest, left = (w.fresh() for _ in range(5))
    w.put(f"^bb0({k}: tensor<i32>, {a}: {one.type}, {b}: {one.type}):")
    minus = w.constant("i32", -1).name
    w.put(f"  {m} = tensor.extract {k}[] : tensor<i32>")
    w.put(f"  {rest} = arith.addi {m}, {minus} : i32")
    w.put(f"  {left} = tensor.from_elements {rest} : tensor<i32>")
    carried = [Tensor(x, one.sizes, one.open, one.element) for x in (a, b)]
    made = w.pick((_map, _insert))(w, [*scope, *carried])
    first = made.name if made.type == one.type else b
    w.put(f"  tosa.yield {left}, {first}, {w.pick((a, b))} : {types}")
    w.put("}")
    return Tensor(f"{name}#{w.whole(1, 2)}", one.sizes, one.open, one.element)


def _packed(w: Writer, scope: list[Tensor]) -> Tensor:
    """In tiles, padded where they reach beyond; and back again, or not."""
    source = _closed(w, scope)
    if not source.sizes or len(source.sizes) > 2:
        return source
    rank = len(source.sizes)
    order, tiles = list(w.permutation(rank)), [w.whole(1, 3) for _ in source.sizes]
    counts = [-(-n // tile) for n, tile in zip(source.sizes, tiles, strict=True)]
    packed = closed(w.fresh(), [*(counts[k] for k in order), *tiles])
    value, empty = w.constant("i64", w.whole(-9, 9)).name, w.fresh()
    how = f"outer_dims_perm = {order} inner_dims_pos = {list(range(rank))} inner_tiles = {tiles}"
    w.put(f"{empty} = tensor.empty() : {packed.type}")
    w.put(
        f"{packed.name} = linalg.pack {source.name} padding_value({value} : i64) {how} "
        f"into {empty} : {source.type} -> {packed.type}"
    )
    if w.flip():
        return packed
    target, result = _like(w, scope, source), Tensor(w.fresh(), source.sizes, source.open)
    w.put(
        f"{result.name} = linalg.unpack {packed.name} {how} into {target.name} "
        f": {packed.type} -> {source.type}"
    )
    return result


def _pad(w: Writer, scope: list[Tensor]) -> Tensor:
    source = _closed(w, scope)
    if not source.sizes:
        return source
    low = [w.whole(0, 1) for _ in source.sizes]
    high = [w.whole(0, 2) for _ in source.sizes]
    sizes = [a + n + b for a, n, b in zip(low, source.sizes, high, strict=True)]
    result, value = closed(w.fresh(), sizes), w.constant("i64", w.whole(-9, 9)).name
    heads = ", ".join(f"{w.fresh()}: index" for _ in sizes)
    w.put(f"{result.name} = tensor.pad {source.name} low{low} high{high} {{")
    w.put(f"^bb0({heads}):")
    w.put(f"  tensor.yield {value} : i64")
    w.put(f"}} : {source.type} to {result.type}")
    return result


_STEPS: tuple[Step, ...] = (
    _extract, _insert, _insert, _insert, _collapse, _expand, _cast, _map, _map, _map, _transpose,
    _reduce, _carried, _chosen, _pad, _tosa_chosen, _tosa_loop, _packed, _packed,
)  # fmt: skip


def tensors_body(draw: st.DrawFn, name: str) -> Body:
    w = Writer(draw, name)
    arrays = {f"{name}t{k}": filled(w, shape(w), np.int64) for k in range(w.whole(1, 2))}
    w.hold(f"{name}n")
    opened = {key: tuple(w.whole(0, 3) == 0 for _ in v.shape) for key, v in arrays.items()}
    scope = [Tensor(f"%{key}", v.shape, opened[key]) for key, v in arrays.items()]
    given = len(scope)
    for _ in range(w.whole(1, 6)):
        made = w.pick(_STEPS)(w, scope)
        if made not in scope:
            scope.append(made)
    made = [t for t in scope[given:] if not any(t.open)][-3:]
    results = tuple((t.name, t.type) for t in made)
    return Body(
        w.lines,
        {**arrays, f"{name}n": np.arange(8)},
        index=(f"{name}n",),
        tensors=tuple(arrays),
        opened=opened,
        results=results,
    )

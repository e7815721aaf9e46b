"""The bounds of loops, whatever their operation: what they are, and how they are cut to a range.

A loop and one of its dimensions -> lower bound, upper bound and step as values; low and high -> the
loop with those iterations alone. (`affine.for`, `affine.parallel`, `scf.for`, `scf.parallel`.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.dialects.avial import rebuilt_with
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import attributes_of
from avial_lab.core.errors import PassError

BOUNDS = ("lowerBoundMap", "upperBoundMap", "step")

Rename = Callable[[ir.Value], ir.Value]
"""What stands for an operand of a loop at another place."""


def operands_of_ends(loop: ir.Operation) -> list[ir.Value]:
    """Those that say where a `for` begins and ends, and one of scf by which steps; what it hands on
    comes behind them.
    """
    return list(loop.operands)[: len(loop.operands) - len(loop.results)]


def narrowed(loop: ir.Operation, own: int, low: ir.Value, high: ir.Value) -> ir.Operation:
    """The loop with low <= variable < high of its dimension `own`, in its place."""
    narrow = _NARROW.get(loop.name)
    if narrow is None:
        raise PassError(f"{loop.name} cannot be split", span=span_of(loop.location))
    return narrow(loop, own, low, high)


def ranged(loop: ir.Operation, own: int, low: ir.Value, high: ir.Value) -> ir.Operation:
    """The loop with `low` and `high`, which lie within its bounds, as bounds of dimension `own`."""
    if loop.name == "affine.parallel":
        return narrowed(loop, own, low, high)
    if loop.name == "affine.for":
        just = ir.AffineMapAttr.get(ir.AffineMap.get(0, 1, [ir.AffineExpr.get_symbol(0)]))
        sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
        attributes = attributes_of(loop) | {
            "lowerBoundMap": just,
            "upperBoundMap": just,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, sizes[2]]),
        }
        carried = list(loop.operands)[sizes[0] + sizes[1] :]
        return rebuilt_with(loop, [low, high, *carried], attributes)
    count = len(loop.regions[0].blocks[0].arguments) if loop.name == "scf.parallel" else 1
    loop.operands[own] = low
    loop.operands[count + own] = high
    return loop


def bounds_of(
    loop: ir.Operation, own: int, rename: Rename = lambda value: value
) -> Sequence[ir.Value | int]:
    """Lower bound, upper bound and step of dimension `own`, computed at the insertion point."""
    return _BOUNDS[loop.name](loop, own, rename)


def _narrow_scf_for(loop: ir.Operation, _own: int, low: ir.Value, high: ir.Value) -> ir.Operation:
    _cut(loop, 0, 1, low, high)
    return loop


def _narrow_scf_parallel(
    loop: ir.Operation, own: int, low: ir.Value, high: ir.Value
) -> ir.Operation:
    count = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])[0]
    _cut(loop, own, count + own, low, high)
    return loop


def _cut(loop: ir.Operation, lower: int, upper: int, low: ir.Value, high: ir.Value) -> None:
    with ir.InsertionPoint(loop), loop.location:
        loop.operands[lower] = arith.maxsi(loop.operands[lower], low)
        loop.operands[upper] = arith.minsi(loop.operands[upper], high)


def _narrow_affine_for(
    loop: ir.Operation, _own: int, low: ir.Value, high: ir.Value
) -> ir.Operation:
    return _bounded(loop, ((_own_symbol(), (), low), (_own_symbol(), (), high)))


def leaning(
    loop: ir.Operation,
    time: ir.Value,
    low: tuple[ir.Value, int, int],
    high: tuple[ir.Value, int, int],
) -> ir.Operation:
    """The `affine.for` with low <= variable < high, in its place; an end is a value, and what is
    added to it, first and with every step of `time`.
    """
    step = ir.AffineExpr.get_dim(0)
    # As its text is read again: what is constant last.
    ends = [(step * by + _own_symbol() + more, (time,), end) for end, more, by in (low, high)]
    return _bounded(loop, (ends[0], ends[1]))


_Extra = tuple[ir.AffineExpr, tuple[ir.Value, ...], ir.Value]
"""One more bound: an expression of dimensions from 0 on and symbol 0, and their values."""


def _own_symbol() -> ir.AffineExpr:
    return ir.AffineExpr.get_symbol(0)


def _bounded(loop: ir.Operation, extras: tuple[_Extra, _Extra]) -> ir.Operation:
    """Another result in each bound's map: the greatest lower, the least upper bound counts."""
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    attributes = attributes_of(loop)
    bounds: list[ir.Value] = []
    counts: list[int] = []
    given = (operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]])
    for name, old, extra in zip(("lowerBoundMap", "upperBoundMap"), given, extras, strict=True):
        attributes[name], values = _with_result(loop.attributes[name], old, extra)
        bounds += values
        counts.append(len(values))
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([*counts, *sizes[2:]])
    return rebuilt_with(loop, [*bounds, *operands[sizes[0] + sizes[1] :]], attributes)


def _with_result(
    attribute: ir.Attribute, operands: Sequence[ir.Value], extra: _Extra
) -> tuple[ir.AffineMapAttr, list[ir.Value]]:
    """The map with one more result, and its operands."""
    form = ir.AffineMapAttr(attribute).value
    more, dims, symbol = extra
    more = more.shift_dims(len(dims), form.n_dims).shift_symbols(1, form.n_symbols)
    wider = ir.AffineMap.get(form.n_dims + len(dims), form.n_symbols + 1, [*form.results, more])
    values = [*operands[: form.n_dims], *dims, *operands[form.n_dims :], symbol]
    return ir.AffineMapAttr.get(wider), values


def _narrow_affine_parallel(
    loop: ir.Operation, own: int, low: ir.Value, high: ir.Value
) -> ir.Operation:
    """Another result in that dimension's group of each map."""
    lower, upper = (_parallel_bound(loop, side) for side in ("lower", "upper"))
    attributes = attributes_of(loop)
    for side, bound in (("lower", lower), ("upper", upper)):
        form, groups = bound.form, list(bound.groups)
        place = sum(groups[: own + 1])
        extra = ir.AffineExpr.get_symbol(form.n_symbols)
        results = [*list(form.results)[:place], extra, *list(form.results)[place:]]
        groups[own] += 1
        attributes[f"{side}BoundsMap"] = ir.AffineMapAttr.get(
            ir.AffineMap.get(form.n_dims, form.n_symbols + 1, results)
        )
        attributes[f"{side}BoundsGroups"] = _groups(groups)
    return rebuilt_with(loop, [*lower.operands, low, *upper.operands, high], attributes)


@dataclass(frozen=True)
class _ParallelBound:
    """One side of affine.parallel: `groups[d]` results of the map bound dimension d."""

    form: ir.AffineMap
    groups: tuple[int, ...]
    operands: tuple[ir.Value, ...]

    def of(self, dimension: int) -> ir.AffineMapAttr:
        first = sum(self.groups[:dimension])
        results = list(self.form.results)[first : first + self.groups[dimension]]
        return ir.AffineMapAttr.get(
            ir.AffineMap.get(self.form.n_dims, self.form.n_symbols, results)
        )


def _parallel_bound(loop: ir.Operation, side: str) -> _ParallelBound:
    form = ir.AffineMapAttr(loop.attributes[f"{side}BoundsMap"]).value
    counts = ir.DenseIntElementsAttr(loop.attributes[f"{side}BoundsGroups"])
    groups = tuple(int(counts[k]) for k in range(len(counts)))
    operands = tuple(loop.operands)
    count = form.n_dims + form.n_symbols
    return _ParallelBound(
        form, groups, operands[:count] if side == "lower" else operands[-count:] if count else ()
    )


def _groups(counts: Sequence[int]) -> ir.Attribute:
    return ir.DenseIntElementsAttr.get(cast("Any", np.array(counts, np.int32)))


_NARROW = {
    "affine.for": _narrow_affine_for,
    "affine.parallel": _narrow_affine_parallel,
    "scf.for": _narrow_scf_for,
    "scf.parallel": _narrow_scf_parallel,
}


def _scf_for_bounds(loop: ir.Operation, _own: int, rename: Rename) -> Sequence[ir.Value | int]:
    return [rename(operand) for operand in list(loop.operands)[:3]]


def _scf_parallel_bounds(loop: ir.Operation, own: int, rename: Rename) -> list[ir.Value | int]:
    count = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])[0]
    return [rename(loop.operands[k * count + own]) for k in range(3)]


def _affine_for_bounds(loop: ir.Operation, _own: int, rename: Rename) -> list[ir.Value | int]:
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    # Not of what it hands on, which is computed where it stands.
    operands = [rename(operand) for operand in list(loop.operands)[: sizes[0] + sizes[1]]]
    lower, upper = operands[: sizes[0]], operands[sizes[0] :]
    step = ir.IntegerAttr(loop.attributes["step"]).value
    return [
        _extreme("affine.max", loop.attributes["lowerBoundMap"], lower),
        _extreme("affine.min", loop.attributes["upperBoundMap"], upper),
        step,
    ]


def _extreme(name: str, form: ir.Attribute, operands: Sequence[ir.Value]) -> ir.Value:
    return ir.Operation.create(
        name, [ir.IndexType.get()], list(operands), attributes={"map": form}
    ).result


def _affine_parallel_bounds(loop: ir.Operation, own: int, rename: Rename) -> list[ir.Value | int]:
    lower, upper = (_parallel_bound(loop, side) for side in ("lower", "upper"))
    step = ir.IntegerAttr(list(ir.ArrayAttr(loop.attributes["steps"]))[own]).value
    return [
        _extreme("affine.max", lower.of(own), [rename(v) for v in lower.operands]),
        _extreme("affine.min", upper.of(own), [rename(v) for v in upper.operands]),
        step,
    ]


_BOUNDS = {
    "affine.for": _affine_for_bounds,
    "affine.parallel": _affine_parallel_bounds,
    "scf.for": _scf_for_bounds,
    "scf.parallel": _scf_parallel_bounds,
}

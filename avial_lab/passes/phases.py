"""A phase as a function: a nest's body with its split loops cut to the range a rank is given.

A replicate or task in the program -> `func.func private @S1(arrays, scalars, low0, high0, low1,
high1)`, and the values to call it with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from mlir import ir
from mlir.dialects import arith, func

from avial_lab.accesses.views import VIEWS
from avial_lab.dialects.avial import buffer_of
from avial_lab.dialects.places import span_of
from avial_lab.errors import PassError
from avial_lab.passes.operations import operations_in
from avial_lab.passes.program import is_pure

SPLIT_DIMENSIONS = 2
SPLIT = "avial.split"
"""On a loop: its iterations are divided, along this dimension (0 or 1) of the grid of ranks."""


@dataclass(frozen=True)
class Phase:
    """Call `symbol` with these values, then low and high of each split dimension."""

    symbol: str
    arguments: tuple[ir.Value, ...]


def split_loops(op: ir.Operation, dimension: int = 0) -> list[ir.Operation]:
    """The loops in `op` that are divided along that dimension."""
    return [inner for inner in operations_in(op) if dimension in split_dimensions(inner)]


def split_dimensions(loop: ir.Operation) -> list[int]:
    """For each of the loop's own dimensions the grid's, -1 where it is not divided."""
    if SPLIT not in loop.attributes:
        return [-1] * max(
            [len(block.arguments) for region in loop.regions for block in region], default=0
        )
    value = loop.attributes[SPLIT]
    if isinstance(value, ir.IntegerAttr):
        return [value.value]
    return list(ir.DenseI64ArrayAttr(value))


def reduced_arrays(op: ir.Operation) -> list[ir.Value]:
    """The arrays onto which the phase accumulates in each rank's own memory."""
    if "avial.reduced" not in op.attributes:
        return []
    places = list(ir.DenseI64ArrayAttr(op.attributes["avial.reduced"]))
    return [buffer_of(op.operands[place]) for place in places]


# The function -------------------------------------------------------------------------------------


def outline_phase(op: ir.Operation, before: ir.Operation, symbol: str) -> Phase:
    """Move the body of `op` into the function `symbol`, before `before`; `op` is left empty."""
    captured = _Captured.by(op)
    index = ir.IndexType.get()
    inputs = [value.type for value in captured.arguments] + [index] * (2 * SPLIT_DIMENSIONS)
    with ir.InsertionPoint(before), op.location:
        function = func.FuncOp(symbol, (inputs, []), visibility="private")
    region = op.regions[0]
    body = region.blocks[0]
    body.append_to(function.regions[0])
    inside: dict[ir.Value, ir.Value] = {}
    for value in captured.arguments:
        inside[value] = body.add_argument(value.type, value.location)
    ranges = [
        body.add_argument(index, ir.Location.name(name, op.location))
        for name in ("low0", "high0", "low1", "high1")
    ]
    start = ir.InsertionPoint.at_block_begin(body)
    for fixed in captured.chain:
        copy = fixed.clone(ip=start)
        _remap(copy, inside)
        inside.update(zip(fixed.results, copy.results, strict=True))
    for inner in list(operations_in(function.operation)):
        _remap(inner, inside)
    _narrow(function.operation, ranges)
    last = body.operations[len(body.operations) - 1]
    with ir.InsertionPoint(last), last.location:
        func.ReturnOp([])
    last.operation.erase()
    with ir.InsertionPoint(ir.Block.create_at_start(region, [])), op.location:
        ir.Operation.create("omp.terminator")
    return Phase(symbol, tuple(captured.arguments))


@dataclass
class _Captured:
    """What a phase uses from outside: `arguments` in order of first use, and a `chain` of constants
    and views that is repeated inside.
    """

    arguments: list[ir.Value] = field(default_factory=list)
    chain: list[ir.Operation] = field(default_factory=list)
    _seen: set[ir.Value] = field(default_factory=set)

    @staticmethod
    def by(op: ir.Operation) -> _Captured:
        captured = _Captured()
        inside: set[ir.Value] = set()
        for inner in operations_in(op):
            for region in inner.regions:
                for block in region.blocks:
                    inside.update(block.arguments)
            for operand in inner.operands:
                if operand not in inside:
                    captured._add(operand)
            inside.update(inner.results)
        return captured

    def _add(self, value: ir.Value) -> None:
        if value in self._seen:
            return
        self._seen.add(value)
        owner = value.owner
        if isinstance(owner, ir.Block) or not _repeated(owner.operation):
            self.arguments.append(value)
            return
        for operand in owner.operation.operands:
            self._add(operand)
        if owner.operation not in self.chain:
            self.chain.append(owner.operation)


def _repeated(op: ir.Operation) -> bool:
    return op.name in VIEWS or op.name in (
        "arith.constant",
        "complex.constant",
        "memref.dim",
        "memref.get_global",
        "ub.poison",
    )


def _remap(op: ir.Operation, inside: dict[ir.Value, ir.Value]) -> None:
    for k, operand in enumerate(op.operands):
        replacement = inside.get(operand)
        if replacement is not None:
            op.operands[k] = replacement


# Cutting loops to a range -------------------------------------------------------------------------


def _narrow(function: ir.Operation, ranges: Sequence[ir.Value]) -> None:
    """Cut every split loop to low <= variable < high of its dimension."""
    for loop in list(operations_in(function)):
        if SPLIT not in loop.attributes:
            continue
        for own, dimension in enumerate(split_dimensions(loop)):
            if dimension < 0:
                continue
            low, high = ranges[2 * dimension : 2 * dimension + 2]
            narrow = _NARROW.get(loop.name)
            if narrow is None:
                raise PassError(f"{loop.name} cannot be split", span=span_of(loop.location))
            loop = narrow(loop, own, low, high)


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
    """Another result in each bound's map: the greatest lower, the least upper bound counts."""
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    lower, upper = operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]]
    attributes = {name: loop.attributes[name] for name in loop.attributes}
    attributes["lowerBoundMap"] = _with_symbol(loop.attributes["lowerBoundMap"])
    attributes["upperBoundMap"] = _with_symbol(loop.attributes["upperBoundMap"])
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
        [sizes[0] + 1, sizes[1] + 1, *sizes[2:]]
    )
    bounds = [*lower, low, *upper, high, *operands[sizes[0] + sizes[1] :]]
    return _rebuilt_loop(loop, bounds, attributes)


def _with_symbol(attribute: ir.Attribute) -> ir.AffineMapAttr:
    form = ir.AffineMapAttr(attribute).value
    extra = ir.AffineExpr.get_symbol(form.n_symbols)
    return ir.AffineMapAttr.get(
        ir.AffineMap.get(form.n_dims, form.n_symbols + 1, [*form.results, extra])
    )


def _narrow_affine_parallel(
    loop: ir.Operation, own: int, low: ir.Value, high: ir.Value
) -> ir.Operation:
    """Another result in that dimension's group of each map."""
    lower, upper = (_parallel_bound(loop, side) for side in ("lower", "upper"))
    attributes = {name: loop.attributes[name] for name in loop.attributes}
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
    return _rebuilt_loop(loop, [*lower.operands, low, *upper.operands, high], attributes)


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


def _rebuilt_loop(
    loop: ir.Operation, operands: Sequence[ir.Value], attributes: dict[str, ir.Attribute]
) -> ir.Operation:
    """The loop with other bounds, in its place; the old one is gone."""
    new = ir.Operation.create(
        loop.name,
        results=[result.type for result in loop.results],
        operands=operands,
        attributes=attributes,
        regions=1,
        loc=loop.location,
        ip=ir.InsertionPoint(loop),
    )
    loop.regions[0].blocks[0].append_to(new.regions[0])
    for before, after in zip(loop.results, new.results, strict=True):
        before.replace_all_uses_with(after)
    loop.erase()
    return new


_NARROW = {
    "affine.for": _narrow_affine_for,
    "affine.parallel": _narrow_affine_parallel,
    "scf.for": _narrow_scf_for,
    "scf.parallel": _narrow_scf_parallel,
}


# The iterations that are divided ------------------------------------------------------------------


def split_space(op: ir.Operation) -> list[ir.Value | int]:
    """For each split dimension: lower and upper bound, step, offset and extent of what is owned.

    What the bounds of an outermost loop are is computed where the phase stands; of inner ones
    `avial.bounds` says it.
    """
    words: list[ir.Value | int] = []
    for dimension in range(SPLIT_DIMENSIONS):
        loops = split_loops(op, dimension)
        if not loops:
            words += [0, 1, 1, 0, 0]
            continue
        words += [*_bounds(op, loops, dimension), *_owned(op, dimension)]
    return words


def _bounds(
    op: ir.Operation, loops: Sequence[ir.Operation], dimension: int
) -> Sequence[ir.Value | int]:
    key = f"avial.bounds{dimension}"
    if key in op.attributes:
        return list(ir.DenseI64ArrayAttr(op.attributes[key]))
    loop = loops[0]
    own = split_dimensions(loop).index(dimension)
    for value in list(loop.operands):
        _draw_out(value, op)
    return _BOUNDS[loop.name](loop, own)


def _draw_out(value: ir.Value, op: ir.Operation) -> None:
    """What a bound is computed from inside of `op` is computed before it."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.block.owner != op:
        return
    if not is_pure(owner.operation):
        raise PassError(
            "the bounds of a split loop are computed inside of the replicate",
            span=span_of(owner.operation.location),
            hint="compute them before it",
        )
    for operand in owner.operation.operands:
        _draw_out(operand, op)
    owner.operation.move_before(op)


def _scf_for_bounds(loop: ir.Operation, _own: int) -> Sequence[ir.Value | int]:
    return list(loop.operands)[:3]


def _scf_parallel_bounds(loop: ir.Operation, own: int) -> list[ir.Value | int]:
    count = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])[0]
    return [loop.operands[own], loop.operands[count + own], loop.operands[2 * count + own]]


def _affine_for_bounds(loop: ir.Operation, _own: int) -> list[ir.Value | int]:
    sizes = list(ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"]))
    operands = list(loop.operands)
    lower, upper = operands[: sizes[0]], operands[sizes[0] : sizes[0] + sizes[1]]
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


def _affine_parallel_bounds(loop: ir.Operation, own: int) -> list[ir.Value | int]:
    lower, upper = (_parallel_bound(loop, side) for side in ("lower", "upper"))
    step = ir.IntegerAttr(list(ir.ArrayAttr(loop.attributes["steps"]))[own]).value
    return [
        _extreme("affine.max", lower.of(own), lower.operands),
        _extreme("affine.min", upper.of(own), upper.operands),
        step,
    ]


_BOUNDS = {
    "affine.for": _affine_for_bounds,
    "affine.parallel": _affine_parallel_bounds,
    "scf.for": _scf_for_bounds,
    "scf.parallel": _scf_parallel_bounds,
}


def _owned(op: ir.Operation, dimension: int) -> list[ir.Value | int]:
    key = f"avial.owned{dimension}"
    if key not in op.attributes:
        return [0, 0]
    return list(ir.DenseI64ArrayAttr(op.attributes[key]))

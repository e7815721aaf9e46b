"""A phase as a function: a nest's body with its split loops cut to the range a rank is given.

A replicate or task in the program -> `func.func private @S1(arrays, scalars, low0, high0, low1,
high1)`, and the values to call it with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func

from avial_lab.compiler.ir.attributes import AS_WRITTEN, LEAN, OF_TASK, SPLIT, SPLIT_DIMENSIONS
from avial_lab.compiler.ir.captures import Captured, remap
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.llvm_attributes import NOT_INLINED, tell_llvm
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.loop_bounds import bounds_of, leaning, narrowed
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import split_dimensions, split_loops
from avial_lab.core.errors import PassError


@dataclass(frozen=True)
class Phase:
    """Call `symbol` with these values, then low and high of each split dimension."""

    symbol: str
    arguments: tuple[ir.Value, ...]


# The function -------------------------------------------------------------------------------------


def outline_phase(op: ir.Operation, before: ir.Operation, symbol: str) -> Phase:
    """Move the body of `op` into the function `symbol`, before `before`; `op` is left empty.

    The function remembers the name of the task that it is of.
    """
    captured = Captured.by(operations_in(op))
    index = ir.IndexType.get()
    inputs = [value.type for value in captured.arguments] + [index] * (2 * SPLIT_DIMENSIONS)
    with ir.InsertionPoint(before), op.location:
        function = func.FuncOp(symbol, (inputs, []), visibility="private")
    function.attributes[OF_TASK] = op.attributes["name"]
    if AS_WRITTEN in op.attributes:
        function.attributes[AS_WRITTEN] = ir.UnitAttr.get()
    # It is called at one place, and would be optimised once more there.
    tell_llvm(function.operation, NOT_INLINED)
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
        remap(copy, inside)
        inside.update(zip(fixed.results, copy.results, strict=True))
    for inner in list(operations_in(function.operation)):
        remap(inner, inside)
    _narrow(function.operation, ranges)
    last = body.operations[len(body.operations) - 1]
    with ir.InsertionPoint(last), last.location:
        func.ReturnOp([])
    last.operation.erase()
    with ir.InsertionPoint(ir.Block.create_at_start(region, [])), op.location:
        ir.Operation.create("omp.terminator")
    return Phase(symbol, tuple(captured.arguments))


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
            cut = _cut_leaning if LEAN in loop.attributes else narrowed
            loop = cut(loop, own, low, high)


def _cut_leaning(loop: ir.Operation, _own: int, low: ir.Value, high: ir.Value) -> ir.Operation:
    """To the part and what is run beyond it in this step of the time loop around."""
    below, above, fewer_below, fewer_above = ir.DenseI64ArrayAttr(loop.attributes[LEAN])
    del loop.attributes[LEAN]
    steps = parent_of(loop)
    assert steps is not None, "a loop that leans stands in a loop over time"
    time = steps.regions[0].blocks[0].arguments[0]
    return leaning(loop, time, (low, -below, fewer_below), (high, above, -fewer_above))


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
    return bounds_of(loop, own)


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


def _owned(op: ir.Operation, dimension: int) -> list[ir.Value | int]:
    key = f"avial.owned{dimension}"
    if key not in op.attributes:
        return [0, 0]
    return list(ir.DenseI64ArrayAttr(op.attributes[key]))

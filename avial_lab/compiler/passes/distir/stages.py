"""Which operations belong to which stage of a pipeline.

Function, its batch, how many stages -> the stage of every operation. Weights are cut in the order
in which they are first used, where that balances the arithmetic; what reads a weight, makes its
gradient or updates it, is where the weight is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from mlir import ir

from avial_lab.compiler.analysis.placements.dimension_classes import DimensionClasses
from avial_lab.compiler.analysis.placements.reading import Reading
from avial_lab.compiler.analysis.placements.split_loops import Loops, loops_of
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import itemsize_of
from avial_lab.compiler.ir.placements import is_tensor
from avial_lab.core.errors import ScheduleError
from avial_lab.planning.stage_balance import balanced


def arithmetic_of(op: ir.Operation, loops: Loops | None = None) -> int:
    """Iterations of the operation's loops; 0 of one without loops. `loops`: those, if known."""
    loops = loops or loops_of(op)
    extents: dict[int, int] = {}
    pairs = (
        *zip(op.operands, loops.operands, strict=True),
        *zip(op.results, loops.results, strict=True),
    )
    for value, dims in pairs:
        for d, loop in enumerate(dims):
            if loop is not None:
                extents[loop] = value.type.shape[d]
    return prod(extents.values()) if extents else 0


def bytes_of(value: ir.Value) -> int:
    return prod(value.type.shape) * itemsize_of(value.type.element_type)


def stages_of(
    function: ir.Operation,
    batch: Mapping[ir.Value, int],
    stages: int,
    *,
    classes: DimensionClasses | None = None,
) -> dict[ir.Operation, int]:
    """ScheduleError where there are fewer weights than stages. `classes`: the function's."""
    block = function.regions[0].blocks[0]
    *operations, _ = [view.operation for view in block.operations]
    classes = classes or DimensionClasses.of(function)
    uses = {op: classes.reading.used(op) for op in operations}
    in_batch = values_in_batch(function, batch, classes=classes)
    weights = [a for a in block.arguments if is_tensor(a.type) and a.type.rank and a not in batch]
    behind = weights_behind(uses, weights, in_batch)
    order, costs = in_order_of_use(uses, behind, in_batch, classes.reading)
    if len(order) < stages:
        raise ScheduleError(
            f"{stages} stages of a function that reads {len(order)} weights",
            span=span_of(function.location),
            hint=f"a stage has one weight at least: use {max(len(order), 1)} stages or fewer",
        )
    stage_of_weight = dict(zip(order, balanced([costs[w] for w in order], stages), strict=True))
    found: dict[ir.Operation, int] = {}
    for op in operations:
        known = [
            stage_of_weight[w] for v in uses[op] for w in behind.get(v, ()) if w in stage_of_weight
        ]
        if known:
            found[op] = max(known)
    for op in reversed(operations):  # gradients are where their weight is updated
        if op not in found and not any(value in in_batch for value in op.results):
            users = [u for u in _users(op) if u in found]
            if users:
                found[op] = found[users[0]]
    for op in operations:
        if op not in found:
            found[op] = _nearest(op, uses[op], found)
    return found


def values_in_batch(
    function: ir.Operation,
    batch: Mapping[ir.Value, int],
    *,
    classes: DimensionClasses | None = None,
) -> set[ir.Value]:
    classes = classes or DimensionClasses.of(function)
    values = [r for view in function.regions[0].blocks[0].operations for r in view.results]
    found: set[ir.Value] = set(batch)
    for dimension in batch.items():
        found.update(classes.dimensions_like(dimension, values))
    return found


def weights_met(
    function: ir.Operation, batch: Mapping[ir.Value, int]
) -> dict[ir.Operation, ir.Value]:
    """For operations on the batch, the weight that it has met last on the way there."""
    block = function.regions[0].blocks[0]
    *operations, _ = [view.operation for view in block.operations]
    classes = DimensionClasses.of(function)
    uses = {op: classes.reading.used(op) for op in operations}
    in_batch = values_in_batch(function, batch, classes=classes)
    weights = [a for a in block.arguments if is_tensor(a.type) and a.type.rank and a not in batch]
    behind = weights_behind(uses, weights, in_batch)
    order = {weight: k for k, weight in enumerate(weights)}
    met: dict[ir.Value, ir.Value] = {}
    found: dict[ir.Operation, ir.Value] = {}
    for op in operations:
        here = [w for v in uses[op] for w in behind.get(v, ()) if w in order]
        before = [met[v] for v in uses[op] if v in met]
        if any(value in in_batch for value in op.results) and (here or before):
            found[op] = here[-1] if here else before[-1]
            met.update((value, found[op]) for value in op.results)
    return found


def weights_behind(
    uses: Mapping[ir.Operation, Sequence[ir.Value]],
    weights: Sequence[ir.Value],
    in_batch: set[ir.Value],
) -> dict[ir.Value, tuple[ir.Value, ...]]:
    """For values that are made of weights alone: of which. `uses`: what each operation reads, in
    order.
    """
    behind: dict[ir.Value, tuple[ir.Value, ...]] = {w: (w,) for w in weights}
    for op, read in uses.items():
        tensors = [v for v in read if is_tensor(v.type)]
        made_of = [w for v in tensors for w in behind.get(v, ())]
        if made_of and all(v in behind or not _is_computed(v) for v in tensors):
            for value in op.results:
                if value not in in_batch:
                    behind[value] = tuple(dict.fromkeys(made_of))
    return behind


def _is_computed(value: ir.Value) -> bool:
    """Whether it is made of other tensors."""
    if isinstance(value.owner, ir.Block):
        return True
    op = value.owner.operation
    return op.name not in ("tensor.empty", "arith.constant", "linalg.fill", "tensor.splat")


def in_order_of_use(
    uses: Mapping[ir.Operation, Sequence[ir.Value]],
    behind: Mapping[ir.Value, tuple[ir.Value, ...]],
    in_batch: set[ir.Value],
    reading: Reading,
) -> tuple[list[ir.Value], dict[ir.Value, int]]:
    """Weights as they first meet the batch, and the arithmetic in which they do."""
    costs: dict[ir.Value, int] = {}
    for op, read in uses.items():
        if not any(value in in_batch for value in read):
            continue
        met = dict.fromkeys(w for v in read for w in behind.get(v, ()))
        work = arithmetic_of(op, reading.loops(op)) if met else 0
        for weight in met:
            costs[weight] = costs.get(weight, 0) + work
    return list(costs), costs


def _users(op: ir.Operation) -> list[ir.Operation]:
    return [use.owner.operation for result in op.results for use in result.uses]


def _nearest(op: ir.Operation, read: Sequence[ir.Value], found: Mapping[ir.Operation, int]) -> int:
    """The stage to which fewest bytes have to go, and from which; the operands' where that is all
    the same.
    """
    weights: dict[int, int] = {}
    for value in read:
        owner = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if is_tensor(value.type) and owner is not None and owner in found and _is_computed(value):
            weights[found[owner]] = weights.get(found[owner], 0) + bytes_of(value)
    for stage in {found[user] for user in _users(op) if user in found}:
        size = sum(bytes_of(value) for value in op.results if is_tensor(value.type))
        weights[stage] = weights.get(stage, 0) + size
    return max(weights, key=lambda stage: weights[stage], default=0)

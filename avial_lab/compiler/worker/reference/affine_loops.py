"""Affine operations by their definition: loops of scf, accesses of memref, forms as arithmetic.

Module with affine operations -> the same without; `affine.parallel` that combines results, views
and vectors of affine stay for MLIR's lower-affine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.ir.operations import condition_of, operations_in
from avial_lab.compiler.worker.reference.forms import extreme, number, values_of


@dataclass(frozen=True)
class AffineByDefinition:
    """What each affine operation stands for, with plain arithmetic that nobody folded.

    before:  affine.for %i = 0 to %n { %x = affine.load %A[%i ceildiv 4] … }
    after:   scf.for %i = %c0 to %n step %c1 { %q = arith.divsi %i, %c4 …  memref.load %A[…] … }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            # From the inside to the outside: a loop's body is moved as it is then.
            for op in reversed(list(operations_in(module))):
                write = _DEFINITIONS.get(op.name)
                if write is None or (op.name == "affine.parallel" and len(op.results)):
                    continue
                with ir.InsertionPoint(op), op.location:
                    values = write(op)
                for old, new in zip(op.results, values, strict=True):
                    old.replace_all_uses_with(new)
                op.erase()

    def __str__(self) -> str:
        return "affine-by-definition"


def _map(op: ir.Operation, name: str = "map") -> ir.AffineMap:
    return ir.AffineMapAttr(op.attributes[name]).value


def _apply(op: ir.Operation) -> Sequence[ir.Value]:
    return values_of(_map(op), op.operands)


def _least(op: ir.Operation) -> Sequence[ir.Value]:
    return [extreme(values_of(_map(op), op.operands), largest=False)]


def _greatest(op: ir.Operation) -> Sequence[ir.Value]:
    return [extreme(values_of(_map(op), op.operands), largest=True)]


def _load(op: ir.Operation) -> Sequence[ir.Value]:
    array, *operands = op.operands
    return [memref.LoadOp(array, values_of(_map(op), operands)).result]


def _store(op: ir.Operation) -> Sequence[ir.Value]:
    value, array, *operands = op.operands
    memref.StoreOp(value, array, values_of(_map(op), operands))
    return ()


def _for(op: ir.Operation) -> Sequence[ir.Value]:
    lows, highs, _ = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    operands = list(op.operands)
    low = extreme(values_of(_map(op, "lowerBoundMap"), operands[:lows]), largest=True)
    high = extreme(
        values_of(_map(op, "upperBoundMap"), operands[lows : lows + highs]), largest=False
    )
    step = number(ir.IntegerAttr(op.attributes["step"]).value)
    loop = scf.ForOp(low, high, step, operands[lows + highs :])
    _move_body(op, loop.body)
    return list(loop.results)


def _move_body(op: ir.Operation, into: ir.Block, places: Sequence[ir.Value] = ()) -> None:
    """The body of `op` into an empty block, whose arguments (or `places`) stand for its own."""
    old = op.regions[0].blocks[0]
    for before, after in zip(old.arguments, places or list(into.arguments), strict=True):
        before.replace_all_uses_with(after)
        if not places:
            after.set_location(before.location)
    *operations, end = [view.operation for view in old.operations]
    point = ir.InsertionPoint(into)
    for inner in operations:
        inner.detach_from_parent()
        point.insert(inner)
    with point:
        scf.YieldOp(list(end.operands), loc=end.location)


def _parallel(op: ir.Operation) -> Sequence[ir.Value]:
    """One loop in another, from the first to the last."""
    lows, highs = (_group(op, name) for name in ("lowerBounds", "upperBounds"))
    operands = list(op.operands)
    lower, upper = _map(op, "lowerBoundsMap"), _map(op, "upperBoundsMap")
    firsts = iter(values_of(lower, operands[: lower.n_inputs]))
    ends = iter(values_of(upper, operands[lower.n_inputs :]))
    bounds = [
        (
            extreme([next(firsts) for _ in range(low)], largest=True),
            extreme([next(ends) for _ in range(high)], largest=False),
        )
        for low, high in zip(lows, highs, strict=True)
    ]
    steps = [ir.IntegerAttr(step).value for step in ir.ArrayAttr(op.attributes["steps"])]
    names = [argument.location for argument in op.regions[0].blocks[0].arguments]

    def level(places: list[ir.Value]) -> None:
        low, high = bounds[len(places)]
        loop = scf.ForOp(low, high, number(steps[len(places)]))
        loop.induction_variable.set_location(names[len(places)])
        inner = [*places, loop.induction_variable]
        if len(inner) == len(bounds):
            _move_body(op, loop.body, inner)
            return
        with ir.InsertionPoint(loop.body):
            level(inner)
            scf.YieldOp([])

    if bounds:
        level([])
    else:
        for inner in [view.operation for view in op.regions[0].blocks[0].operations][:-1]:
            inner.move_before(op)
    return ()


def _group(op: ir.Operation, name: str) -> list[int]:
    """How many forms each dimension's bound is the extreme of."""
    groups = ir.DenseIntElementsAttr(op.attributes[f"{name}Groups"])
    return [groups[k] for k in range(len(groups))]


def _if(op: ir.Operation) -> Sequence[ir.Value]:
    equal, left_sides = condition_of(op.attributes["condition"])
    is_zero, at_least_zero = arith.CmpIPredicate.eq, arith.CmpIPredicate.sge
    relations = [is_zero if each else at_least_zero for each in equal]
    holds = arith.constant(ir.IntegerType.get_signless(1), 1)
    for relation, left in zip(relations, values_of(left_sides, op.operands), strict=True):
        holds = arith.andi(holds, arith.cmpi(relation, left, number(0)))
    otherwise = len(op.regions[1].blocks) > 0
    branch = scf.IfOp(holds, [result.type for result in op.results], has_else=otherwise)
    for old, new in zip(op.regions, branch.operation.regions, strict=True):
        if len(old.blocks):
            _move_branch(old.blocks[0], new.blocks[0])
    return list(branch.results)


def _move_branch(old: ir.Block, into: ir.Block) -> None:
    *operations, end = [view.operation for view in old.operations]
    point = ir.InsertionPoint(into)
    for inner in operations:
        inner.detach_from_parent()
        point.insert(inner)
    with point:
        scf.YieldOp(list(end.operands), loc=end.location)


_DEFINITIONS = {
    "affine.apply": _apply,
    "affine.for": _for,
    "affine.if": _if,
    "affine.load": _load,
    "affine.max": _greatest,
    "affine.min": _least,
    "affine.parallel": _parallel,
    "affine.store": _store,
}

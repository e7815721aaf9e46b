"""A converge that counts or watches a buffer becomes the loop it stands for.

Module with `avial.converge` -> module in which each converge holds one loop around its tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.analysis.accesses.control_tree import ROUNDS, rounds_of
from avial_lab.compiler.ir.dialects.avial import SEGMENTS, operand_segments, rebuilt_with
from avial_lab.compiler.ir.operations import operations_in


@dataclass(frozen=True)
class ConvergeToLoops:
    """Write the loop out.

    before:  avial.converge until %error lt 1.0e-6 max 1000 { tasks }
    after:   avial.converge {
               scf.while (%round = 0) {
                 tasks
                 %e = memref.load %error[]   %done = arith.cmpf olt, %e, 1.0e-6
                 scf.condition(not %done and %round + 1 < 1000) %round + 1
               } do { scf.yield } }

    Without a condition it is a loop of `max` rounds. The condition is looked at after each round,
    so that there is at least one; NaN is never below or above anything.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in [op for op in operations_in(module) if op.name == "avial.converge"]:
                if "max" in op.attributes:
                    _write_out(op)

    def __str__(self) -> str:
        return "converge-to-loops"


def _write_out(op: ir.Operation) -> None:
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    *tasks, end = body
    rounds = ir.IntegerAttr(op.attributes["max"]).value
    watched = op.operands[0] if operand_segments(op)[0] else None
    with ir.InsertionPoint(end), op.location:
        if watched is None:
            first, last = (arith.constant(ir.IndexType.get(), n) for n in (0, rounds))
            step = arith.constant(ir.IndexType.get(), 1)
            loop = scf.ForOp(first, last, step)
            with ir.InsertionPoint(loop.body):
                last_op = scf.YieldOp([]).operation
        else:
            last_op = _watching(op, watched, rounds)
    for task in tasks:
        task.move_before(last_op)
    _forget(op)


def _watching(op: ir.Operation, watched: ir.Value, rounds: int) -> ir.Operation:
    """The loop around what is watched; the operation before which its tasks go."""
    index = ir.IndexType.get()
    loop = ir.Operation.create("scf.while", [index], [arith.constant(index, 0)], regions=2)
    head = ir.Block.create_at_start(loop.regions[0], [index])
    tail = ir.Block.create_at_start(loop.regions[1], [index])
    with ir.InsertionPoint(head):
        rank = ir.MemRefType(watched.type).rank
        place = [arith.constant(index, 0)] * rank
        value = memref.load(watched, place)
        first = place[0].owner.operation if place else value.owner.operation
        done = _compared(op, value)
        following = arith.addi(head.arguments[0], arith.constant(index, 1))
        more = arith.cmpi(arith.CmpIPredicate.slt, following, arith.constant(index, rounds))
        flag = ir.IntegerType.get_signless(1)
        again = arith.andi(more, arith.xori(done, arith.constant(flag, 1)))
        scf.ConditionOp(again, [following])
    with ir.InsertionPoint(tail):
        scf.YieldOp([tail.arguments[0]])
    return first


def _compared(op: ir.Operation, value: ir.Value) -> ir.Value:
    """Whether the watched value is on the side of the threshold that ends the loop."""
    name = ir.StringAttr(op.attributes["predicate"]).value
    threshold = ir.FloatAttr(op.attributes["threshold"]).value
    if isinstance(value.type, (ir.IntegerType, ir.IndexType)):
        wide = ir.F64Type.get()
        if isinstance(value.type, ir.IndexType):
            value = arith.index_cast(ir.IntegerType.get_signless(64), value)
        is_bool = ir.IntegerType(value.type).width == 1  # its one bit is no sign
        value = arith.uitofp(wide, value) if is_bool else arith.sitofp(wide, value)
    elif not isinstance(value.type, ir.F64Type):
        value = arith.extf(ir.F64Type.get(), value)
    predicate = {"lt": "OLT", "le": "OLE", "gt": "OGT", "ge": "OGE"}[name]
    limit = arith.constant(value.type, threshold)
    return arith.cmpf(getattr(arith.CmpFPredicate, predicate), value, limit)


def _forget(op: ir.Operation) -> None:
    """What the loop says now, the converge says no longer, but in words for people."""
    sizes = operand_segments(op)
    rounds = ir.StringAttr.get(rounds_of(op))
    keep = list(op.operands)[sizes[0] :]
    attributes = {
        name: op.attributes[name]
        for name in op.attributes
        if name not in ("max", "predicate", "threshold")
    }
    attributes[ROUNDS] = rounds
    attributes[SEGMENTS] = ir.DenseI32ArrayAttr.get([0, *sizes[1:]])
    rebuilt_with(op, keep, attributes)

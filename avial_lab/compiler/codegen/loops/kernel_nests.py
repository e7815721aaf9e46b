"""Nests in the form that has most threads: free loops outside, one nest for each part of a body.

A free loop of several parts -> one for each; a free loop around one in order -> columns outside.

    for i: { for j: C[i, j] *= b          for i: for j: C[i, j] *= b
             for k: for j:           ->   for i: for j: for k: C[i, j] += A[i, k] * B[k, j]
               C[i, j] += … }
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlir import ir

from avial_lab.compiler.analysis.parallelism.marked_loops import columns_of
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.codegen.loops.kernel_bodies import is_free
from avial_lab.compiler.ir.attributes import IFS
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, STORES, is_pure
from avial_lab.compiler.ir.nesting import FORS, body_of, end_of, holds, parent_of
from avial_lab.compiler.ir.operations import LOOPS, operations_in


def distribute(loop: ir.Operation, scop: Scop) -> bool:
    """A copy of the free loop for each loop in it, and for what stands between them: none of its
    iterations waits for another, so all of them may do their first part before any does its
    second. Only where a part has more threads then, and hands no value to the next.
    """
    parts = parts_of(loop)
    if len(parts) < 2 or not any(_gains(part[0], scop) for part in parts):
        return False
    if not hand_on_nothing(parts):
        return False
    body = body_of(loop)
    for part in parts:
        kept = {body.index(op) for op in part}
        keep_only(kept, loop.operation.clone(ip=ir.InsertionPoint(loop)).operation)
    loop.erase()
    return True


def keep_only(kept: Collection[int], loop: ir.Operation) -> None:
    """Of what stands right in the loop those of these numbers, and the arithmetic for them."""
    for k, op in reversed(list(enumerate(body_of(loop)))):
        if not _is_used(op) if is_pure(op) else k not in kept:
            op.erase()


def hand_on_nothing(parts: Sequence[Sequence[ir.Operation]]) -> bool:
    """Whether no part has a value, or memory, that another uses."""
    ops = [(part, op) for part in parts for op in part]
    if any(op.name in ("memref.alloc", "memref.alloca") for _, op in ops):
        return False
    return all(_is_used_in(part, op) for part, op in ops)


def parts_of(loop: ir.Operation) -> list[list[ir.Operation]]:
    """Each loop right in it, and what stands before, between and behind, but for arithmetic."""
    parts: list[list[ir.Operation]] = []
    if loop.name not in FORS:
        return parts
    for op in body_of(loop):
        if is_pure(op):
            continue
        joins = parts and op.name not in LOOPS and parts[-1][-1].name not in LOOPS
        if joins:
            parts[-1].append(op)
        else:
            parts.append([op])
    return parts


def _gains(op: ir.Operation, scop: Scop) -> bool:
    return op.name in LOOPS and (is_free(op, scop) or bool(columns_of(op, scop)))


def _is_used_in(part: Sequence[ir.Operation], op: ir.Operation) -> bool:
    """Whether all that the operation makes is used in its part, be it by way of arithmetic."""
    for result in op.results:
        for use in result.uses:
            user = use.owner.operation
            if any(holds(each, user) for each in part):
                continue
            if user.block != op.block or not is_pure(user) or not _is_used_in(part, user):
                return False
    return True


def is_taken_apart(loop: ir.Operation) -> bool:
    """Whether all that it does is computed from what it loads, and stored."""
    return all(
        is_pure(op) or op.name in (*ACCESSES, *LOOPS, *IFS, *_ENDS) for op in operations_in(loop)
    )


_ENDS = ("affine.yield", "scf.yield", "scf.reduce")


def may_come_before(loop: ir.Operation, stores: Collection[int], scop: Scop) -> bool:
    """Whether all else in the loop may be done in all of its iterations before these stores, by
    their numbers among its operations, are done in any.
    """
    ops = list(operations_in(loop))
    later = _needed(loop, [ops[k] for k in stores])
    rest = [op for k, op in enumerate(ops) if op.name in STORES and k not in stores]
    before = _needed(loop, rest)
    inside = [s for s in scop.statements if holds(loop, s.op)]

    def none() -> bool:
        found = dependences(inside)
        return not any(d.source.op in later and d.target.op in before for d in found)

    return limited(none, lambda: False)


def _needed(loop: ir.Operation, wanted: Sequence[ir.Operation]) -> set[ir.Operation]:
    """These in the loop, what their values are computed from, and what is around them."""
    found: set[ir.Operation] = set()
    waiting = list(wanted)
    while waiting:
        op = waiting.pop()
        if op in found or not holds(loop, op):
            continue
        found.add(op)
        owners = [operand.owner for operand in op.operands]
        waiting += [each.operation for each in owners if not isinstance(each, ir.Block)]
        around = parent_of(op)
        if around is not None:
            waiting.append(around)
        if len(op.results):
            waiting += operations_in(op)
    return found


def with_stores(kept: Collection[int], loop: ir.Operation) -> ir.Operation:
    """The loop with these of its stores, by their numbers, and what they need."""
    for k, op in reversed(list(enumerate(operations_in(loop)))):
        if op.name in STORES:
            if k not in kept:
                op.erase()
        elif op.name in (*LOOPS, *IFS):
            if not _is_used(op) and not any(each.name in STORES for each in operations_in(op)):
                op.erase()
        elif (is_pure(op) or op.name in LOADS) and not _is_used(op):
            op.erase()
    return loop


def _is_used(op: ir.Operation) -> bool:
    return any(True for result in op.results for _ in result.uses)


def draw_out(loop: ir.Operation, scop: Scop) -> bool:
    """Loops that run in order in the free loop, each right in the one before, and whose innermost
    goes over columns: that one comes right into the free loop, the others into it.
    """
    nest = _in_order(loop, scop)
    if len(nest) < 2 or columns_of(nest[0], scop) != [nest[-1]]:
        return False
    turn_inside_out(nest)
    return True


def turn_inside_out(nest: Sequence[ir.Operation]) -> None:
    """The innermost of loops that are right in each other comes outside of all."""
    first, column = nest[0], nest[-1]
    inside = body_of(column)
    column.move_before(first)
    for op in inside:
        op.move_before(end_of(nest[-2]))
    first.move_before(end_of(column))


def _in_order(loop: ir.Operation, scop: Scop) -> list[ir.Operation]:
    """From the outermost that is not free to the innermost."""
    nest: list[ir.Operation] = []
    while True:
        others = [op for op in body_of(loop) if not is_pure(op)]
        if len(others) != 1 or others[0].name not in FORS or len(others[0].results):
            return nest
        loop = others[0]
        if nest or not is_free(loop, scop):
            nest.append(loop)

"""Carried values that may live in the elements which they come from and end up in.

Scop, a loop that carries values -> for each of them whether nobody else could tell.

    w = A[i, j]                              every store of w to A[i, j] instead is unseen: nothing
    for k:  w -= A[i, k] * A[k, j]           touches A[i, j] before the last line does
    A[i, j] = w / A[j, j]
"""

from __future__ import annotations

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.scop import Scop, Statement
from avial_lab.compiler.ir.nesting import holds, inits_of

IN = isl.dim_type.in_


def own_elements(scop: Scop, loop: ir.Operation) -> list[bool]:
    """For each value that `loop` carries whether it may live in the element that it is loaded from:
    one that is stored to again after the loop, and that nothing else touches until then.
    """
    return [_has_own(scop, loop, init) for init in inits_of(loop)]


def _has_own(scop: Scop, loop: ir.Operation, init: ir.Value) -> bool:
    if isinstance(init.owner, ir.Block):
        return False
    op = init.owner.operation
    load = next((s for s in scop.statements if s.op == op), None)
    if load is None or op.name != "affine.load" or op.block != loop.block:
        return False
    following = [view.operation for view in loop.block.operations]
    following = following[following.index(op) + 1 :]
    end = next((k for k, each in enumerate(following) if _stores_back(each, op)), None)
    if end is None or loop not in following[:end]:
        return False
    between = [s for s in scop.statements if any(holds(each, s.op) for each in following[:end])]
    return all(_is_elsewhere(statement, load) for statement in between)


def _stores_back(op: ir.Operation, load: ir.Operation) -> bool:
    """Whether it stores to the place that `load` is of."""
    return (
        op.name == "affine.store"
        and list(op.operands)[1:] == list(load.operands)
        and op.attributes["map"] == load.attributes["map"]
    )


def _is_elsewhere(statement: Statement, load: Statement) -> bool:
    """Whether what runs in one iteration of the loops around `load` never touches its element."""
    own = load.accesses[0]
    touching = [access for access in statement.accesses if access.array == own.array]
    if not statement.exact or not all(access.exact for access in (*touching, own)):
        return False
    more = len(statement.loops) - len(load.loops)
    element = own.relation.insert_dims(IN, len(load.loops), more)
    return all(
        access.relation.intersect_domain(statement.domain)
        .intersect(element.set_tuple_name(IN, statement.domain.get_tuple_name()))
        .is_empty()
        for access in touching
    )

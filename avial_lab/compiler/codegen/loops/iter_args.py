"""Loops that hand values on from iteration to iteration."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from avial_lab.compiler.ir.operations import attributes_of


def with_more(loop: ir.Operation, first: Sequence[ir.Value]) -> ir.Operation:
    """`loop` with the operations of its body moved into it, which carries those values too."""
    attributes = attributes_of(loop)
    if "operandSegmentSizes" in attributes:
        *bounds, carried = ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"])
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
            [*bounds, carried + len(first)]
        )
    kinds = [value.type for value in first]
    new = ir.Operation.create(
        loop.name,
        [*(result.type for result in loop.results), *kinds],
        [*loop.operands, *first],
        attributes,
        regions=1,
    )
    old = loop.regions[0].blocks[0]
    body = new.regions[0].blocks.append(
        *(argument.type for argument in old.arguments),
        *kinds,
        arg_locs=[
            *(argument.location for argument in old.arguments),
            *([loop.location] * len(kinds)),
        ],
    )
    for argument, value in zip(old.arguments, body.arguments, strict=False):
        argument.replace_all_uses_with(value)
    with ir.InsertionPoint(body):
        end = ir.Operation.create(old.operations[-1].operation.name)
    *moved, finish = [view.operation for view in old.operations]
    for op in moved:
        op.move_before(end)
    end.erase()
    with ir.InsertionPoint(body):
        finish.clone()
    return new


def hand_on(loop: ir.Operation, more: Sequence[ir.Value]) -> None:
    body = loop.regions[0].blocks[0]
    finish = body.operations[-1].operation
    with ir.InsertionPoint(body):
        values = [*finish.operands, *more]
        finish.erase()
        ir.Operation.create(
            "affine.yield" if loop.name == "affine.for" else "scf.yield", operands=values
        )

"""avial's operations as the short notation would have written them.

A module with avial operations in generic form -> the same program with its !avial.buffer_ref casts
where the notation puts them (before the first operation that lists the buffer), and no buffer twice
in a list. So two texts of one program are one module, and the printer has only one form to know.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from avial_lab.compiler.frontends.mlir.roles import WORK
from avial_lab.compiler.ir.dialects.avial import (
    CAST,
    SEGMENTS,
    buffer_of,
    operand_segments,
    rebuilt,
)

Handles = dict[ir.Value, ir.Value]


def canonicalize_operands(function: ir.Operation) -> None:
    """Rewrite every schedule and task of the function."""
    order = _order(function)
    old = _casts(function)
    _walk(function.regions[0].blocks[0], {}, order)
    for cast in old:
        if not any(True for _ in cast.results[0].uses):
            cast.erase()


def _order(function: ir.Operation) -> dict[ir.Value, int]:
    """When each memref came into being, tasks' own ones aside."""
    found: list[ir.Value] = list(function.regions[0].blocks[0].arguments)

    def collect(block: ir.Block) -> None:
        for view in block:
            found.extend(view.operation.results)
            if view.operation.name in ("avial.schedule", "avial.converge"):
                collect(view.operation.regions[0].blocks[0])

    collect(function.regions[0].blocks[0])
    return {value: k for k, value in enumerate(found)}


def _casts(function: ir.Operation) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if (
            op.name == CAST
            and len(op.results) == 1
            and str(op.results[0].type) == "!avial.buffer_ref"
        ):
            found.append(op)
        return ir.WalkResult.ADVANCE

    function.walk(visit, ir.WalkOrder.POST_ORDER)
    return found


def _walk(block: ir.Block, known: Handles, order: dict[ir.Value, int]) -> None:
    for view in list(block):
        op = view.operation
        if op.name == "avial.schedule":
            buffers = _distinct([buffer_of(handle) for handle in op.operands])
            handles = _handles(buffers, known, order, op)
            new = rebuilt(op, [handles[b] for b in buffers], {})
            _walk(new.regions[0].blocks[0], dict(known), order)
        elif op.name == "avial.converge":
            _walk(op.regions[0].blocks[0], dict(known), order)
        elif op.name in WORK:
            _work(op, known, order)


def _work(op: ir.Operation, known: Handles, order: dict[ir.Value, int]) -> None:
    operands, sizes = list(op.operands), operand_segments(op)
    ends = [1, 1 + sizes[1], 1 + sizes[1] + sizes[2]]
    reads = _distinct([buffer_of(handle) for handle in operands[ends[0] : ends[1]]])
    writes = _distinct([buffer_of(handle) for handle in operands[ends[1] : ends[2]]])
    after = _distinct(operands[ends[2] :])
    handles = _handles(_distinct([*reads, *writes]), known, order, op)
    segments = ir.DenseI32ArrayAttr.get([1, len(reads), len(writes), len(after)])
    values = [operands[0], *(handles[b] for b in (*reads, *writes)), *after]
    rebuilt(op, values, {SEGMENTS: segments})


def _distinct(values: Sequence[ir.Value]) -> list[ir.Value]:
    return list(dict.fromkeys(values))


def _handles(
    buffers: list[ir.Value], known: Handles, order: dict[ir.Value, int], op: ir.Operation
) -> Handles:
    """A cast for each buffer; new ones stand before `op`, oldest buffer first."""
    new = [buffer for buffer in buffers if buffer not in known]
    kind = ir.Type.parse("!avial.buffer_ref")
    for buffer in sorted(new, key=lambda buffer: order.get(buffer, -1)):
        cast = ir.Operation.create(
            CAST, results=[kind], operands=[buffer], loc=op.location, ip=ir.InsertionPoint(op)
        )
        known[buffer] = cast.results[0]
    return {buffer: known[buffer] for buffer in buffers}

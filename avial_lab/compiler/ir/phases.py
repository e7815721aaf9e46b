"""Phases: what ranks run between two exchanges, and what stands on them."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from avial_lab.compiler.ir.attributes import ALONE, FUSED, HALO, IFS, PHASES, SPLIT
from avial_lab.compiler.ir.dialects.avial import (
    SEGMENTS,
    ReplicateOp,
    TaskOp,
    buffer_of,
    operand_segments,
)
from avial_lab.compiler.ir.effects import ACCESSES, STORES, is_pure, text_attribute
from avial_lab.compiler.ir.nesting import FORS, body_of
from avial_lab.compiler.ir.operations import arrays_of, nbytes_of, operations_in
from avial_lab.machine.devices import CPU, kind_for

_ENDS = ("omp.terminator", "affine.yield", "scf.yield")


def alone_in(module: ir.Operation) -> str | None:
    """Why one of several ranks runs the whole program; None where they share it."""
    for op in operations_in(module):
        if ALONE in op.attributes:
            return ir.StringAttr(op.attributes[ALONE]).value
    return None


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


def halo_of(op: ir.Operation) -> tuple[int, int] | None:
    """The iterations before and after its part that a rank runs too; None where there are none, and
    parts can be cut further.
    """
    if HALO not in op.attributes:
        return None
    below, above = ir.DenseI64ArrayAttr(op.attributes[HALO])
    return below, above


def bytes_of(converge: ir.Operation) -> int:
    """Of the arrays that are used in it."""
    return sum(nbytes_of(kind) for kind in arrays_of(converge) if kind.has_static_shape)


def fused_in(module: ir.Operation) -> dict[str, tuple[str, ...]]:
    """For each task that was several phases, by its name, why."""
    return {
        text_attribute(op, "name"): tuple(
            ir.StringAttr(line).value for line in ir.ArrayAttr(op.attributes["avial.why"])
        )
        for op in operations_in(module)
        if FUSED in op.attributes
    }


def phases_in(converge: ir.Operation, *, between: bool = False) -> list[ir.Operation]:
    """The phases in the loops and branches of a converge; none where something else is there too,
    but for what stands `between` them and loads and stores what they touch themselves.
    """
    found: list[ir.Operation] = []
    pending, loose = [converge.regions[0].blocks[0]], list[ir.Operation]()
    while pending:
        for view in pending.pop().operations:
            op = view.operation
            if op.name in PHASES:
                found.append(op)
            elif op.name in IFS or (op.name in (*FORS, "avial.converge") and not _hands_on(op)):
                pending += [block for region in op.regions for block in region.blocks]
            elif between and op.name in ACCESSES:
                loose.append(op)
            elif not is_pure(op) and op.name not in _ENDS:
                return []
    return found if all(_is_touched(op, found) for op in loose) else []


def _is_touched(access: ir.Operation, phases: Sequence[ir.Operation]) -> bool:
    """Whether what it loads or stores is loaded or stored by a phase."""
    stores = access.name in STORES
    array = access.operands[int(stores)]
    owners = (buffer.owner for buffer in touched_by(phases, 1 + stores))
    return any(
        not isinstance(owner, ir.Block) and list(owner.operation.operands) == [array]
        for owner in owners
    )


def _hands_on(op: ir.Operation) -> bool:
    return op.name in FORS and len(op.results) > 0


def on_cpu(op: ir.Operation) -> bool:
    view = op.opview
    assert isinstance(view, ReplicateOp | TaskOp)
    return kind_for(view.target_op.arch) is CPU and not any(
        inner.name.startswith("gpu.") for inner in operations_in(op)
    )


def as_one(converge: ir.Operation, phases: Sequence[ir.Operation], name: str) -> ir.Operation:
    """A task or replicate (`name`) before the converge, with a copy of its loops and the phases'
    bodies in them.
    """
    target = phases[0].operands[0]
    reads, writes = touched_by(phases, 1), touched_by(phases, 2)
    task = ir.Operation.create(
        name,
        [result.type for result in converge.results],
        [target, *reads, *writes],
        attributes={
            "name": converge.attributes["name"],
            SEGMENTS: ir.DenseI32ArrayAttr.get([1, len(reads), len(writes), 0]),
        },
        regions=1,
        loc=converge.location,
        ip=ir.InsertionPoint(converge),
    )
    copy = converge.clone(ip=ir.InsertionPoint(converge)).operation
    copy.regions[0].blocks[0].append_to(task.regions[0])
    copy.erase()
    for op in list(operations_in(task)):
        if op.name in (*PHASES, "avial.converge"):
            for inner in body_of(op):
                inner.move_before(op)
    for op in [op for op in operations_in(task) if op.name in (*PHASES, "avial.converge")][::-1]:
        op.erase()
    return task


def touched_by(phases: Sequence[ir.Operation], segment: int) -> list[ir.Value]:
    """The buffers in that group of operands, each once."""
    found: dict[ir.Value, None] = {}
    for op in phases:
        sizes = operand_segments(op)
        start = sum(sizes[:segment])
        found.update(dict.fromkeys(list(op.operands)[start : start + sizes[segment]]))
    return list(found)

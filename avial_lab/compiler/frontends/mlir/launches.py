"""A `gpu.launch` without sizes starts a thread for each index of the first dimension it writes.

gpu.launch {avial.bare} of one thread -> gpu.launch of n threads, in which `gpu.thread_id x` counts
0 … n - 1 whatever n.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, memref, scf

from avial_lab.compiler.analysis.accesses.calls import Functions
from avial_lab.compiler.frontends.mlir.roles import role_touches
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.views import DYNAMIC, view_chain
from avial_lab.core.errors import VerifyError
from avial_lab.machine.devices.cuda import MOST_THREADS

BLOCK = 256
"""Threads of a block where the indices need more than one."""


def size_launches(launches: list[ir.Operation]) -> None:
    """Give each of the bare launches its sizes."""
    for launch in launches:
        del launch.attributes["avial.bare"]
        _size(launch)


def _size(launch: ir.Operation) -> None:
    written = _written_first(launch)
    shape = list(ir.MemRefType(written.type).shape)
    extent = shape[0] if shape else 1
    barrier = _holds(launch, "gpu.barrier")
    with ir.InsertionPoint(launch), launch.location:
        index = ir.IndexType.get()
        if extent == DYNAMIC:
            zero = arith.ConstantOp(index, 0).result
            count = memref.DimOp(written, zero).result
        else:
            count = arith.ConstantOp(index, extent).result
        if barrier and extent > MOST_THREADS:
            raise VerifyError(
                f"gpu.barrier needs all {extent} threads in one block, "
                f"and a block has at most {MOST_THREADS}",
                span=span_of(launch.location),
                hint="give sizes: gpu.launch blocks(…) in (…) threads(…) in (…) { … }",
            )
        if barrier or 0 < extent <= BLOCK:
            launch.operands[3] = count
            return
        width = arith.ConstantOp(index, BLOCK).result
        if extent == DYNAMIC:
            blocks = arith.CeilDivUIOp(count, width).result
        else:
            number = max(1, -(-extent // BLOCK))
            blocks = arith.ConstantOp(index, number).result
        launch.operands[0], launch.operands[3] = blocks, width
    _guard(launch, count, width)


def _written_first(launch: ir.Operation) -> ir.Value:
    """The first memref from outside that the body writes."""
    for touch in role_touches(launch.regions[0].blocks[0], Functions()):
        if not touch.writes:
            continue
        for value in view_chain(touch.value):
            if not inside(value, launch):
                if isinstance(value.type, ir.MemRefType):
                    return value
                break
    raise VerifyError(
        "gpu.launch has no sizes, and its body writes no buffer they could follow from",
        span=span_of(launch.location),
        hint="give sizes: gpu.launch blocks(…) in (…) threads(…) in (…) { … }",
    )


def inside(value: ir.Value, operation: ir.Operation) -> bool:
    """Whether the value is defined in a region of the operation."""
    owner = value.owner
    parent = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation.parent
    while parent is not None:
        if parent.operation == operation:
            return True
        parent = parent.operation.parent
    return False


def _holds(launch: ir.Operation, name: str) -> bool:
    found = False

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        found = found or op.name == name
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    launch.walk(visit, ir.WalkOrder.POST_ORDER)
    return found


def _guard(launch: ir.Operation, count: ir.Value, width: ir.Value) -> None:
    """The body runs where block × 256 + thread < count, and sees that as its thread's index."""
    block = launch.regions[0].blocks[0]
    body = [op.operation for op in block][:-1]
    arguments = block.arguments
    with ir.InsertionPoint.at_block_begin(block), launch.location:
        start = arith.MulIOp(arguments[0], width).result
        thread = arith.AddIOp(start, arguments[3]).result
        active = arith.CmpIOp(arith.CmpIPredicate.ult, thread, count).result
        guard = scf.IfOp(active)
        with ir.InsertionPoint(guard.then_block):
            end = scf.YieldOp([])
    for op in body:
        op.move_before(end.operation)
    _replace_ids(launch, guard.operation, thread, count)


_IDS = ("gpu.thread_id", "gpu.global_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim")


def _replace_ids(
    launch: ir.Operation, guard: ir.Operation, thread: ir.Value, count: ir.Value
) -> None:
    """What the body asks of dimension x is answered as in one block of `count` threads."""
    ids: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in _IDS and str(op.attributes["dimension"]) == "#gpu<dim x>":
            ids.append(op)
        return ir.WalkResult.ADVANCE

    guard.walk(visit, ir.WalkOrder.POST_ORDER)
    for op in ids:
        if op.name in ("gpu.thread_id", "gpu.global_id"):
            answer = thread
            if not thread.owner.operation.location.is_a_name():
                thread.owner.operation.location = op.location  # the index keeps the user's name
        elif op.name == "gpu.block_dim":
            answer = count
        else:
            index = ir.IndexType.get()
            with ir.InsertionPoint(launch), launch.location:
                number = 0 if op.name == "gpu.block_id" else 1
                answer = arith.ConstantOp(index, number).result
        op.results[0].replace_all_uses_with(answer)
        op.erase()

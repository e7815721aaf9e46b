"""avial: tasks in program order; a converge by its rounds; gpu.launch thread after thread."""

from __future__ import annotations

import itertools
import operator

from mlir import ir

from tests.witness.machine import INDEX, Frame, Op, Region, Step, rule
from tests.witness.values import Array, Undefined, Unsupported

_PREDICATES = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
_TASK = object()
"""What `%t = avial.task` and `%cpu = avial.target` are, as values."""


@rule("avial.target")
def _target(op: Op) -> Step:
    return op.pure(lambda: _TASK)


@rule("avial.schedule", "avial.task", "avial.replicate")
def _region(op: Op) -> Step:
    body, outs = op.region(), op.outs

    def step(frame: Frame) -> None:
        body(frame)
        for out in outs:
            frame[out] = _TASK

    return step


@rule("avial.converge")
def _converge(op: Op) -> Step:
    """`max` rounds, or until the watched number compares so; it is looked at after each round.
    Without `max` it holds a loop, which is run once.
    """
    watched, _ = op.segments()
    body, (out,) = op.region(), op.outs
    most = op.number("max") if op.has("max") else 1
    threshold = ir.FloatAttr(op.attribute("threshold")).value if watched else 0.0
    holds = _PREDICATES[op.text("predicate").strip('"')] if watched else operator.lt

    def step(frame: Frame) -> None:
        frame[out] = _TASK
        for _ in range(most):
            body(frame)
            if watched and holds(_only(frame[watched[0]]), threshold):
                return

    return step


def _only(array: Array) -> float:
    (number,) = array.values()
    return float(number)


# -- launches --------------------------------------------------------------------------------------


@rule("gpu.launch")
def _launch(op: Op) -> Step:
    """Threads in any order, so one after another; a barrier would need them together."""
    body = op.region()
    if any(inner.name == "gpu.barrier" for inner in body.operations):
        raise Unsupported("gpu.barrier")
    sizes = [k for group in op.segments()[1:7] for k in group]
    written = op.function.slot(_written(body)) if op.has("avial.bare") else None

    def step(frame: Frame) -> None:
        grid, block = [frame[k] for k in sizes[:3]], [frame[k] for k in sizes[3:]]
        if written is not None:
            block[0] = frame[written].sizes[0] if frame[written].sizes else 1
        for place in itertools.product(*(range(n) for n in (*reversed(grid), *reversed(block)))):
            bz, by, bx, tz, ty, tx = place
            op.function.threads.append(((bx, by, bz), (tx, ty, tz), tuple(grid), tuple(block)))
            body(frame, bx, by, bz, tx, ty, tz, *grid, *block)
            op.function.threads.pop()

    return step


def _written(body: Region) -> ir.Value:
    """The first memref from outside that the body stores into."""
    for op in body.operations:
        for inner in _all(op):
            if inner.name in ("memref.store", "affine.store"):
                target = inner.operands[1]
                if not _within(target, body):
                    return target
    raise Undefined("a launch without sizes that writes nothing")


def _all(op: ir.Operation) -> list[ir.Operation]:
    found = [op]
    for region in op.regions:
        for block in region.blocks:
            for inner in block:
                found += _all(inner.operation)
    return found


def _within(value: ir.Value, body: Region) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return owner == body.block
    return owner.operation.block == body.block


@rule("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "gpu.global_id")
def _thread(op: Op) -> Step:
    threads, (out,) = op.function.threads, op.outs
    axis = "xyz".index(op.text("dimension").rstrip(">").rpartition(" ")[2])

    def step(frame: Frame) -> None:
        block, thread, grid, sizes = (part[axis] for part in threads[-1])
        frame[out] = {
            "gpu.thread_id": thread,
            "gpu.block_id": block,
            "gpu.block_dim": sizes,
            "gpu.grid_dim": grid,
            "gpu.global_id": block * sizes + thread,
        }[op.name] & INDEX.mask

    return step

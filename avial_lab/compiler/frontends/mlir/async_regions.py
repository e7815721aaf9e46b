"""The async dialect in program order: what waits for a token comes later in the text anyway.

Module with async.execute and async.await -> the same without: which copies and kernels may overlap
follows from what they read and write.
"""

from __future__ import annotations

from mlir import ir

from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.core.errors import VerifyError

_GROUPS = ("async.create_group", "async.add_to_group", "async.await_all")


def settle_async(module: ir.Module) -> None:
    """Bodies stand where they are started, and values are there at once.

    before:  %t, %f = async.execute [%u] (%g as %b: !async.value<memref<4xf32>>) -> … { A }
             async.await %t
    after:   A        with what %g stands for in place of %b, what A yields in place of %f

    Raises VerifyError where something else hands on a token or a value.
    """
    order = operations_named(module.operation, "async.execute", "async.await", *_GROUPS)
    there: dict[ir.Value, ir.Value] = {}
    for op in order:
        if op.name == "async.execute":
            _in_place(op, there)
        elif op.name == "async.await" and len(op.results):
            op.results[0].replace_all_uses_with(_known(op, op.operands[0], there))
    for op in reversed(order):
        for result in op.results:
            for use in result.uses:
                raise _handed_on(use.owner.operation)
        op.erase()


def _in_place(execute: ir.Operation, there: dict[ir.Value, ir.Value]) -> None:
    """Its body before it, and of each of its values what it is."""
    tokens, _ = list(ir.DenseI32ArrayAttr(execute.attributes["operandSegmentSizes"]))
    body = execute.regions[0].blocks[0]
    given = list(execute.operands)[tokens:]
    for argument, value in zip(body.arguments, given, strict=True):
        argument.replace_all_uses_with(_known(execute, value, there))
    *ops, end = [view.operation for view in body.operations]
    there.update(zip(list(execute.results)[1:], end.operands, strict=True))
    for op in ops:
        op.move_before(execute)


def _known(op: ir.Operation, value: ir.Value, there: dict[ir.Value, ir.Value]) -> ir.Value:
    if value not in there:
        raise _handed_on(op)
    return there[value]


def _handed_on(op: ir.Operation) -> VerifyError:
    return VerifyError(
        f"{op.name} hands on a token or a value of the async dialect",
        span=span_of(op.location),
        hint="await it where it is made: what reads an array comes after what writes it anyway",
    )

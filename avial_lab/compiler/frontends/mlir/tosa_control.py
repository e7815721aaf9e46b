"""TOSA's branches and loops as those of scf.

Module with tosa.cond_if and tosa.while_loop -> the same with scf.if and scf.while, nested ones too:
MLIR's own tosa-to-scf fails where one stands in another.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import tensor

from avial_lab.compiler.ir.operations import operations_named


def tosa_control_to_scf(module: ir.Operation) -> None:
    """Inner before outer.

    before:  %r = tosa.cond_if %c (%a = %x) : … { tosa.yield %s } else { tosa.yield %a }
    after:   %p = tensor.extract %c[]  %r = scf.if %p { scf.yield %s } else { scf.yield %x }
    """
    for op in operations_named(module, "tosa.cond_if", "tosa.while_loop"):
        with op.context, op.location:
            (_branch if op.name == "tosa.cond_if" else _loop)(op)


def _branch(op: ir.Operation) -> None:
    condition, *inputs = op.operands
    with ir.InsertionPoint(op):
        made = _beside(op, "scf.if", [tensor.extract(condition, [])])
    for region in op.regions:
        block = region.blocks[0]
        for argument, value in zip(block.arguments, inputs, strict=True):
            argument.replace_all_uses_with(value)
        for k in reversed(range(len(inputs))):
            block.erase_argument(k)
    _moved(op, made)


def _loop(op: ir.Operation) -> None:
    made = _beside(op, "scf.while", list(op.operands))
    asks = op.regions[0].blocks[0]
    end = asks.operations[len(asks.operations) - 1].operation
    with ir.InsertionPoint(end), end.location:
        goes_on = tensor.extract(end.operands[0], [])
        ir.Operation.create("scf.condition", [], [goes_on, *asks.arguments])
    end.erase()
    _moved(op, made)


def _beside(op: ir.Operation, name: str, operands: Sequence[ir.Value]) -> ir.Operation:
    types = [result.type for result in op.results]
    return ir.Operation.create(name, types, operands, regions=2, ip=ir.InsertionPoint(op))


def _moved(op: ir.Operation, made: ir.Operation) -> None:
    """The blocks of `op` into `made`, which stands for it from then on."""
    for old, new in zip(op.regions, made.regions, strict=True):
        block = old.blocks[0]
        block.append_to(new)
        end = block.operations[len(block.operations) - 1].operation
        if end.name == "tosa.yield":
            ir.Operation.create(
                "scf.yield", [], list(end.operands), loc=end.location, ip=ir.InsertionPoint(end)
            )
            end.erase()
    for old, new in zip(op.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()

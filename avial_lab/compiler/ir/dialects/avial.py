"""Accessors of avial's operations: operands by name, so that positions are known to this file only.

MLIR's bindings find these classes by themselves once `avial_lab.compiler.ir.dialects.register` has
run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from mlir import ir
from mlir.dialects._ods_common import _cext

SEGMENTS = "operandSegmentSizes"
CAST = "builtin.unrealized_conversion_cast"


def operand_segments(op: ir.Operation) -> list[int]:
    """How many operands each of the operation's groups has."""
    return list(ir.DenseI32ArrayAttr(op.attributes[SEGMENTS]))


def buffer_of(handle: ir.Value) -> ir.Value:
    """The memref behind an operand of type !avial.buffer_ref; a memref is its own."""
    owner = handle.owner
    if isinstance(owner, ir.Block) or owner.operation.name != CAST:
        return handle
    operands = owner.operation.operands
    return operands[0] if len(operands) == 1 else handle


def rebuilt(
    op: ir.Operation, operands: Sequence[ir.Value], changed: Mapping[str, ir.Attribute]
) -> ir.Operation:
    """The same operation over other operands, in its place; the old one is gone."""
    return rebuilt_with(op, operands, {n: op.attributes[n] for n in op.attributes} | dict(changed))


def rebuilt_with(
    op: ir.Operation, operands: Sequence[ir.Value], attributes: Mapping[str, ir.Attribute]
) -> ir.Operation:
    """The same with these attributes and no others."""
    new = ir.Operation.create(
        op.name,
        results=[result.type for result in op.results],
        operands=operands,
        attributes=dict(attributes),
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    for block in list(op.regions[0]):
        block.append_to(new.regions[0])
    for before, after in zip(op.results, new.results, strict=True):
        before.replace_all_uses_with(after)
    op.erase()
    return new


@_cext.register_dialect
class AvialDialect(ir.Dialect):
    DIALECT_NAMESPACE = "avial"


class _RegionOp(ir.OpView):
    """An operation with one region of one block, which omp.terminator ends."""

    _ODS_REGIONS = (1, True)

    @property
    def body(self) -> ir.Block:
        return self.operation.regions[0].blocks[0]

    @property
    def body_ops(self) -> tuple[ir.OpView, ...]:
        """The operations of the body without its terminator."""
        return tuple(self.body)[:-1]

    def _segment(self, index: int) -> list[ir.Value]:
        sizes = operand_segments(self.operation)
        start = sum(sizes[:index])
        return list(self.operation.operands)[start : start + sizes[index]]


@_cext.register_operation(AvialDialect)
class ScheduleOp(_RegionOp):
    """Tasks in program order over `buffers`."""

    OPERATION_NAME = "avial.schedule"

    @property
    def buffers(self) -> list[ir.Value]:
        return [buffer_of(handle) for handle in self.operation.operands]


@_cext.register_operation(AvialDialect)
class TargetOp(ir.OpView):
    """A constraint on the device that runs a task."""

    OPERATION_NAME = "avial.target"
    _ODS_REGIONS = (0, True)

    @property
    def name(self) -> str:
        return ir.StringAttr(self.operation.attributes["name"]).value

    @property
    def arch(self) -> str:
        """`cpu` where the target says nothing."""
        return self._text("arch") or "cpu"

    @property
    def node(self) -> str | None:
        return self._text("node")

    @property
    def rank(self) -> int | None:
        """The one that is to drive the device."""
        attributes = self.operation.attributes
        return ir.IntegerAttr(attributes["rank"]).value if "rank" in attributes else None

    def _text(self, key: str) -> str | None:
        attributes = self.operation.attributes
        return ir.StringAttr(attributes[key]).value if key in attributes else None


class _WorkOp(_RegionOp):
    """What a task and a replicate have in common."""

    @property
    def name(self) -> str:
        return ir.StringAttr(self.operation.attributes["name"]).value

    @property
    def target(self) -> ir.Value:
        return self.operation.operands[0]

    @property
    def target_op(self) -> TargetOp:
        return cast("TargetOp", self.target.owner.opview)

    @property
    def reads(self) -> list[ir.Value]:
        """The buffers whose values matter to it; one it also writes is in `writes` as well."""
        return [buffer_of(handle) for handle in self._segment(1)]

    @property
    def writes(self) -> list[ir.Value]:
        return [buffer_of(handle) for handle in self._segment(2)]

    @property
    def after(self) -> list[ir.Value]:
        """Results of the tasks it was told to wait for."""
        return self._segment(3)

    @property
    def after_names(self) -> tuple[str, ...]:
        return tuple(value.owner.opview.name for value in self.after)

    @property
    def ref(self) -> ir.Value:
        return self.operation.results[0]


@_cext.register_operation(AvialDialect)
class TaskOp(_WorkOp):
    """A piece of work for one device."""

    OPERATION_NAME = "avial.task"


@_cext.register_operation(AvialDialect)
class ReplicateOp(_WorkOp):
    """A task split over all devices of its target."""

    OPERATION_NAME = "avial.replicate"


@_cext.register_operation(AvialDialect)
class ConvergeOp(_RegionOp):
    """Its tasks again and again: `max` times, or until `until` holds."""

    OPERATION_NAME = "avial.converge"

    @property
    def name(self) -> str:
        return ir.StringAttr(self.operation.attributes["name"]).value

    @property
    def max(self) -> int:
        return ir.IntegerAttr(self.operation.attributes["max"]).value

    @property
    def until(self) -> ir.Value | None:
        """The buffer of one element that is compared; None where only the count ends it."""
        values = self._segment(0)
        return values[0] if values else None

    @property
    def predicate(self) -> str | None:
        attributes = self.operation.attributes
        if "predicate" not in attributes:
            return None
        return ir.StringAttr(attributes["predicate"]).value

    @property
    def threshold(self) -> float | None:
        attributes = self.operation.attributes
        return ir.FloatAttr(attributes["threshold"]).value if "threshold" in attributes else None

    @property
    def after(self) -> list[ir.Value]:
        return self._segment(1)

    @property
    def ref(self) -> ir.Value:
        return self.operation.results[0]

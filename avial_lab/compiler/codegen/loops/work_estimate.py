"""How much a nest has to do, as a number that is computed before it runs.

A loop -> operations that count elements touched or computed in it, at the insertion point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.analysis.costs.weights import weight_of
from avial_lab.compiler.codegen.loops.outlined_code import WORK
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.loop_bounds import bounds_of
from avial_lab.compiler.ir.nesting import defined_in
from avial_lab.compiler.ir.operations import LOOPS

UNKNOWN = 16
"""Iterations of a loop whose number only its body knows."""

BLOCKS = "avial.blocks"
"""On a condition: it holds for all iterations of the loop around but the last one, perhaps."""

Number = ir.Value | int
"""What may be known when a program is compiled."""


class _Unknown(Exception):
    """A value is computed from memory inside of the loop."""


@dataclass
class LoopWork:
    """Of the loop `outer`: loops inside count as many iterations as they have where the variables
    around them are in the middle of their ranges. That is right for a triangle, and off by a
    constant factor for a pyramid.

    `is_even` says, once `total` has been called, that all iterations have as much to do.
    """

    outer: ir.Operation
    is_even: bool = True
    _values: dict[ir.Value, ir.Value] = field(default_factory=dict)
    _ranges: dict[ir.Value, tuple[Number, Number]] = field(default_factory=dict)

    def total(self, low: Number, high: Number, step: Number) -> ir.Value:
        """Elements touched or computed by the iterations from `low` to `high`, those of its first
        dimension.
        """
        return self._value(self._loop(self.outer, [(low, high, step)]))

    def _loop(self, loop: ir.Operation, known: list[tuple[Number, ...]] | None = None) -> Number:
        block = loop.regions[0].blocks[0]
        count = len(block.arguments) if loop.name.endswith("parallel") else 1
        work: Number = 1
        for own in range(count):
            try:
                bounds = known[own] if known and own < len(known) else self._bounds(loop, own)
                low, high, step = bounds
                work = self._times(work, self._trips(low, high, step))
                self._ranges[block.arguments[own]] = (low, high)
            except _Unknown:
                self.is_even = False
                work = self._times(work, UNKNOWN)
        return self._times(work, self._block(block))

    def _bounds(self, loop: ir.Operation, own: int) -> tuple[Number, ...]:
        if any(map(self._varies, _bound_operands(loop))):
            self.is_even = False
        return tuple(_folded(bound) for bound in bounds_of(loop, own, self._renamed))

    def _varies(self, value: ir.Value) -> bool:
        """Whether it may be another one in each iteration of the outer loop."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return owner.owner.operation == self.outer or (
                defined_in(self.outer, value) and any(map(self._varies, owner.owner.operands))
            )
        if not defined_in(self.outer, value):
            return False
        op = owner.operation
        return not is_pure(op) or any(map(self._varies, op.operands))

    def _renamed(self, value: ir.Value) -> ir.Value:
        """What stands for `value` before the nest."""
        if value in self._values or not defined_in(self.outer, value):
            return self._values.get(value, value)
        if value in self._ranges:
            self._values[value] = self._value(self._half(*self._ranges[value]))
            return self._values[value]
        if isinstance(value.owner, ir.Block) or not _may_be_tried(value.owner.operation):
            raise _Unknown
        op = value.owner.operation
        operands = [self._renamed(operand) for operand in op.operands]
        copy = op.clone().operation
        for place, operand in enumerate(operands):
            copy.operands[place] = operand
        self._values.update(zip(op.results, copy.results, strict=True))
        return self._values[value]

    def _block(self, block: ir.Block) -> Number:
        total: Number = 0
        for op in (view.operation for view in block.operations):
            total = self._plus(total, self._operation(op))
        return total

    def _operation(self, op: ir.Operation) -> Number:
        if op.name in LOOPS:
            return self._loop(op)
        inner: Number = 0
        regions = list(op.regions)
        for region in regions[:1] if BLOCKS in op.attributes else regions:
            for block in region.blocks:
                inner = self._plus(inner, self._block(block))
        if op.name == "scf.while":
            self.is_even = False
            return self._times(inner, UNKNOWN)
        if WORK in op.attributes:
            return self._call(op)
        return inner if len(op.regions) else _weight(op)

    def _call(self, op: ir.Operation) -> Number:
        """Of a function that says what it does in each of its steps."""
        work, ends = ir.IntegerAttr(op.attributes[WORK]).value, list(op.operands)[:2]
        if any(map(self._varies, ends)):
            self.is_even = False
        try:
            low, high = (_folded(self._renamed(end)) for end in ends)
        except _Unknown:
            self.is_even = False
            return work * UNKNOWN
        return self._times(work, self._trips(low, high, 1))

    # -- arithmetic on what may be known already

    def _value(self, number: Number) -> ir.Value:
        if isinstance(number, int):
            return arith.constant(ir.IndexType.get(), number)
        return number

    def _plus(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if 0 in (a, b):
            return b if a == 0 else a
        return arith.addi(self._value(a), self._value(b))

    def _times(self, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if 1 in (a, b):
            return b if a == 1 else a
        return arith.muli(self._value(a), self._value(b))

    def _trips(self, low: Number, high: Number, step: Number) -> Number:
        if isinstance(low, int) and isinstance(high, int) and isinstance(step, int):
            return max(0, -(-(high - low) // step))
        span = self._value(high)
        if low != 0:
            span = arith.subi(span, self._value(low))
        span = arith.maxsi(span, self._value(0))
        return span if step == 1 else arith.ceildivsi(span, self._value(step))

    def _half(self, low: Number, high: Number) -> Number:
        if isinstance(low, int) and isinstance(high, int):
            return (low + high) // 2
        both = arith.addi(self._value(low), self._value(high))
        return arith.shrsi(both, self._value(1))


def _bound_operands(loop: ir.Operation) -> list[ir.Value]:
    """What its range is computed from; not the values that it starts from and hands on."""
    operands = list(loop.operands)
    if not loop.name.endswith(".for"):
        return operands
    return operands[: len(operands) - len(loop.results)]


def _may_be_tried(op: ir.Operation) -> bool:
    """Whether it has no effect for any operands: one that divides may meet a zero that the loop
    would not.
    """
    divides = op.name.startswith("arith.") and ("div" in op.name or "rem" in op.name)
    return is_pure(op) and (not divides or _is_positive(op.operands[1]))


def _is_positive(value: ir.Value) -> bool:
    """Whether it is one or more, as its operation says."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if op.name == "arith.maxsi":
        return any(map(_is_positive, op.operands))
    known = op.attributes["value"] if op.name == "arith.constant" else None
    return isinstance(known, ir.IntegerAttr) and known.value > 0


def _folded(bound: Number) -> Number:
    """As a number where it is one."""
    if isinstance(bound, int):
        return bound
    owner = bound.owner
    if isinstance(owner, ir.Block):
        return bound
    op = owner.operation
    if op.name == "arith.constant":
        return ir.IntegerAttr(op.attributes["value"]).value
    if op.name in ("affine.max", "affine.min"):
        results = ir.AffineMapAttr(op.attributes["map"]).value.results
        if all(isinstance(each, ir.AffineConstantExpr) for each in results):
            numbers = [each.value for each in results]
            extreme = max(numbers) if op.name == "affine.max" else min(numbers)
            if not any(True for _ in bound.uses):  # it was made for this
                op.erase()
            return extreme
    return bound


def _weight(op: ir.Operation) -> int:
    """Elements that it loads, stores or computes, in additions' time."""
    additions = weight_of(op.name).additions
    if not additions:
        return 0
    values = [*op.results, *list(op.operands)[:1]]
    kind = values[0].type if values else None
    elements = math.prod(kind.shape) if isinstance(kind, ir.VectorType) else 1
    return elements * additions

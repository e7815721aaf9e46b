"""What an iteration does to a value that it hands on: keeps it, or takes another, by a condition.

An old value and a new one -> the steps between them, through arith.select, conditions with values,
and inner loops with iter_args.

    %new = arith.select %c, %x, %old          takes %x where %c is true, else keeps %old
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.views import defining

Use = tuple[ir.Operation, int]
"""An operand: the operation and its number there."""


@dataclass(frozen=True)
class Take:
    """`taken` where `condition` is `truth`, else what it was: `kept`, None for a store."""

    condition: ir.Value
    truth: bool
    kept: ir.Value | None
    taken: ir.Value


@dataclass(frozen=True)
class Guard:
    """One way or the other, whichever `key` says: a condition, an affine.if."""

    key: ir.Value | ir.Operation
    op: ir.Operation
    then: Steps
    otherwise: Steps


@dataclass(frozen=True)
class Inner:
    """What an inner loop does to it, by its iter_args."""

    op: ir.Operation
    steps: Steps


Steps = tuple["Take | Guard | Inner", ...]


def shape(steps: Steps) -> tuple[object, ...]:
    """The steps without the values."""
    found: list[object] = []
    for step in steps:
        if isinstance(step, Take):
            found.append((step.condition, step.truth))
        elif isinstance(step, Guard):
            found.append((step.key, shape(step.then), shape(step.otherwise)))
        else:
            found.append((step.op, shape(step.steps)))
    return tuple(found)


def takes(steps: Steps) -> Iterator[Take]:
    for step in steps:
        if isinstance(step, Take):
            yield step
        elif isinstance(step, Guard):
            yield from takes((*step.then, *step.otherwise))
        else:
            yield from takes(step.steps)


def ways(steps: Steps) -> Iterator[ir.Operation]:
    """The operations that the value goes through from inside to outside."""
    for step in steps:
        if isinstance(step, Guard):
            yield step.op
            yield from ways((*step.then, *step.otherwise))
        elif isinstance(step, Inner):
            yield step.op
            yield from ways(step.steps)


class Trail:
    """Follows a value back to the old one, with the uses it goes through."""

    def __init__(self, old: ir.Value) -> None:
        self.uses: set[Use] = set()
        self._known: dict[ir.Value, Steps | None] = {old: ()}

    def steps(self, value: ir.Value) -> Steps | None:
        """What makes `value` of the old one; None where it is anything else."""
        if value not in self._known:
            op = defining(value)
            self._known[value] = self._through(op, value) if op is not None else None
        return self._known[value]

    def of(self, use: Use) -> Steps | None:
        """The same for an operand, whose use counts."""
        found = self.steps(use[0].operands[use[1]])
        if found is not None:
            self.uses.add(use)
        return found

    def _through(self, op: ir.Operation, value: ir.Value) -> Steps | None:
        if op.name == "arith.select":
            return self._chosen(op, op.operands[0], (op, 1), (op, 2))
        if op.name in ("scf.if", "affine.if"):
            number = ir.OpResult(value).result_number
            first, second = ((_end(region), number) for region in op.regions)
            condition = op.operands[0] if op.name == "scf.if" else None
            return self._chosen(op, condition, first, second)
        if op.name in ("scf.for", "affine.for"):
            return self._looped(op, ir.OpResult(value).result_number)
        return None

    def _chosen(
        self, op: ir.Operation, condition: ir.Value | None, first: Use, second: Use
    ) -> Steps | None:
        then, otherwise = self.of(first), self.of(second)
        if then is not None and otherwise is not None:
            return (Guard(condition or op, op, then, otherwise),)
        kept, before = (first, then) if then is not None else (second, otherwise)
        if before is None or condition is None:
            return None
        taken = second if kept == first else first
        self.uses.add((op, 0))
        values = (use[0].operands[use[1]] for use in (kept, taken))
        return (*before, Take(condition, kept == second, *values))

    def _looped(self, op: ir.Operation, number: int) -> Steps | None:
        body = op.regions[0].blocks[0]
        inner = Trail(body.arguments[number + 1])
        steps = inner.of((_end(op.regions[0]), number))
        if not steps:
            return None
        before = self.of((op, len(op.operands) - len(op.results) + number))
        if before is None:
            return None
        self.uses |= inner.uses
        return (*before, Inner(op, steps))


def _end(region: ir.Region) -> ir.Operation:
    block = region.blocks[0]
    return block.operations[len(block.operations) - 1].operation

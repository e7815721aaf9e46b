"""Loops over rings are cut where a subscript goes round the end: between the cuts nothing does.

Functions of loops -> the same operations in the same order, of which the innermost loops walk
through memory without a remainder, and can be vectors.

Source: M. Griebl, P. Feautrier, C. Lengauer, Index set splitting, IJPP 28 (2000).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.ir.operations import constant_of, operations_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name

NAME = "split-wraparound"
MOST_CUTS = 4
"""Places at which one loop is cut: each makes its body once more."""

LARGEST = 1 << 62
"""Sums of indices below do not overflow."""


@dataclass(frozen=True)
class SplitWraparound:
    """One loop for each stretch in which `(%j + c) mod n` is %j and a constant.

    before:  scf.parallel (%i, %j) = … to (%rows, 10) { … %A[%i, (%j + 9) mod 10] … }
    after:   scf.parallel (%i) = … to (%rows) { scf.for %j = 0 to 1 { … %A[%i, %j + 9] … }
                                                scf.for %j = 1 to 10 { … %A[%i, %j - 1] … } }
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for op in list(operations_in(function)):
                    if op.name in ("scf.parallel", "scf.for"):
                        _split(op)

    def __str__(self) -> str:
        return NAME


@dataclass(frozen=True)
class _Wrap:
    """`(v + plus) mod period`, of the loop's variable v."""

    op: ir.Operation
    plus: int
    period: int

    def cuts(self, low: int, high: int) -> set[int]:
        """Where it begins anew, of low < v < high."""
        first = (low + self.plus) // self.period + 1
        last = (high - 1 + self.plus) // self.period
        if last - first >= MOST_CUTS:
            return set(range(MOST_CUTS + 1))
        return {times * self.period - self.plus for times in range(first, last + 1)}

    def shift(self, low: int) -> int:
        """What to add to v from `low` to the next cut."""
        return self.plus - (low + self.plus) // self.period * self.period


def _split(loop: ir.Operation) -> None:
    """The loop, if it is an innermost one over known numbers and something in it goes round."""
    *body, _ = [view.operation for view in loop.regions[0].blocks[0].operations]
    if len(loop.results) or any(len(op.regions) for op in body):
        return
    *others, variable = loop.regions[0].blocks[0].arguments
    if loop.name == "scf.parallel" and not others:
        return  # it is divided among threads, and has no loop inside to cut
    # Lower bounds of all dimensions, upper bounds, steps.
    ends = [
        constant_of(loop.operands[k * len([*others, variable]) + len(others)]) for k in range(3)
    ]
    low, high, step = ends
    if low is None or high is None or step != 1 or not 0 <= low < high < LARGEST:
        return
    wraps = [wrap for op in body if (wrap := _wrap(op, variable)) is not None]
    cuts = sorted({cut for wrap in wraps for cut in wrap.cuts(low, high)})
    if not cuts or len(cuts) > MOST_CUTS:
        return
    remark = f"loop {loop_name(loop).split(', ')[-1]} is split at {listed(map(str, cuts))}"
    add_remark(loop, NAME, f"{remark}, where subscripts wrap around")
    with loop.location, ir.InsertionPoint(loop):
        known: dict[ir.Value, ir.Value] = {}
        if others:
            end, known = _around(loop)
        else:
            end = loop
        with ir.InsertionPoint(end):
            for first, last in zip([low, *cuts], [*cuts, high], strict=True):
                _write(body, variable, known, {w.op: w.shift(first) for w in wraps}, first, last)
    loop.erase()


def _wrap(op: ir.Operation, variable: ir.Value) -> _Wrap | None:
    """The remainder of the variable and a number that is not negative."""
    if op.name not in ("arith.remui", "arith.remsi"):
        return None
    value, period = op.operands[0], constant_of(op.operands[1])
    plus: int | None = 0
    if value != variable:
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name != "arith.addi":
            return None
        pair = list(owner.operation.operands)
        if variable not in pair:
            return None
        plus = constant_of(pair[1 - pair.index(variable)])
    if plus is None or period is None or not (0 <= plus < LARGEST and 0 < period < LARGEST):
        return None
    return _Wrap(op, plus, period)


def _around(loop: ir.Operation) -> tuple[ir.Operation, dict[ir.Value, ir.Value]]:
    """A parallel loop over all dimensions but the last: its end, and its variables."""
    old = loop.regions[0].blocks[0]
    count = len(old.arguments)
    ends = [list(loop.operands)[k * count : (k + 1) * count - 1] for k in range(3)]
    made = ir.Operation.create(
        "scf.parallel",
        [],
        [value for each in ends for value in each],
        {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([count - 1] * 3 + [0])},
        regions=1,
    )
    kept = list(old.arguments)[:-1]
    block = made.regions[0].blocks.append(
        *(each.type for each in kept), arg_locs=[each.location for each in kept]
    )
    with ir.InsertionPoint(block):
        end = ir.Operation.create("scf.reduce")
    return end, dict(zip(kept, block.arguments, strict=True))


def _write(
    body: Sequence[ir.Operation],
    variable: ir.Value,
    around: Mapping[ir.Value, ir.Value],
    shifts: Mapping[ir.Operation, int],
    first: int,
    last: int,
) -> None:
    """A loop from `first` to `last` of copies of `body`, in which nothing goes round."""
    index = ir.IndexType.get()
    low, high, one = (arith.constant(index, value) for value in (first, last, 1))
    made = scf.ForOp(low, high, one)
    block = made.operation.regions[0].blocks[0]
    block.arguments[0].set_location(variable.location)
    with ir.InsertionPoint(block):
        known = {**around, variable: block.arguments[0]}
        for op in body:
            shift = next((by for wrap, by in shifts.items() if wrap == op), None)
            if shift is not None:
                by = arith.constant(index, shift)
                known[op.results[0]] = arith.addi(block.arguments[0], by)
                continue
            copy = op.clone().operation
            for place, operand in enumerate(op.operands):
                if operand in known:
                    copy.operands[place] = known[operand]
            known.update(zip(op.results, copy.results, strict=True))
        scf.YieldOp([])

"""Loops that compare as unsigned count in index from 0 or as far as an index goes.

Module with scf.for unsigned -> the same iterations by scf.for over index, which compares as signed:
what MLIR and all of ours below make of a loop's bounds is about signed ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import constant_of, operations_named

_INDEX = 64
"""The bits of an index."""


def count_unsigned_in_index(module: ir.Operation) -> None:
    """Narrow counters are widened, which leaves bounds and subscripts as they are; others, whose
    numbers may be too large for an index, start from 0.

    before:  scf.for unsigned %i = %low to %high step %step : i8 { … %i … }
    after:   scf.for %k = %low_index to %high_index step %step_index {
               %i = arith.index_cast %k : index to i8 … }

    before:  scf.for unsigned %i = %low to %high step %step : i64 { … %i … }
    after:   scf.for %k = 0 to (%high - %low + %step - 1) / %step { %i = %low + %k * %step … }
    """
    for loop in operations_named(module, "scf.for"):
        if "unsignedCmp" not in loop.attributes:
            continue
        with loop.context, loop.location:
            kind = loop.operands[0].type
            if isinstance(kind, ir.IntegerType) and kind.width < _INDEX:
                _widened(loop)
            else:
                _from_zero(loop)
        del loop.attributes["unsignedCmp"]


def _widened(loop: ir.Operation) -> None:
    kind = ir.IntegerType(loop.operands[0].type)
    with ir.InsertionPoint(loop):
        counter = _counted_in_index(loop, [_unsigned(loop.operands[k]) for k in range(3)])
    narrow: list[ir.OpOperand] = []
    for use in list(counter.uses):
        user = use.owner.operation
        if user.name == "arith.index_castui":  # the index has all of its bits
            _replaced(user, counter)
        elif user.name == "arith.extui":
            with ir.InsertionPoint(user), user.location:
                _replaced(user, arith.index_cast(user.results[0].type, counter))
        else:
            narrow.append(use)
    if narrow:
        with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), counter.location:
            # Not by one cast: MLIR takes index -> i8 -> index as no change (llvm#90296).
            wide = arith.index_cast(ir.IntegerType.get_signless(_INDEX), counter)
            _put(narrow, arith.trunci(kind, wide))


def _unsigned(bound: ir.Value) -> ir.Value:
    known, index = constant_of(bound), ir.IndexType.get()
    if known is None:
        return arith.index_castui(index, bound)
    return arith.constant(index, known % (1 << ir.IntegerType(bound.type).width))


def _from_zero(loop: ir.Operation) -> None:
    """How often it runs is less than 2^63, or it never ends."""
    low, high, step = list(loop.operands)[:3]
    kind, index = low.type, ir.IndexType.get()
    with ir.InsertionPoint(loop):
        one = arith.constant(kind, 1)
        last = arith.divui(arith.subi(arith.subi(high, low), one), step)  # of at least one
        runs = arith.cmpi(arith.CmpIPredicate.ult, low, high)
        count = arith.select(runs, arith.addi(last, one), arith.constant(kind, 0))
        ends = [arith.constant(index, 0), _as(index, count), arith.constant(index, 1)]
        counter = _counted_in_index(loop, ends)
    uses = list(counter.uses)
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), counter.location:
        _put(uses, arith.addi(low, arith.muli(_as(kind, counter), step)))


def _as(kind: ir.Type, value: ir.Value) -> ir.Value:
    return value if value.type == kind else arith.index_cast(kind, value)


def _counted_in_index(loop: ir.Operation, bounds: Sequence[ir.Value]) -> ir.Value:
    counter = loop.regions[0].blocks[0].arguments[0]
    for k, bound in enumerate(bounds):
        loop.operands[k] = bound
    counter.set_type(ir.IndexType.get())
    return counter


def _replaced(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()


def _put(uses: Sequence[ir.OpOperand], value: ir.Value) -> None:
    for use in uses:
        use.owner.operation.operands[use.operand_number] = value

"""Work that all iterations of the loops around would do alike, done once before them.

What is written at the insertion point -> the same before the outermost loop that changes nothing of
what it needs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from mlir import ir

from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.codegen.loops.index_arithmetic import every, less, when
from avial_lab.compiler.ir.effects import LOADS, is_pure
from avial_lab.compiler.ir.loop_bounds import bounds_of, operands_of_ends
from avial_lab.compiler.ir.nesting import FORS, defined_in, end_of, parent_of
from avial_lab.compiler.ir.operations import constant_of, operations_in
from avial_lab.compiler.ir.views import VIEWS, defining, is_memref, may_be

READ_ONLY = (*LOADS, *VIEWS, "memref.dim", "memref.prefetch")
"""What takes an array and leaves it as it is."""


class Ahead:
    """What is written from here on to the block of the insertion point, the body of a loop:
    allocations, and loops that fill them.
    """

    def __init__(self) -> None:
        self._block = ir.InsertionPoint.current.block
        self._before = {view.operation for view in self._block.operations}

    @property
    def written(self) -> list[ir.Operation]:
        ops = (view.operation for view in self._block.operations)
        return [op for op in ops if op not in self._before]

    def move(self) -> ir.Operation | None:
        """The outermost loop that it stands before now, with the numbers that it needs; None where
        it may not stand before any.

        Its own loops run where those do that it was moved out of, so that nothing is read that the
        program would not have read.
        """
        written = self.written
        own = dict.fromkeys(inner for op in written for inner in (op, *operations_in(op)))
        read = {memory for op in own for value in op.operands for memory in memory_of(value)}
        left: list[ir.Operation] = []
        needs: list[ir.Operation] = []
        loop: ir.Operation | None = self._block.owner.operation
        while loop is not None and loop.name in FORS:
            ends = [end for each in left if not _runs(each) for end in operands_of_ends(each)]
            found = _needs(loop, [*(v for op in own for v in op.operands), *ends], own)
            if found is None or read & written_in(loop, but=own):
                break
            left.append(loop)
            needs, loop = found, parent_of(loop)
        if not left:
            return None
        for op in needs:
            op.move_before(left[-1])
        _place(written, left)
        return left[-1]

    def erase(self) -> None:
        for op in reversed(self.written):
            op.erase()


Memory = ir.Value | ir.Attribute
"""What a memref is a view of; of a global its symbol, which several operations may get."""


def written_in(around: ir.Operation, *, but: Collection[ir.Operation] = ()) -> set[Memory]:
    """The memory of all arrays of which not everything in it that takes them only reads."""
    return {
        memory
        for op in operations_in(around)
        if op.name not in READ_ONLY and op not in but
        for value in op.operands
        for memory in memory_of(value)
    }


def memory_of(value: ir.Value) -> Iterator[Memory]:
    """All memory that a memref may be of; none of another value."""
    for root in may_be(value) if is_memref(value) else ():
        op = defining(root)
        is_global = op is not None and op.name == "memref.get_global"
        yield op.attributes["name"] if op is not None and is_global else root


def _runs(loop: ir.Operation) -> bool:
    """Whether it is known to have an iteration."""
    if loop.name != "affine.for":
        return False
    lows, highs = known_ends(loop)
    ends = [end for end in (*lows, *highs) if end is not None]
    return len(ends) == len(lows) + len(highs) and max(ends[: len(lows)]) < min(ends[len(lows) :])


def _needs(
    loop: ir.Operation, values: Iterable[ir.Value], own: Collection[ir.Operation]
) -> list[ir.Operation] | None:
    """The operations of the loop that compute these values, and may do so before it, in an order
    for that; None where there are others. What `own` ones compute is none of them.
    """
    found: dict[ir.Operation, None] = {}

    def take(value: ir.Value) -> bool:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return owner.owner.operation in own or not defined_in(loop, value)
        op = owner.operation
        if op in own or op in found or not defined_in(loop, value):
            return True
        if not _is_harmless(op) or not all(map(take, op.operands)):
            return False
        found[op] = None
        return True

    return list(found) if all(map(take, values)) else None


def _is_harmless(op: ir.Operation) -> bool:
    """Whether it may be computed where the program does not: a division by zero ends it."""
    if not is_pure(op) or len(op.regions):
        return False
    if "map" in op.attributes:
        return re.search(r"(div|mod) s", str(op.attributes["map"])) is None
    if not any(word in op.name for word in ("div", "rem")) or op.name.endswith("f"):
        return True
    return _is_positive(op.operands[1])


def _is_positive(value: ir.Value) -> bool:
    known = constant_of(value)
    if known is not None:
        return known > 0
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    return op is not None and op.name == "arith.maxsi" and any(map(_is_positive, op.operands))


def _place(written: list[ir.Operation], left: list[ir.Operation]) -> None:
    """Put it before the last of the loops that it has left."""
    with left[-1].location, ir.InsertionPoint(left[-1]):
        runs = [less(*bounds_of(each, 0)[:2]) for each in left if not _runs(each)]
        for op in written:
            if not runs or op.name not in FORS:
                op.move_before(left[-1])
                continue
            with when(every(*runs)):
                where = ir.InsertionPoint.current.block.owner.operation
            op.move_before(end_of(where))

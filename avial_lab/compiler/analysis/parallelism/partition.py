"""What of a function runs on all ranks at once, what on one, and what runs around it on each.

A function of loops -> a tree of nodes: nests whose iterations are split, loops and conditions that
every rank goes through around those, nests that run on one rank, and the single operations between,
each with the reason why it is not more.

    for t                               Around          t: A[i] is written by the iteration before
      for i: B[i] = A[i-1] + A[i+1]       Split i       part k runs its own i; B[i] is its element
      for i: A[i] = B[i]                  Split i
    for i: x[i] = x[i-1]                Sequential      x[i - 1] is written by the iteration before
    y[0] = 1                            Scalar          every rank runs it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import tee

from mlir import ir

from avial_lab.compiler.analysis.parallelism.splits import (
    LoopNest,
    Refusal,
    Split,
    Splitter,
    holds_loops,
)
from avial_lab.compiler.analysis.polyhedral.operations import LOOPS
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import ArrayKind, Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.trip_counts import trip_count
from avial_lab.compiler.ir.attributes import DIVIDED, WHERE_IT_LIES
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.nesting import body_of, parent_of
from avial_lab.compiler.ir.operations import operations_in


@dataclass(frozen=True)
class Around:
    """A loop or condition that every rank goes through, with work inside.

    `children` in textual order, all regions of `op` one after the other; `reasons`: why a loop is
    not split itself.
    """

    op: ir.Operation
    children: tuple[Node, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Sequential:
    """It runs on one rank."""

    op: ir.Operation
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Scalar:
    """Operations one after the other that every rank runs: arithmetic, single elements."""

    ops: tuple[ir.Operation, ...]


Node = Split | Around | Sequential | Scalar

_WHERE = "each turn runs where most of what it reads lies"

SOME = 4
"""Fewer iterations than this (a window of a stencil) are not split at each turn of a loop."""

MUCH = 1 << 16
"""So many terms make it worth while to sum up a nest without inner loops at each turn of a loop
around it; what is not known beforehand is taken for less.
"""


def partition(function: ir.Operation | ir.OpView) -> tuple[Node, ...]:
    """The nodes of the function's body in textual order, its terminator left out.

    Loops whose values are handed from iteration to iteration (iter_args) are not split by
    themselves, also where those accumulate: a pass makes memory of such values first.
    """
    op = function.operation
    if any(len(region.blocks) != 1 for region in op.regions):
        return (Sequential(op, (f"{op.name} branches between blocks",)),)
    return _Partition(read_scop(op)).block(op.regions[0].blocks[0])


def unsplit(function: ir.Operation) -> Iterator[tuple[LoopNest, Splitter]]:
    """The nests that are not split, outer before inner, each with what knows why."""
    global _last
    key = _Key.of(function)
    if _last is None or _last.key != key:
        _last = _Looked(key, tee(_Partition(read_scop(function)).unsplit(function), 1)[0])
    return copy(_last.nests)


@dataclass(frozen=True)
class _Key:
    """Of a function: equal as long as nothing in it has changed. Its text tells of attributes and
    operands, its operations of one that was put in another's place.
    """

    operations: tuple[ir.Operation, ...]
    text: str

    @staticmethod
    def of(function: ir.Operation) -> _Key:
        return _Key(
            (function, *operations_in(function)), str(function.get_asm(assume_verified=True))
        )


@dataclass(frozen=True)
class _Looked:
    """What `unsplit` has found last: passes that ask one after the other seldom change anything."""

    key: _Key
    nests: Iterator[tuple[LoopNest, Splitter]]


_last: _Looked | None = None


def summed(op: ir.Operation, nest: ir.Operation) -> Split | Refusal:
    """The nest in `op`, divided by its outermost loop, with sums that parts combine."""
    return _Partition(read_scop(op)).summed(nest)


class _Partition:
    def __init__(self, scop: Scop) -> None:
        self._splitter = Splitter(scop)
        self._by_loop: dict[Loop, list[Statement]] = {}
        self._loops: dict[ir.Operation, list[Loop]] = {}
        self._opaque: dict[ir.Operation, Statement] = {}
        for loop in scop.loops:
            self._loops.setdefault(loop.op, []).append(loop)
        for statement in scop.statements:
            for loop in statement.loops:
                self._by_loop.setdefault(loop, []).append(statement)
            if any(access.array.kind is ArrayKind.EFFECT for access in statement.accesses):
                self._opaque[statement.op] = statement

    def unsplit(self, op: ir.Operation) -> Iterator[tuple[LoopNest, Splitter]]:
        for region in op.regions:
            for body in region.blocks:
                for node in self.block(body):
                    if isinstance(node, Around | Sequential):
                        if node.op in self._loops:
                            yield self._nest(node.op), self._splitter
                        yield from self.unsplit(node.op)

    def summed(self, op: ir.Operation) -> Split | Refusal:
        return self._splitter.reduced(self._nest(op))

    def _nest(self, op: ir.Operation) -> LoopNest:
        """The nest whose outermost loop is `op`."""
        loops = tuple(self._loops[op])
        return LoopNest(op, loops, tuple(self._by_loop.get(loops[0], ())))

    def block(self, body: ir.Block) -> tuple[Node, ...]:
        found: list[Node] = []
        straight: list[ir.Operation] = []
        for view in list(body.operations):
            op = view.operation
            node = self._node(op)
            if node is None:
                if not _ends_block(op):
                    straight.append(op)
                continue
            if straight:
                found.append(Scalar(tuple(straight)))
                straight = []
            found.append(node)
        return (*found, Scalar(tuple(straight))) if straight else tuple(found)

    def _node(self, op: ir.Operation) -> Node | None:
        """What `op` is; None for a single operation that every rank can run."""
        if op in self._loops:
            return self._loop(op)
        if op in self._opaque or op.name in _BULK or op.name.startswith("linalg."):
            return Sequential(op, self._why(op))
        if not len(op.regions):
            return None
        if any(inner in self._opaque for inner in _operations_in(op)):
            return self._around(op, ()) or Sequential(op, self._why(op))
        if not holds_loops(op):
            return None
        return self._around(op, ()) or Sequential(op, self._why(op))

    def _loop(self, op: ir.Operation) -> Node | None:
        nest = self._nest(op)
        if not nest.statements:
            return None
        if WHERE_IT_LIES in op.attributes:
            return Sequential(op, (_WHERE,))
        if any(WHERE_IT_LIES in inner.attributes for inner in body_of(op)):
            return Around(op, self.block(op.regions[0].blocks[0]), (_WHERE,))
        found = self._splitter.split(nest)
        if isinstance(found, Split):
            return found
        return self._around(op, found.reasons) or Sequential(op, found.reasons)

    def _around(self, op: ir.Operation, reasons: tuple[str, ...]) -> Around | None:
        """`op` as control that every rank goes through, where that leaves something to split."""
        if any(len(region.blocks) > 1 for region in op.regions):
            return None
        nodes = [
            node for region in op.regions for body in region.blocks for node in self.block(body)
        ]
        if not _repeats(op):
            worth = any(isinstance(node, Split | Around) for node in nodes)
            return Around(op, tuple(nodes), reasons) if worth else None
        children = tuple(map(_if_it_pays, nodes))
        worth = _worth_while(children) or _launches_among_others(children)
        return Around(op, children, reasons) if worth else None

    def _why(self, op: ir.Operation) -> tuple[str, ...]:
        for inner in (op, *_operations_in(op)):
            if inner in self._opaque:
                line = span_of(inner.location)
                where = f": line {line.line}" if line is not None else ""
                return (f"the effects of {inner.name} are not known{where}",)
        return (f"{op.name} is not a loop that can be divided",)


def _repeats(op: ir.Operation | None) -> bool:
    """Whether what stands in it may run more than once."""
    return op is not None and (op.name in LOOPS or _repeats(parent_of(op)))


def _worth_while(children: Sequence[Node]) -> bool:
    """Whether what is split in there pays for the ranks meeting at it, at each turn around.

    It does not where as much stays in order: nests of as many loops, on one rank (Amdahl's law).
    """
    split = max((_depth(node) for node in children if isinstance(node, Split | Around)), default=0)
    in_order = (_depth(node) for node in children if isinstance(node, Sequential))
    return split > max(in_order, default=0)


def _launches_among_others(children: Sequence[Node]) -> bool:
    """Whether kernels that the text launches stand beside what no GPU does: each by itself, they
    run there all the same. (A loop of nothing but launches goes to the device as a whole.)
    """
    kinds = {"launches": False, "others": False}
    for node in children:
        if isinstance(node, Around):
            kinds["launches"] |= any(op.name == _LAUNCH for op in _operations_in(node.op))
        else:
            ops = (node.op,) if isinstance(node, Sequential | Split) else node.ops
            for op in ops:
                kinds["launches" if op.name == _LAUNCH else "others"] |= not is_pure(op)
    return all(kinds.values())


_LAUNCH = "gpu.launch"


def _if_it_pays(node: Node) -> Node:
    """A nest that is split at each turn of a loop around, or in order where it has too little."""
    if not isinstance(node, Split):
        return node
    count = trip_count(node.loops[0])
    if node.thin and node.reductions:
        if count is not None and count >= MUCH:
            return node
        return Sequential(node.op, ("each time, too few terms are summed to divide them",))
    if count is None or count >= SOME or DIVIDED in node.loops[0].op.attributes:
        return node
    return Sequential(node.op, (f"{count} iterations are too few to divide them each time",))


def _depth(node: Node) -> int:
    """How many loops are inside each other there."""
    return 0 if isinstance(node, Scalar) else _loop_depth(node.op)


def _loop_depth(op: ir.Operation) -> int:
    inside = (
        _loop_depth(view.operation)
        for region in op.regions
        for body in region.blocks
        for view in body.operations
    )
    return max(inside, default=0) + (op.name in LOOPS)


_BULK = {
    "memref.copy", "memref.atomic_rmw", "memref.generic_atomic_rmw",
    "vector.load", "vector.store", "affine.vector_load", "affine.vector_store",
}  # fmt: skip
"""More than a load or store of one element: between loops they are tasks."""

_ENDS = {"func.return", "affine.yield", "scf.yield", "scf.condition", "scf.reduce"}


def _ends_block(op: ir.Operation) -> bool:
    return op.name in _ENDS and not any(True for region in op.regions for _ in region.blocks)


def _operations_in(op: ir.Operation) -> Iterable[ir.Operation]:
    for region in op.regions:
        for body in region.blocks:
            for view in body.operations:
                yield view.operation
                yield from _operations_in(view.operation)

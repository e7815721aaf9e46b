"""Which parts of a loop's body may run in loops of their own, one loop after the other.

A nest that cannot be split as it is -> groups of the operations of its body, in an order that keeps
every dependence, such that a loop around one of them alone can be split.

    for i                            for i: A[i] = B[i] + 1       split
      A[i] = B[i] + 1         ->
      C[i] = C[i - 1] + A[i]         for i: C[i] = C[i - 1] + A[i]

Operations that depend on each other around the loop stay together: the strongly connected
components of the dependences that the loop carries or that lie inside one iteration.

Source: K. Kennedy, K. McKinley, Loop distribution with arbitrary control flow, Supercomputing 1990;
J. R. Allen, K. Kennedy, Automatic translation of Fortran programs to vector form, TOPLAS 9 (1987).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.parallelism.splits import LoopNest, Split, Splitter
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.ir.effects import LOADS
from avial_lab.compiler.ir.nesting import body_of, parent_of
from avial_lab.compiler.ir.views import VIEWS, defining

Group = tuple[ir.Operation, ...]
"""Operations of the body, in its order; what only computes belongs to every group that uses it."""


def distribution(nest: LoopNest, splitter: Splitter) -> tuple[Group, ...]:
    """The groups; none where that leaves nothing to split that is worth a loop of its own."""
    if nest.op.name not in ("affine.for", "scf.for") or len(nest.op.results):
        return ()
    body = _Body(nest)
    components = body.components()
    if len(components) < 2:
        return ()
    pieces = _joined([body.piece(component, splitter) for component in components], splitter)
    rest = max((piece.depth for piece in pieces if not piece.splits), default=0)
    if len(pieces) < 2 or not any(piece.splits and piece.depth >= rest for piece in pieces):
        return ()
    return tuple(tuple(body.items[k] for k in piece.items) for piece in pieces)


def recomputable(op: ir.Operation, nest: LoopNest) -> bool:
    """Whether every group may run it for itself: it computes, or reads what nobody there writes."""
    if len(op.regions) or not len(op.results):
        return False
    if op.name.partition(".")[0] in ("arith", "math", "index") or op.name in _COMPUTING:
        return True
    if op.name not in LOADS:
        return False
    written = {a.array for s in nest.statements for a in s.accesses if a.writes}
    mine = [a.array for s in nest.statements if s.op == op for a in s.accesses]
    return bool(mine) and written.isdisjoint(mine)


_COMPUTING = VIEWS | {
    "affine.apply", "affine.min", "affine.max", "memref.dim", "memref.get_global",
}  # fmt: skip


@dataclass(frozen=True)
class _Piece:
    """A group by the numbers of its items. `splits`: a loop around it alone can be split."""

    nest: LoopNest
    items: tuple[int, ...]
    splits: bool

    @property
    def depth(self) -> int:
        return max((len(s.loops) for s in self.nest.statements), default=0)

    def with_(self, other: _Piece, splitter: Splitter) -> _Piece:
        items = tuple(sorted((*self.items, *other.items)))
        names = {s.name for piece in (self, other) for s in piece.nest.statements}
        return _piece(self.nest.op, items, names, splitter)


def _piece(op: ir.Operation, items: tuple[int, ...], names: set[str], splitter: Splitter) -> _Piece:
    loops = splitter.scop.loops_of(op)
    nest = LoopNest(op, loops, tuple(s for s in splitter.scop.statements if s.name in names))
    found = splitter.split(nest) if nest.statements else None
    # Nobody has looked whether a group's temporaries are read by the groups behind.
    return _Piece(nest, items, isinstance(found, Split) and not found.private)


def _joined(pieces: Sequence[_Piece], splitter: Splitter) -> list[_Piece]:
    """Neighbours that are alike in one loop: as few loops as leave as much to split."""
    found = [pieces[0]]
    for piece in pieces[1:]:
        if piece.splits == found[-1].splits:
            both = found[-1].with_(piece, splitter)
            if both.splits == piece.splits:
                found[-1] = both
                continue
        found.append(piece)
    return found


class _Body:
    """The operations of a loop's body that are more than arithmetic, as numbered items."""

    def __init__(self, nest: LoopNest) -> None:
        self.nest = nest
        self.items = [op for op in body_of(nest.op) if not recomputable(op, nest)]
        self._number = {op: k for k, op in enumerate(self.items)}
        self._item_of = {
            s.name: self._number[top]
            for s in nest.statements
            if (top := self._top(s.op)) in self._number
        }

    def components(self) -> list[tuple[int, ...]]:
        """The strongly connected components, each after those it depends on, ties in textual
        order.
        """
        after = _closure(self._edges(), len(self.items))
        left = list(range(len(self.items)))
        found: list[tuple[int, ...]] = []
        while left:
            first = next(
                k for k in left if all(after[k] >> m & 1 for m in left if after[m] >> k & 1)
            )
            found.append(tuple(m for m in left if m == first or after[m] >> first & 1))
            left = [m for m in left if m not in found[-1]]
        return found

    def piece(self, component: tuple[int, ...], splitter: Splitter) -> _Piece:
        names = {name for name, item in self._item_of.items() if item in component}
        return _piece(self.nest.op, component, names, splitter)

    def _edges(self) -> Iterator[tuple[int, int]]:
        own = self.nest.loops[0]
        for found in dependences(self.nest.statements):
            if found.carrier in (None, own):
                ends = [self._item_of.get(s.name) for s in (found.source, found.target)]
                if ends[0] is not None and ends[1] is not None:
                    yield ends[0], ends[1]
        for number, op in enumerate(self.items):
            for other in self._needed(op):
                # A value goes from one to the other: they cannot be apart.
                yield number, other
                yield other, number

    def _needed(self, op: ir.Operation) -> Iterator[int]:
        """The items whose results `op` uses, directly or through arithmetic."""
        seen: set[ir.Operation] = set()
        pending = list(_operands_in(op))
        while pending:
            source = defining(pending.pop())
            if source is None or source in seen or parent_of(source) != self.nest.op:
                continue
            seen.add(source)
            if source in self._number:
                yield self._number[source]
            else:
                pending.extend(source.operands)

    def _top(self, op: ir.Operation) -> ir.Operation:
        """The operation of the body that `op` stands in."""
        above = parent_of(op)
        while above is not None and above != self.nest.op:
            op, above = above, parent_of(above)
        return op


def _operands_in(op: ir.Operation) -> Iterator[ir.Value]:
    yield from op.operands
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _operands_in(inner.operation)


def _closure(edges: Iterable[tuple[int, int]], count: int) -> list[int]:
    """For each node the bits of those that can be reached from it."""
    after = [0] * count
    for source, target in edges:
        after[source] |= 1 << target
    for middle in range(count):
        for k in range(count):
            if after[k] >> middle & 1:
                after[k] |= after[middle]
    return after

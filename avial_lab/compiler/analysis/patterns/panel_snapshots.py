"""Snapshots of what an update reads of a panel, taken before later steps overwrite it.

Update, its instances -> Update with Snapshots: which values, of which terms and rows or columns,
and at what time of the panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.patterns.contractions import Contraction, statements_behind
from avial_lab.compiler.analysis.polyhedral.dependences import DependenceKind
from avial_lab.compiler.analysis.polyhedral.instances import Edge, UnitInstances, first_of, times_of
from avial_lab.compiler.analysis.polyhedral.ranges import Range


@dataclass(frozen=True)
class Snapshot:
    """Left or right `values` of an update, as they are at a time of the panel: `points` are pairs
    of a term and a row or column (`other`, the place of that loop), each just before the first
    iteration of the update that reads it would have run.
    """

    name: str
    values: tuple[ir.Value, ...]
    other: int
    extent: Range
    points: isl.Set
    times: isl.Map


@dataclass(frozen=True)
class Update:
    """What a block of steps does to elements that none of its steps reads; only of blocks whose
    `firsts` step lies there, where that is not all of them.
    """

    contraction: Contraction
    firsts: Range | None
    snapshots: tuple[Snapshot, ...] = ()


def is_read_before(edge: Edge, candidate: Contraction) -> bool:
    """Whether a left or right value of the candidate is read before it changes."""
    return (
        edge.kind is DependenceKind.ANTI
        and edge.source == candidate.unit.name
        and edge.reader in statements_behind((*candidate.left, *candidate.right), candidate)
    )


class SnapshotFinder:
    """Finds when the panel has what an update reads."""

    def __init__(
        self, known: Sequence[Edge], parts: Sequence[UnitInstances], inside: Mapping[str, isl.Set]
    ) -> None:
        self.known, self.inside = known, inside
        self.times = times_of([replace(part, points=inside[part.unit.name]) for part in parts])
        self.count = 0

    def update(self, update: Update, piece: isl.Set) -> Update | None:
        """The piece with what needs a snapshot for it; None where no time is right for all."""
        candidate = update.contraction
        roles, space = candidate.roles, candidate.space
        snapshots: list[Snapshot] = []
        for values, other, extent in (
            (candidate.left, roles.row, space.rows),
            (candidate.right, roles.column, space.columns),
        ):
            readers = statements_behind(values, candidate)
            if not self._changes(candidate, piece, readers):
                continue
            snapshot = self._snapshot(candidate, piece, values, other, extent)
            if not self._is_there(candidate, piece, readers, snapshot):
                return None
            snapshots.append(snapshot)
        return replace(update, snapshots=tuple(snapshots))

    def _changes(self, candidate: Contraction, piece: isl.Set, readers: frozenset[str]) -> bool:
        """Whether something of the block writes what the piece has read."""
        return any(
            not edge.relation.intersect_domain(piece)
            .intersect_range(self.inside[edge.target])
            .is_empty()
            for edge in self.known
            if edge.kind is DependenceKind.ANTI
            and edge.source == candidate.unit.name
            and edge.reader in readers
        )

    def _snapshot(
        self,
        candidate: Contraction,
        piece: isl.Set,
        values: tuple[ir.Value, ...],
        other: int,
        extent: Range,
    ) -> Snapshot:
        self.count += 1
        name = f"snapshot{self.count}"
        first = first_of(_used(candidate, other, name).intersect_domain(piece).reverse())
        times = first.apply_range(self.times[candidate.unit.name])
        return Snapshot(name, values, other, extent, first.domain(), times)

    def _is_there(
        self, candidate: Contraction, piece: isl.Set, readers: frozenset[str], snapshot: Snapshot
    ) -> bool:
        """Whether everything that the piece reads is written when the snapshot is taken."""
        taken = (
            _used(candidate, snapshot.other, snapshot.name)
            .intersect_domain(piece)
            .apply_range(snapshot.times)
        )
        for edge in self.known:
            if (
                edge.kind is not DependenceKind.FLOW
                or edge.target != candidate.unit.name
                or edge.reader not in readers
            ):
                continue
            late = taken.lex_le_map(self.times[edge.source]).intersect(edge.relation.reverse())
            if not late.is_empty():
                return False
        return True


def _used(candidate: Contraction, other: int, name: str) -> isl.Map:
    """From each instance to the term and the row or column of the value that it uses."""
    dims = ", ".join(f"x{k}" for k in range(len(candidate.unit.loops)))
    return isl.Map(
        f"{{ {candidate.unit.name}[{dims}] -> {name}[x{candidate.roles.term}, x{other}] }}"
    )

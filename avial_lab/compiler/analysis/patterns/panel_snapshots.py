"""What an update reads of a panel that later steps change: saved when it is as it has to be.

Update, its instances -> Update with Saves: which values, of which terms and rows or columns, and at
what time of the panel.
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
class Save:
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
    saves: tuple[Save, ...] = ()


def is_read_before(edge: Edge, draft: Contraction) -> bool:
    """Whether a left or right value of the draft is read before it changes."""
    return (
        edge.kind is DependenceKind.ANTI
        and edge.source == draft.unit.name
        and edge.reader in statements_behind((*draft.left, *draft.right), draft)
    )


class Saver:
    """Finds when the panel has what an update reads."""

    def __init__(
        self, known: Sequence[Edge], parts: Sequence[UnitInstances], inside: Mapping[str, isl.Set]
    ) -> None:
        self.known, self.inside = known, inside
        self.times = times_of([replace(part, points=inside[part.unit.name]) for part in parts])
        self.count = 0

    def update(self, update: Update, piece: isl.Set) -> Update | None:
        """The piece with what has to be saved for it; None where no time is right for all."""
        draft = update.contraction
        roles, space = draft.roles, draft.space
        saves: list[Save] = []
        for values, other, extent in (
            (draft.left, roles.row, space.rows),
            (draft.right, roles.column, space.columns),
        ):
            readers = statements_behind(values, draft)
            if not self._changes(draft, piece, readers):
                continue
            save = self._save(draft, piece, values, other, extent)
            if not self._is_there(draft, piece, readers, save):
                return None
            saves.append(save)
        return replace(update, saves=tuple(saves))

    def _changes(self, draft: Contraction, piece: isl.Set, readers: frozenset[str]) -> bool:
        """Whether something of the block writes what the piece has read."""
        return any(
            not edge.relation.intersect_domain(piece)
            .intersect_range(self.inside[edge.target])
            .is_empty()
            for edge in self.known
            if edge.kind is DependenceKind.ANTI
            and edge.source == draft.unit.name
            and edge.reader in readers
        )

    def _save(
        self,
        draft: Contraction,
        piece: isl.Set,
        values: tuple[ir.Value, ...],
        other: int,
        extent: Range,
    ) -> Save:
        self.count += 1
        name = f"save{self.count}"
        first = first_of(_used(draft, other, name).intersect_domain(piece).reverse())
        times = first.apply_range(self.times[draft.unit.name])
        return Save(name, values, other, extent, first.domain(), times)

    def _is_there(
        self, draft: Contraction, piece: isl.Set, readers: frozenset[str], save: Save
    ) -> bool:
        """Whether everything that the piece reads is written when it is saved."""
        saved = _used(draft, save.other, save.name).intersect_domain(piece).apply_range(save.times)
        for edge in self.known:
            if (
                edge.kind is not DependenceKind.FLOW
                or edge.target != draft.unit.name
                or edge.reader not in readers
            ):
                continue
            late = saved.lex_le_map(self.times[edge.source]).intersect(edge.relation.reverse())
            if not late.is_empty():
                return False
        return True


def _used(draft: Contraction, other: int, name: str) -> isl.Map:
    """From each instance to the term and the row or column of the value that it uses."""
    dims = ", ".join(f"x{k}" for k in range(len(draft.unit.loops)))
    return isl.Map(f"{{ {draft.unit.name}[{dims}] -> {name}[x{draft.roles.term}, x{other}] }}")

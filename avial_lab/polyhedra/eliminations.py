"""Eliminations: what a step computes is used by all later ones, as in factorisations.

Scop, Units -> Elimination: blocks of steps, in each what its own steps need, then contractions.

    for i, j < i, k < j:  A[i, j] -= A[i, k] * A[k, j]      steps k            ┌───┬───────────┐
    for i, j < i:         A[i, j] /= A[j, j]                steps j            │   panel       │
    for i, j ≥ i, k < i:  A[i, j] -= A[i, k] * A[k, j]      steps k            │   ┌───────────┤
                                                                               │   │ update    │
    A block of steps needs its own rows and columns only (the panel); what it  │   │           │
    does to all others (the update) reads the panel and nothing of itself.     └───┴───────────┘

    for k, i, j:  D[i, j] = min(D[i, j], D[i, k] + D[k, j])     shortest paths: later steps change
                                                                the panel, so what each step reads
                                                                of it is saved for the update

Source: J. Dongarra, F. Gustavson, A. Karp, Implementing linear algebra algorithms for dense
matrices on a vector pipeline machine, SIAM Review 26 (1984); blocks as in LAPACK's right-looking
factorisations. Here they follow from the dependences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl
from mlir import ir

from avial_lab.polyhedra.affine import Affine
from avial_lab.polyhedra.contractions import (
    Contraction,
    drafts_of,
    one_element_each,
    space_of,
    statements_behind,
)
from avial_lab.polyhedra.dependences import Dependence, DependenceKind, dependences
from avial_lab.polyhedra.extremes import first_of
from avial_lab.polyhedra.model import Scop
from avial_lab.polyhedra.ranges import Range, range_of
from avial_lab.polyhedra.units import Unit

IN, OUT, SET, PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set, isl.dim_type.param


@dataclass(frozen=True)
class Part:
    """Instances of a unit; `step` is the place of the loop that comes before all others, if one
    does.
    """

    unit: Unit
    points: isl.Set
    step: int | None = None


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


@dataclass(frozen=True)
class Elimination:
    """For each block of `width` steps, from the parameter `first` on, all of whose values are
    `firsts`: the instances of `panel`, step by step and of one step in their own order, with what
    the updates save meanwhile; then the `updates` in any order.
    """

    first: str
    firsts: isl.Set
    width: int
    steps: Range
    panel: tuple[Part, ...]
    updates: tuple[Update, ...]


def elimination_in(
    scop: Scop, units: Sequence[Unit], *, width: int, first: str
) -> Elimination | None:
    """The scop as blocks of steps, where some of its units update what is left.

    A step is a value of the loop of terms of these units, and of a loop of each other one such that
    no dependence goes to an earlier step.
    """
    for saving in (False, True):
        found = _eliminated(scop, units, width, first, saving=saving)
        if found is not None:
            return found
    return None


def _eliminated(
    scop: Scop, units: Sequence[Unit], width: int, first: str, *, saving: bool
) -> Elimination | None:
    """With `saving`, steps of a block may change what earlier ones of it read for the update."""
    drafts = {d.unit.name: d for unit in units for d in drafts_of(scop, unit)}
    drafts = {name: d for name, d in drafts.items() if not d.roles.around and one_element_each(d)}
    if not drafts:
        return None
    known = _among(units, dependences(scop))
    steps = _steps(units, drafts, known)
    if steps is None:
        return None
    extent = _extent(units, steps)
    if extent is None or _known_length(extent) < 2 * width:
        return None
    inside = {unit.name: _within(unit, steps[unit.name], first, width, extent) for unit in units}
    pieces: list[tuple[Update, isl.Set]] = []
    panel = dict(inside)
    for name, draft in drafts.items():
        chains = _chains(draft, inside[name], known)
        lasting = [edge for edge in known if not (saving and _is_read_before(edge, draft))]
        for piece in _pieces(inside[name].subtract(_needed(draft, inside, lasting, chains))):
            space = space_of(piece, draft.unit, draft.roles)
            if space is None or not _is_whole(piece, inside[name], chains):
                continue
            found = replace(draft, space=space)
            if not _within_ranges(found).intersect_params(piece.params()).is_subset(piece):
                continue
            firsts = None
            if not _within_ranges(found).intersect_params(inside[name].params()).is_subset(piece):
                firsts = _firsts(piece, first)
                if firsts is None:
                    continue
            pieces.append((Update(found, firsts), piece))
            panel[name] = panel[name].subtract(piece)
    if not pieces:
        return None
    parts = tuple(Part(unit, panel[unit.name].coalesce(), steps[unit.name]) for unit in units)
    updates = [update for update, _ in pieces]
    if saving:
        saver = _Saver(known, parts, inside)
        made = [saver.update(*each) for each in pieces]
        updates = [each for each in made if each is not None]
        if len(updates) < len(pieces):
            return None
    return Elimination(first, _blocks(first, extent), width, extent, parts, tuple(updates))


def times_of(parts: Sequence[Part]) -> dict[str, isl.Map]:
    """When the instances of each unit run: the step, then as in the program; points in time of one
    length, or isl would not compare them.
    """
    length = max(2 * len(part.unit.loops) + 1 for part in parts)
    times: dict[str, isl.Map] = {}
    for part in parts:
        time = part.unit.statements[-1].schedule.set_tuple_name(IN, part.unit.name)
        for place in range(time.dim(OUT), length):
            time = time.insert_dims(OUT, place, 1).fix_val(OUT, place, 0)
        if part.step is not None:
            time = time.insert_dims(OUT, 0, 1).equate(IN, part.step, OUT, 0)
        times[part.unit.name] = time.intersect_domain(part.points)
    return times


@dataclass(frozen=True)
class _Edge:
    """A dependence between instances of units; `reader`: the statement of them that reads."""

    source: str
    target: str
    relation: isl.Map
    kind: DependenceKind
    reader: str
    statements: frozenset[str]


def _among(units: Sequence[Unit], found: Sequence[Dependence]) -> list[_Edge]:
    of = {statement.name: unit.name for unit in units for statement in unit.statements}
    edges: list[_Edge] = []
    for each in found:
        source, target = of.get(each.source.name), of.get(each.target.name)
        if source is None or target is None or (source == target and each.carrier is None):
            continue
        relation = each.relation.set_tuple_name(IN, source).set_tuple_name(OUT, target)
        both = frozenset({each.source.name, each.target.name})
        reader = each.source.name if each.kind is DependenceKind.ANTI else each.target.name
        edges.append(_Edge(source, target, relation, each.kind, reader, both))
    return edges


# -- steps -----------------------------------------------------------------------------------------


def _steps(
    units: Sequence[Unit], drafts: Mapping[str, Contraction], known: Sequence[_Edge]
) -> dict[str, int] | None:
    """For each unit the place of the loop that counts its steps."""
    chosen = {name: draft.roles.term for name, draft in drafts.items()}
    for unit in units:
        if unit.name in chosen:
            continue
        for place in range(len(unit.loops)):
            trial = {**chosen, unit.name: place}
            if not any(_goes_back(e, trial) for e in known if unit.name in (e.source, e.target)):
                chosen[unit.name] = place
                break
        else:
            return None
    return None if any(_goes_back(edge, chosen) for edge in known) else chosen


def _goes_back(edge: _Edge, steps: Mapping[str, int]) -> bool:
    """Whether some target has an earlier step than its source; not of units without one yet."""
    if edge.source not in steps or edge.target not in steps:
        return False
    every = isl.Map.universe(edge.relation.get_space())
    back = every.order_gt(IN, steps[edge.source], OUT, steps[edge.target])
    return not edge.relation.intersect(back).is_empty()


def _extent(units: Sequence[Unit], steps: Mapping[str, int]) -> Range | None:
    """From the first to the last step of any unit."""
    values = isl.Set("{ [x] : false }")
    for unit in units:
        place, count = steps[unit.name], len(unit.loops)
        points = unit.domain.reset_tuple_id()
        points = points.project_out(SET, place + 1, count - place - 1).project_out(SET, 0, place)
        values = values.union(points)
    return range_of(values.coalesce(), 0, ["x"])


def _known_length(extent: Range) -> int:
    """The number of steps where it is a constant, else a large one."""
    forms = (*extent.lows, *extent.highs)
    if any(not form.is_constant for form in forms):
        return 1 << 40
    return min(h.constant for h in extent.highs) - max(low.constant for low in extent.lows)


# -- what a block does -----------------------------------------------------------------------------


def _blocks(first: str, extent: Range) -> isl.Set:
    """Where a block may begin."""
    ends = [f"{low} <= {first}" for low in extent.lows]
    ends += [f"{first} < {high}" for high in extent.highs]
    names = ", ".join(sorted({first, *extent.names}))
    return isl.Set(f"[{names}] -> {{ : {' and '.join(ends)} }}")


def _within(unit: Unit, place: int, first: str, width: int, extent: Range) -> isl.Set:
    """The instances of `unit` whose step lies in the block."""
    dims = ", ".join(f"x{k}" for k in range(len(unit.loops)))
    steps = f"{first} <= x{place} < {first} + {width}"
    block = isl.Set(f"[{first}] -> {{ {unit.name}[{dims}] : {steps} }}")
    return unit.domain.intersect(block).intersect_params(_blocks(first, extent))


def _chains(draft: Contraction, inside: isl.Set, known: Sequence[_Edge]) -> list[isl.Map]:
    """From one term of an element to later ones, within the block."""
    accumulates = {draft.element.name, draft.store.name}
    return [
        edge.relation.intersect_domain(inside).intersect_range(inside)
        for edge in known
        if edge.source == edge.target == draft.unit.name and edge.statements <= accumulates
    ]


def _needed(
    draft: Contraction,
    inside: Mapping[str, isl.Set],
    known: Sequence[_Edge],
    chains: Sequence[isl.Map],
) -> isl.Set:
    """The instances of the draft that something else of the same block waits for, and all other
    terms of their elements.
    """
    name = draft.unit.name
    accumulates = {draft.element.name, draft.store.name}
    needed = inside[name].subtract(inside[name])
    for edge in known:
        if edge.source == name and not (edge.target == name and edge.statements <= accumulates):
            relation = edge.relation.intersect_domain(inside[name])
            needed = needed.union(relation.intersect_range(inside[edge.target]).domain())
    for chain in chains:
        before = chain.intersect_range(needed).domain()
        needed = needed.union(before).union(chain.intersect_domain(needed).range())
    return needed.coalesce()


def _pieces(points: isl.Set) -> list[isl.Set]:
    """Convex sets that cover them, each point in one; those of most dimensions first."""
    found: list[isl.BasicSet] = []
    points.coalesce().make_disjoint().coalesce().foreach_basic_set(found.append)
    found.sort(key=lambda each: each.n_equality() if hasattr(each, "n_equality") else 0)
    return [isl.Set.from_basic_set(each) for each in found]


def _within_ranges(update: Contraction) -> isl.Set:
    """All that its ranges say: in blocks that a piece has nothing of, they have to be empty."""
    roles, space, loops = update.roles, update.space, update.unit.loops
    at = {loop.name: f"x{k}" for k, loop in enumerate(loops)}
    forms: list[str] = []
    names: set[str] = set()
    for place, extent in (
        (roles.row, space.rows),
        (roles.column, space.columns_of_row),
        (roles.term, space.terms_of_row),
    ):
        names |= extent.names - set(at)
        forms += [f"{_text(low, at)} <= x{place}" for low in extent.lows]
        forms += [f"x{place} < {_text(high, at)}" for high in extent.highs]
    dims = ", ".join(at.values())
    return isl.Set(
        f"[{', '.join(sorted(names))}] -> {{ {update.unit.name}[{dims}] : {' and '.join(forms)} }}"
    )


def _firsts(piece: isl.Set, first: str) -> Range | None:
    """The first steps of the blocks that have some of it; None where that is a single one."""
    blocks = piece.params()
    place = blocks.find_dim_by_name(PARAM, first)
    extent = range_of(isl.Set.from_params(blocks).move_dims(SET, 0, PARAM, place, 1), 0, [first])
    return extent if extent is not None and _known_length(extent) > 1 else None


def _text(form: Affine, at: Mapping[str, str]) -> str:
    return " + ".join(
        [str(form.constant), *(f"{k} {at.get(name, name)}" for name, k in form.terms)]
    )


def _is_whole(piece: isl.Set, inside: isl.Set, chains: Sequence[isl.Map]) -> bool:
    """Whether with a term of an element it has all of the block's: their order stays."""
    others = inside.subtract(piece)
    return all(
        chain.intersect_domain(piece).intersect_range(others).is_empty()
        and chain.intersect_domain(others).intersect_range(piece).is_empty()
        for chain in chains
    )


# -- what is saved ---------------------------------------------------------------------------------


def _is_read_before(edge: _Edge, draft: Contraction) -> bool:
    """Whether a left or right value of the draft is read before it changes."""
    return (
        edge.kind is DependenceKind.ANTI
        and edge.source == draft.unit.name
        and edge.reader in statements_behind((*draft.left, *draft.right), draft)
    )


class _Saver:
    """Finds when the panel has what an update reads."""

    def __init__(
        self, known: Sequence[_Edge], parts: Sequence[Part], inside: Mapping[str, isl.Set]
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

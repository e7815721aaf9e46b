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
                                                                of it is kept for the update

    for k, j > k, i:  R[k, j] += Q[i, k] * A[i, j]              orthogonalisation: a step needs what
    for k, j > k, i:  A[i, j] -= Q[i, k] * R[k, j]              the one before made of a column, so
                                                                columns beyond the block (strips)
                                                                take its steps one by one, but all
                                                                of them while they are in the cache

Source: J. Dongarra, F. Gustavson, A. Karp, Implementing linear algebra algorithms for dense
matrices on a vector pipeline machine, SIAM Review 26 (1984); blocks as in LAPACK's right-looking
factorisations. Here they follow from the dependences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import islpy as isl

from avial_lab.compiler.analysis.patterns.contractions import (
    Contraction,
    candidates_of,
    form_of,
    one_element_each,
    space_of,
)
from avial_lab.compiler.analysis.patterns.panel_snapshots import (
    SnapshotFinder,
    Update,
    is_read_before,
)
from avial_lab.compiler.analysis.patterns.panel_solves import Strips, strips_of
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.dependences import dependences
from avial_lab.compiler.analysis.polyhedral.instances import Edge, UnitInstances, edges_among
from avial_lab.compiler.analysis.polyhedral.ranges import Range, range_of
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.units import Unit

BLOCKS, NARROWEST = 16, 32
"""Panels that have no blocks of their own (snapshots of what their steps read are taken) are
narrow, so that a tenth of the work is in them; but not so that updates go by for a few terms.
"""

IN, OUT, SET, PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set, isl.dim_type.param


@dataclass(frozen=True)
class Elimination:
    """For each block of `width` steps, from the parameter `first` on, all of whose values are
    `firsts`: the instances of `panel`, step by step and of one step in their own order, with what
    the updates take snapshots of meanwhile; then the `updates` in any order. Without updates the
    panel has strips, each of whose lines is gone through at every step.
    """

    first: str
    firsts: isl.Set
    width: int
    steps: Range
    panel: tuple[UnitInstances, ...]
    updates: tuple[Update, ...]
    known: tuple[Edge, ...]

    @cached_property
    def strips(self) -> tuple[tuple[UnitInstances, ...], tuple[Strips, ...]]:
        """The panel as a core, and strips of lines beyond the block."""
        near = not self.updates
        return strips_of(self.panel, self.known, first=self.first, width=self.width, near=near)


def elimination_in(
    scop: Scop, units: Sequence[Unit], *, width: int, first: str
) -> Elimination | None:
    """The scop as blocks of steps, where some of its units update what is left.

    A step is a value of the loop of terms of these units, and of a loop of each other one such that
    no dependence goes to an earlier step.
    """
    for with_snapshots in (False, True):
        found = _eliminated(scop, units, width, first, with_snapshots=with_snapshots)
        if found is not None:
            return found
    return _line_by_line(scop, units, width, first)


def _eliminated(
    scop: Scop, units: Sequence[Unit], width: int, first: str, *, with_snapshots: bool
) -> Elimination | None:
    """With snapshots, steps of a block may change what earlier ones of it read for the update; then
    blocks may be narrower.
    """
    candidates = {d.unit.name: d for unit in units for d in candidates_of(scop, unit)}
    candidates = {
        name: d for name, d in candidates.items() if not d.roles.around and one_element_each(d)
    }
    if not candidates:
        return None
    known = edges_among(units, dependences(scop))
    steps = _steps(units, candidates, known)
    if steps is None:
        return None
    extent = extent_of(units, steps)
    if extent is None or known_length(extent) < 2 * width:
        return None
    if with_snapshots:
        width = min(width, max(NARROWEST, known_length(extent) // BLOCKS // 8 * 8))
    inside = {
        unit.name: within_block(unit, steps[unit.name], first, width, extent) for unit in units
    }
    pieces: list[tuple[Update, isl.Set]] = []
    panel = dict(inside)
    for name, candidate in candidates.items():
        lasting = [
            edge for edge in known if not (with_snapshots and is_read_before(edge, candidate))
        ]
        chains = _chains(candidate, inside[name], known)
        own = [
            within_block(candidate.unit, place, first, width, extent)
            for place in (candidate.roles.row, candidate.roles.column)
        ]
        needed = _simpler(_needed(candidate, inside, lasting, chains), own)
        rest = inside[name].subtract(needed)
        for piece in convex_pieces(rest):
            # What the panel's own rows and columns get is not worth a snapshot and packing.
            if with_snapshots and any(piece.is_subset(each) for each in own):
                continue
            update = _update(candidate, piece, inside[name], first)
            if update is not None and _is_whole(piece, inside[name], chains):
                pieces.append((update, piece))
                panel[name] = panel[name].subtract(piece)
    if not pieces:
        return None
    if not with_snapshots:
        pieces = _merged(pieces, inside, first)
    parts = tuple(
        UnitInstances(unit, panel[unit.name].coalesce(), steps[unit.name]) for unit in units
    )
    updates = [update for update, _ in pieces]
    if with_snapshots:
        finder = SnapshotFinder(known, parts, inside)
        made = [finder.update(*each) for each in pieces]
        updates = [each for each in made if each is not None]
        if len(updates) < len(pieces):
            return None
    return Elimination(
        first, starts(first, extent), width, extent, parts, tuple(updates), tuple(known)
    )


# -- lines that are gone through at every step -----------------------------------------------------


def _line_by_line(scop: Scop, units: Sequence[Unit], width: int, first: str) -> Elimination | None:
    """Blocks of steps of the outermost loop, after each of which the lines beyond it have them all;
    lines lie side by side in memory.
    """
    if not any(_goes_through_again(unit) for unit in units):
        return None
    steps = dict.fromkeys((unit.name for unit in units), 0)
    extent = extent_of(units, steps)
    if extent is None or known_length(extent) < 2 * width:
        return None
    parts = tuple(UnitInstances(u, within_block(u, 0, first, width, extent), 0) for u in units)
    known = tuple(edges_among(units, dependences(scop)))
    found = Elimination(first, starts(first, extent), width, extent, parts, (), known)
    strips = (strip for group in found.strips[1] for strip in group.strips)
    return found if any(_goes_through_again(strip.part.unit) for strip in strips) else None


def _goes_through_again(unit: Unit) -> bool:
    """Whether every step has the same elements of a line: those of another loop, beside those of
    the next line.
    """
    step = unit.loops[0].name
    for access in (a for s in unit.statements for a in s.accesses if a.writes):
        forms = access.forms or (None,)
        names = {name for form in forms if form is not None for name, _ in form.terms}
        lines = [loop.name for loop in unit.loops[1:] if forms[-1] == Affine.of(loop.name)]
        if lines and len(names) > 1 and step not in names and None not in forms:
            return _has_one_line(unit, lines[0])
    return False


def _has_one_line(unit: Unit, line: str) -> bool:
    """Whether what its accesses have of a line's neighbours is nothing."""
    forms = [form for s in unit.statements for a in s.accesses for form in a.forms or (None,)]
    return all(
        form is not None and (form == Affine.of(line) or all(n != line for n, _ in form.terms))
        for form in forms
    )


# -- steps -----------------------------------------------------------------------------------------


def _steps(
    units: Sequence[Unit], candidates: Mapping[str, Contraction], known: Sequence[Edge]
) -> dict[str, int] | None:
    """For each unit the place of the loop that counts its steps."""
    chosen = {name: candidate.roles.term for name, candidate in candidates.items()}
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


def _goes_back(edge: Edge, steps: Mapping[str, int]) -> bool:
    """Whether some target has an earlier step than its source; not of units without one yet."""
    if edge.source not in steps or edge.target not in steps:
        return False
    every = isl.Map.universe(edge.relation.get_space())
    back = every.order_gt(IN, steps[edge.source], OUT, steps[edge.target])
    return not edge.relation.intersect(back).is_empty()


def extent_of(units: Sequence[Unit], steps: Mapping[str, int]) -> Range | None:
    """From the first to the last step of any unit."""
    values = isl.Set("{ [x] : false }")
    for unit in units:
        place, count = steps[unit.name], len(unit.loops)
        points = unit.domain.reset_tuple_id()
        points = points.project_out(SET, place + 1, count - place - 1).project_out(SET, 0, place)
        values = values.union(points)
    return range_of(values.coalesce(), 0, ["x"])


def known_length(extent: Range) -> int:
    """The number of steps where it is a constant, else a large one."""
    forms = (*extent.lows, *extent.highs)
    if any(not form.is_constant for form in forms):
        return 1 << 40
    return min(h.constant for h in extent.highs) - max(low.constant for low in extent.lows)


# -- what a block does -----------------------------------------------------------------------------


def starts(first: str, extent: Range) -> isl.Set:
    """Where a block may begin: `first` within the range."""
    ends = [f"{low} <= {first}" for low in extent.lows]
    ends += [f"{first} < {high}" for high in extent.highs]
    names = ", ".join(sorted({first, *extent.names}))
    return isl.Set(f"[{names}] -> {{ : {' and '.join(ends)} }}")


def within_block(unit: Unit, place: int, first: str, width: int, extent: Range) -> isl.Set:
    """The instances of `unit` whose step lies in the block."""
    dims = ", ".join(f"x{k}" for k in range(len(unit.loops)))
    steps = f"{first} <= x{place} < {first} + {width}"
    block = isl.Set(f"[{first}] -> {{ {unit.name}[{dims}] : {steps} }}")
    return unit.domain.intersect(block).intersect_params(starts(first, extent))


def _chains(candidate: Contraction, inside: isl.Set, known: Sequence[Edge]) -> list[isl.Map]:
    """From one term of an element to later ones, within the block; each of them once."""
    accumulates = {candidate.element.name, candidate.store.name}
    found: list[isl.Map] = []
    for edge in known:
        if edge.source == edge.target == candidate.unit.name and edge.statements <= accumulates:
            chain = edge.relation.intersect_domain(inside).intersect_range(inside)
            if not any(chain.is_equal(other) for other in found):
                found.append(chain)
    return found


def _needed(
    candidate: Contraction,
    inside: Mapping[str, isl.Set],
    known: Sequence[Edge],
    chains: Sequence[isl.Map],
) -> isl.Set:
    """The instances of the candidate that something else of the same block waits for, and all other
    terms of their elements.
    """
    name = candidate.unit.name
    accumulates = {candidate.element.name, candidate.store.name}
    needed = inside[name].subtract(inside[name])
    for edge in known:
        if edge.source == name and not (edge.target == name and edge.statements <= accumulates):
            relation = edge.relation.intersect_domain(inside[name])
            needed = needed.union(relation.intersect_range(inside[edge.target]).domain())
    needed = needed.coalesce()  # what follows takes as long as there are pieces
    for chain in chains:
        before = chain.intersect_range(needed).domain()
        needed = needed.union(before).union(chain.intersect_domain(needed).range())
    return needed.coalesce()


def _simpler(needed: isl.Set, own: Sequence[isl.Set]) -> isl.Set:
    """All of the block's own rows, or columns, or both, where no others are needed: the last one of
    all is needed by nobody, but apart from them it would be an update for a single element.
    """
    both = own[0].union(own[1])
    if needed.is_empty() or not needed.is_subset(both):
        return needed
    return next((each for each in own if needed.is_subset(each)), both)


def convex_pieces(points: isl.Set) -> list[isl.Set]:
    """Convex sets that cover them, each point in one; those of most dimensions first."""
    found: list[isl.BasicSet] = []
    points.coalesce().make_disjoint().coalesce().foreach_basic_set(found.append)
    found.sort(key=lambda each: each.n_equality() if hasattr(each, "n_equality") else 0)
    return [isl.Set.from_basic_set(each) for each in found]


def within_ranges(update: Contraction) -> isl.Set:
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


def _update(candidate: Contraction, piece: isl.Set, inside: isl.Set, first: str) -> Update | None:
    """The piece, if ranges can say what it is in every block."""
    space = space_of(piece, candidate.unit, candidate.roles)
    if space is None:
        return None
    found = replace(candidate, space=space)
    said = within_ranges(found)
    if said.intersect_params(inside.params()).is_subset(piece):
        return Update(found, None)
    firsts = _firsts(piece, inside, first)
    told = said.intersect_params(piece.params()).is_subset(piece)
    return Update(found, firsts) if firsts is not None and told else None


def _merged(
    pieces: Sequence[tuple[Update, isl.Set]], inside: Mapping[str, isl.Set], first: str
) -> list[tuple[Update, isl.Set]]:
    """Updates that do the same to parts of one array, which together have fewer pieces: those below
    and above a diagonal are a square.
    """
    groups: dict[object, list[tuple[Update, isl.Set]]] = {}
    for update, piece in pieces:
        groups.setdefault(form_of(update.contraction), []).append((update, piece))
    found: list[tuple[Update, isl.Set]] = []
    for group in groups.values():
        found += (_as_one(group, inside, first) if len(group) > 1 else None) or group
    return found


def _as_one(
    group: Sequence[tuple[Update, isl.Set]], inside: Mapping[str, isl.Set], first: str
) -> list[tuple[Update, isl.Set]] | None:
    """The group in fewer pieces, all of them of its first unit; None where it has as many."""
    candidate = group[0][0].contraction
    units = dict.fromkeys(update.contraction.unit.name for update, _ in group)
    around = reduce(isl.Set.union, (_named(inside[name], candidate) for name in units))
    every = convex_pieces(reduce(isl.Set.union, (_named(piece, candidate) for _, piece in group)))
    if len(every) >= len(group):
        return None
    made = [(_update(candidate, piece, around, first), piece) for piece in every]
    found = [(update, piece) for update, piece in made if update is not None]
    return found if len(found) == len(made) else None


def _named(points: isl.Set, candidate: Contraction) -> isl.Set:
    return points.set_tuple_name(candidate.unit.name)


def _firsts(piece: isl.Set, inside: isl.Set, first: str) -> Range | None:
    """The first steps of the blocks that have some of it, if a range can say them; None where that
    is a single one.
    """
    blocks = piece.params()
    place = blocks.find_dim_by_name(PARAM, first)
    extent = range_of(isl.Set.from_params(blocks).move_dims(SET, 0, PARAM, place, 1), 0, [first])
    if extent is None or known_length(extent) < 2:
        return None
    said = starts(first, extent).intersect(inside.params())
    return extent if said.is_subset(blocks) else None


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

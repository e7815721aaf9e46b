"""Another order of the loops, where the innermost then walks memory in steps of one element.

Scop, Units -> isl schedule, or None where the loops are good as they are.

    for i, j, k: C[i, j] += A[i, k] * B[k, j]     B moves by a row with every k
    for i, k, j: C[i, j] += A[i, k] * B[k, j]     C and B by an element with every j

All dependences stay as they are, so that every element gets its values in the same order.

Source: K. S. McKinley, S. Carr, C.-W. Tseng, Improving data locality with loop transformations,
TOPLAS 18 (1996), for the order; S. Verdoolaege, G. Janssens, Scheduling for PPCG, CW 706 (2017),
for isl's scheduler, which finds the bands of loops that may be exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.dependences import dependences
from avial_lab.polyhedra.model import Access, Scop
from avial_lab.polyhedra.units import Immovable, Unit

IN, OUT = isl.dim_type.in_, isl.dim_type.out
BAND = isl.schedule_node_type.band
OPERATIONS = 2_000_000
"""isl operations for a schedule."""


@dataclass(frozen=True, order=True)
class Walk:
    """How one loop walks memory, smaller is better: accesses that jump from element to element,
    whether its iterations depend on each other, and, negative, accesses that go to the next one.
    """

    jumps: int
    carries: bool
    steps: int

    def plus(self, other: Walk) -> Walk:
        return Walk(
            self.jumps + other.jumps, self.carries or other.carries, self.steps + other.steps
        )


def better_order(scop: Scop, units: Sequence[Unit]) -> isl.Schedule | None:
    """A schedule in which some innermost loop walks better, and none worse; None if there is none.

    Raises Immovable where isl finds it too hard.
    """
    if not any(_may_gain(unit) for unit in units):
        return None
    found = limited(lambda: exchanged(scop, units), lambda: None, limit=OPERATIONS)
    if found is None:
        raise Immovable("isl gave up on another order")
    now = {unit.name: walk_of(unit, len(unit.loops) - 1).jumps for unit in units if unit.loops}
    then = _innermost(found, units)
    if any(then[name] > jumps for name, jumps in now.items()):
        return None
    return found if any(then[name] < jumps for name, jumps in now.items()) else None


def _may_gain(unit: Unit) -> bool:
    walks = [walk_of(unit, k).jumps for k in range(len(unit.loops))]
    return len(walks) > 1 and min(walks) < walks[-1]


def walk_of(unit: Unit, dim: int) -> Walk:
    """Of the accesses of `unit` when its loop `dim` alone goes on."""
    accesses = [access for statement in unit.statements for access in statement.accesses]
    moves = [move_of(access, dim) for access in accesses]
    return Walk(sum(move is None for move in moves), False, -sum(move == 1 for move in moves))


def move_of(access: Access, dim: int) -> int | None:
    """0 where it stays at its element, 1 where it goes to the one beside, None for any other."""
    relation = access.relation
    rank = relation.dim(OUT)
    for place in range(rank):
        rest = relation.project_out(OUT, place + 1, rank - place - 1).project_out(OUT, 0, place)
        if not rest.is_single_valued():
            return None
        factors = {
            _factor(aff, dim) for _, aff in isl.PwMultiAff.from_map(rest).get_pw_aff(0).get_pieces()
        }
        if factors == {0}:
            continue
        return 1 if place == rank - 1 and factors <= {1, -1} else None
    return 0


def _factor(aff: isl.Aff, dim: int) -> int | None:
    """By how much the subscript changes with every value of the loop; None where that varies."""
    divs = isl.dim_type.div
    if any(not aff.get_coefficient_val(divs, k).is_zero() for k in range(aff.dim(divs))):
        return None
    return aff.get_coefficient_val(IN, dim).to_python()


def exchanged(scop: Scop, units: Sequence[Unit]) -> isl.Schedule:
    """Every loop split as far as it can be, and in each the one that walks best innermost.

    Raises Immovable where isl finds none.
    """
    domain, ordered = isl.UnionSet("{ }"), isl.UnionMap("{ }")
    for unit in units:
        domain = domain.union(isl.UnionSet.from_set(unit.domain))
    unit_of = {statement.name: unit.name for unit in units for statement in unit.statements}
    for each in dependences(scop):
        source, target = unit_of.get(each.source.name), unit_of.get(each.target.name)
        if source is None or target is None or (source == target and each.carrier is None):
            continue  # of one iteration: its operations stay in their order
        relation = each.relation.set_tuple_name(IN, source).set_tuple_name(OUT, target)
        ordered = ordered.union(isl.UnionMap.from_map(relation))
    constraints = isl.ScheduleConstraints.on_domain(domain)
    # No coincidence is asked for: for a parallel loop isl would skew the others.
    constraints = constraints.set_validity(ordered).set_proximity(ordered)
    context = isl.DEFAULT_CONTEXT
    serialize = context.get_schedule_serialize_sccs()
    context.set_schedule_serialize_sccs(1)
    try:
        root = constraints.compute_schedule().get_root()
    except isl.Error:
        # Units that need each other in one iteration are none; what else it is, isl only prints.
        raise Immovable("isl finds no order for all that belongs together") from None
    finally:
        context.set_schedule_serialize_sccs(serialize)
    walks = {unit.name: _walks(unit, ordered) for unit in units}
    return root.map_descendant_bottom_up(lambda node: _ordered(node, walks)).get_schedule()


def _walks(unit: Unit, ordered: isl.UnionMap) -> list[Walk]:
    """How each loop of `unit` walks, and whether it carries a dependence of the unit on itself."""
    within = ordered.intersect_domain(unit.domain).intersect_range(unit.domain)
    steps = isl.Set.from_union_set(within.deltas()) if not within.is_empty() else None
    return [
        walk_of(unit, k).plus(Walk(0, steps is not None and _moves_in(steps, k), 0))
        for k in range(len(unit.loops))
    ]


def _moves_in(steps: isl.Set, dim: int) -> bool:
    low, high = steps.dim_min_val(dim), steps.dim_max_val(dim)
    return not (low.is_zero() and high.is_zero())


def _ordered(node: isl.ScheduleNode, walks: Mapping[str, Sequence[Walk]]) -> isl.ScheduleNode:
    """An innermost band of exchangeable loops with the one that walks best last."""
    if node.get_type() != BAND or _holds_band(node) or not node.band_get_permutable():
        return node
    count = node.band_n_member()
    schedule = node.band_get_partial_schedule()
    each = [_walk_of_member(schedule.get_at(k), walks) for k in range(count)]
    last = min(range(count), key=lambda k: (each[k], -k))
    order = [*(k for k in range(count) if k != last), last]
    members = isl.UnionPwAffList.alloc(isl.DEFAULT_CONTEXT, count)
    for k in order:
        members = members.add(schedule.get_at(k))
    reordered = isl.MultiUnionPwAff.from_union_pw_aff_list(schedule.get_space(), members)
    return node.delete().insert_partial_schedule(reordered).band_set_permutable(1)


def _walk_of_member(member: isl.UnionPwAff, walks: Mapping[str, Sequence[Walk]]) -> Walk:
    """Of a skewed loop one that is worse than any other."""
    pieces: list[isl.PwAff] = []
    member.get_pw_aff_list().foreach(pieces.append)
    total = Walk(0, False, 0)
    for piece in pieces:
        dims = _dims(piece)
        known = walks[piece.domain().get_tuple_name()]
        total = total.plus(known[min(dims)] if len(dims) == 1 else Walk(len(known) + 99, True, 0))
    return total


def _dims(member: isl.PwAff) -> frozenset[int]:
    """The loops that the member goes on with."""
    return frozenset(
        d
        for _, aff in member.get_pieces()
        for d in range(aff.dim(IN))
        if not aff.get_coefficient_val(IN, d).is_zero()
    )


def _every_jump(unit: Unit) -> Walk:
    return Walk(sum(len(statement.accesses) for statement in unit.statements), False, 0)


def _innermost(schedule: isl.Schedule, units: Sequence[Unit]) -> dict[str, int]:
    """Jumps of each unit in its innermost loop under `schedule`.

    All of them where a loop is skewed: with it others go on too.
    """
    under = loops_under(schedule)
    found: dict[str, int] = {}
    for unit in units:
        if unit.name not in under:  # it never runs
            found[unit.name] = 0
            continue
        loops = under[unit.name]
        skewed = any(len(each) > 1 for each in loops)
        walk = _every_jump(unit) if skewed else walk_of(unit, min(loops[-1])) if loops else None
        found[unit.name] = walk.jumps if walk is not None else 0
    return found


def loops_under(schedule: isl.Schedule) -> dict[str, list[frozenset[int]]]:
    """For each unit that runs, from the outside, which of its loops each new loop goes on with."""
    maps: list[isl.Map] = []
    schedule.get_map().foreach_map(maps.append)
    times = {each.get_tuple_name(IN): isl.PwMultiAff.from_map(each) for each in maps}
    dims = {
        name: [_dims(time.get_pw_aff(k)) for k in range(time.dim(OUT))]
        for name, time in times.items()
    }
    return {name: [each for each in loops if each] for name, loops in dims.items()}


def _holds_band(node: isl.ScheduleNode) -> bool:
    inner: list[isl.ScheduleNode] = []

    def look(each: isl.ScheduleNode) -> bool:
        if each.get_type() == BAND:
            inner.append(each)
        return True

    node.foreach_descendant_top_down(look)
    return len(inner) > 1

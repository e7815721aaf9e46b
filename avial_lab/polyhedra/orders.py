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

from collections.abc import Sequence
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
    found = limited(lambda: _schedule(scop, units), lambda: None, limit=OPERATIONS)
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
    moves = [_move(access, dim) for access in accesses]
    return Walk(sum(move is None for move in moves), False, -sum(move == 1 for move in moves))


def _move(access: Access, dim: int) -> int | None:
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


def _schedule(scop: Scop, units: Sequence[Unit]) -> isl.Schedule:
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
    constraints = constraints.set_validity(ordered).set_proximity(ordered).set_coincidence(ordered)
    context = isl.DEFAULT_CONTEXT
    serialize = context.get_schedule_serialize_sccs()
    context.set_schedule_serialize_sccs(1)
    try:
        root = constraints.compute_schedule().get_root()
    finally:
        context.set_schedule_serialize_sccs(serialize)
    by_name = {unit.name: unit for unit in units}
    return root.map_descendant_bottom_up(lambda node: _ordered(node, by_name)).get_schedule()


def _ordered(node: isl.ScheduleNode, units: dict[str, Unit]) -> isl.ScheduleNode:
    """An innermost band of exchangeable loops with the one that walks best last."""
    if node.get_type() != BAND or _holds_band(node) or not node.band_get_permutable():
        return node
    count = node.band_n_member()
    schedule = node.band_get_partial_schedule()
    coincident = [bool(node.band_member_get_coincident(k)) for k in range(count)]
    walks = [
        Walk(0, not coincident[k], 0).plus(_walk_of_member(schedule.get_at(k), units))
        for k in range(count)
    ]
    last = min(range(count), key=lambda k: (walks[k], -k))
    order = [*(k for k in range(count) if k != last), last]
    order[:-1] = sorted(order[:-1], key=lambda k: (not coincident[k], k))
    members = isl.UnionPwAffList.alloc(isl.DEFAULT_CONTEXT, count)
    for k in order:
        members = members.add(schedule.get_at(k))
    exchanged = isl.MultiUnionPwAff.from_union_pw_aff_list(schedule.get_space(), members)
    node = node.delete().insert_partial_schedule(exchanged).band_set_permutable(1)
    for place, k in enumerate(order):
        node = node.band_member_set_coincident(place, coincident[k])
    return node


def _walk_of_member(member: isl.UnionPwAff, units: dict[str, Unit]) -> Walk:
    pieces: list[isl.PwAff] = []
    member.get_pw_aff_list().foreach(pieces.append)
    total = Walk(0, False, 0)
    for piece in pieces:
        unit = units[piece.domain().get_tuple_name()]
        dim = _only_dim(piece)
        everything = sum(len(statement.accesses) for statement in unit.statements)
        total = total.plus(walk_of(unit, dim) if dim is not None else Walk(everything, False, 0))
    return total


def _only_dim(member: isl.PwAff) -> int | None:
    """The loop that goes on when the member does; None where that is several, or none."""
    dims = {
        tuple(d for d in range(aff.dim(IN)) if not aff.get_coefficient_val(IN, d).is_zero())
        for _, aff in member.get_pieces()
    }
    (only, *others) = dims
    return only[0] if not others and len(only) == 1 else None


def _innermost(schedule: isl.Schedule, units: Sequence[Unit]) -> dict[str, int]:
    """Jumps of each unit in its innermost loop under `schedule`."""
    found = {unit.name: 0 for unit in units}
    by_name = {unit.name: unit for unit in units}

    def look(node: isl.ScheduleNode) -> bool:
        if node.get_type() == BAND and not _holds_band(node):
            last = node.band_get_partial_schedule().get_at(node.band_n_member() - 1)
            pieces: list[isl.PwAff] = []
            last.get_pw_aff_list().foreach(pieces.append)
            for piece in pieces:
                unit, dim = by_name[piece.domain().get_tuple_name()], _only_dim(piece)
                if dim is None:
                    found[unit.name] = sum(len(s.accesses) for s in unit.statements)
                else:
                    found[unit.name] = walk_of(unit, dim).jumps
        return True

    schedule.get_root().foreach_descendant_top_down(look)
    return found


def _holds_band(node: isl.ScheduleNode) -> bool:
    inner: list[isl.ScheduleNode] = []

    def look(each: isl.ScheduleNode) -> bool:
        if each.get_type() == BAND:
            inner.append(each)
        return True

    node.foreach_descendant_top_down(look)
    return len(inner) > 1

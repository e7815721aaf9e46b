"""Strips: what a block of steps does to lines that wait for the block's own, and for no other line.

Parts of a block, Edges -> the core, which comes first, and groups of strips, line by line.

    for i, j < i, k < j:  A[i, j] -= A[i, k] * A[j, k]      steps k        ┌──────┐
    for i, j < i:         A[i, j] /= A[j, j]                               │ core │
                                                                           ├──────┤
    Rows i of the block's own steps are the core. Every row beyond needs   │  …   │ a strip for
    the core and itself: rows may run at the same time, and side by side.  └──────┘ each row i

Source: F. Gustavson, Recursion leads to automatic variable blocking for dense linear-algebra
algorithms, IBM J. Res. Dev. 41 (1997), for the triangular solves of panels. Here they follow from
the dependences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from avial_lab.compiler.analysis.polyhedral.instances import Edge, UnitInstances
from avial_lab.compiler.analysis.polyhedral.ranges import Range, range_of
from avial_lab.compiler.analysis.polyhedral.strides import factors_of, stride_of
from avial_lab.compiler.analysis.polyhedral.units import Unit

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


@dataclass(frozen=True)
class Strip:
    """Instances of a unit, of all lines or of those beyond the block; `line` is the place of the
    loop that counts them.
    """

    part: UnitInstances
    line: int


@dataclass(frozen=True)
class Strips:
    """Strips of the same lines, all that one line needs of itself among them; of lines in `extent`,
    each independent of every other.

    `late` and `early` are two of them of which the first, one step later, goes through a line
    together with the second:

        steps k, rows i:  r[k] += q[i, k] * a[i]          r[0] += q[i, 0] * a[i]
        steps k, rows i:  a[i] -= q[i, k] * r[k]          steps k, rows i:  a[i] -= q[i, k] * r[k]
                                                                            r[k + 1] += … * a[i]
    """

    strips: tuple[Strip, ...]
    extent: Range
    late: Strip | None = None
    early: Strip | None = None

    def times(self) -> dict[str, isl.Map]:
        """As in the program, with the lines side by side in the innermost loops."""
        length = max(2 * len(strip.part.unit.loops) + 1 for strip in self.strips)
        return {each.part.unit.name: self._time(each, length) for each in self.strips}

    def _time(self, strip: Strip, length: int) -> isl.Map:
        late = strip == self.late
        placed = self.early if late and self.early is not None else strip
        dims = [f"x{k}" for k in range(len(strip.part.unit.loops))]
        members = [str(b) for b in placed.part.unit.statements[-1].position]
        for k, dim in reversed(list(enumerate(dims))):
            value = "0" if k == strip.line else dim
            members.insert(k + 1, f"{value} + 1" if late and k == strip.part.step else value)
        members += ["0"] * (length - len(members))
        members += [dims[strip.line], "0" if late else "1"]
        time = f"{{ {strip.part.unit.name}[{', '.join(dims)}] -> [{', '.join(members)}] }}"
        return isl.Map(time).intersect_domain(strip.part.points)


Pieces = Mapping[tuple[str, int], isl.Set]
"""Of a unit's name and the place of a loop that counts lines: instances."""


def strips_of(
    parts: Sequence[UnitInstances],
    known: Sequence[Edge],
    *,
    first: str,
    width: int,
    near: bool = False,
) -> tuple[tuple[UnitInstances, ...], tuple[Strips, ...]]:
    """The core and the strips of a block of so many steps, from the parameter `first` on; with
    `near` only of lines that lie side by side in memory.
    """
    points = {part.unit.name: part.points for part in parts}
    places = [(p, k) for p in parts for k in range(len(p.unit.loops)) if k != p.step]
    places = [each for each in places if not near or _is_near(each[0].unit, each[1])]
    tried = (_kept(each, points, known) for each in _tried(places, first, width))
    pieces = next(filter(None, tried), {})
    at = {part.unit.name: part for part in parts}
    groups: list[Strips] = []
    for keys in _linked(pieces, known):
        strips = [Strip(replace(at[name], points=pieces[name, n]), n) for name, n in keys]
        extent = _lines(strips)
        if extent is not None:
            groups.append(_together(Strips(tuple(strips), extent), known))
    for strip in (each for group in groups for each in group.strips):
        name = strip.part.unit.name
        points[name] = points[name].subtract(strip.part.points)
    core = (replace(part, points=points[part.unit.name].coalesce()) for part in parts)
    return tuple(part for part in core if not part.points.is_empty()), tuple(groups)


def _is_near(unit: Unit, line: int) -> bool:
    accesses = (a for s in (*unit.statements, *unit.sunk) for a in s.accesses)
    return all(stride_of(access, line) in (0, 1) for access in accesses)


def _tried(places: Sequence[tuple[UnitInstances, int]], first: str, width: int) -> Iterator[Pieces]:
    """All lines there are, or else those beyond the block."""
    yield {(p.unit.name, k): p.points for p, k in places if not p.points.is_empty()}
    beyond = {(p.unit.name, k): _beyond(p, k, first, width) for p, k in places}
    yield {key: piece for key, piece in beyond.items() if not piece.is_empty()}


def _kept(pieces: Pieces, points: Mapping[str, isl.Set], known: Sequence[Edge]) -> Pieces:
    """Those that nothing but themselves waits for, each line by itself."""
    pieces = {key: piece for key, piece in pieces.items() if _is_in_lines(key, piece, known)}
    while wrong := _wrong(pieces, points, known) or _twice(pieces):
        pieces = {key: piece for key, piece in pieces.items() if key not in wrong}
    return pieces


def _beyond(part: UnitInstances, place: int, first: str, width: int) -> isl.Set:
    dims = ", ".join(f"x{k}" for k in range(len(part.unit.loops)))
    where = f"[{first}] -> {{ {part.unit.name}[{dims}] : x{place} >= {first} + {width} }}"
    return part.points.intersect(isl.Set(where)).coalesce()


def _is_in_lines(key: tuple[str, int], piece: isl.Set, known: Sequence[Edge]) -> bool:
    """Whether no line waits for another of the same piece."""
    name, place = key
    return all(
        _on_one_line(edge.relation.intersect_domain(piece).intersect_range(piece), place, place)
        for edge in known
        if edge.source == edge.target == name
    )


def _wrong(
    pieces: Pieces, points: Mapping[str, isl.Set], known: Sequence[Edge]
) -> set[tuple[str, int]]:
    """Those that the core would wait for, or another line."""
    core = dict(points)
    for (name, _), piece in pieces.items():
        core[name] = core[name].subtract(piece)
    found: set[tuple[str, int]] = set()
    for edge in known:
        for key, piece in pieces.items():
            if edge.source != key[0] or key in found:
                continue
            after = edge.relation.intersect_domain(piece)
            if not after.intersect_range(core[edge.target]).is_empty() or any(
                not _on_one_line(after.intersect_range(other), key[1], place)
                for (name, place), other in pieces.items()
                if name == edge.target
            ):
                found.add(key)
    return found


def _on_one_line(relation: isl.Map, source: int, target: int) -> bool:
    return relation.is_subset(relation.equate(IN, source, OUT, target))


def _twice(pieces: Pieces) -> set[tuple[str, int]]:
    """Those that have instances of another one of their unit."""
    keys = list(pieces)
    return {
        b
        for k, b in enumerate(keys)
        for a in keys[:k]
        if a[0] == b[0] and not pieces[a].intersect(pieces[b]).is_empty()
    }


def _linked(pieces: Pieces, known: Sequence[Edge]) -> list[list[tuple[str, int]]]:
    """Those that have to stay in order, together; in the order of `pieces`."""
    groups = {key: [key] for key in pieces}
    for edge in known:
        for a in (key for key in pieces if key[0] == edge.source):
            after = edge.relation.intersect_domain(pieces[a])
            for b in (key for key in pieces if key[0] == edge.target):
                if groups[a] is not groups[b] and not after.intersect_range(pieces[b]).is_empty():
                    both = groups[a] + groups[b]
                    groups.update(dict.fromkeys(both, both))
    order = list(pieces)
    distinct = {id(group): group for group in groups.values()}
    return [sorted(group, key=order.index) for group in distinct.values()]


def _together(group: Strips, known: Sequence[Edge]) -> Strips:
    """The group with a late one, where a strip may go through what it writes together with the one
    that reads it at the next step.
    """
    for late in group.strips:
        for early in group.strips:
            if early != late and _goes_through_the_same(late, early):
                found = replace(group, late=late, early=early)
                if _in_order(found.times(), known):
                    return found
    return group


def _goes_through_the_same(late: Strip, early: Strip) -> bool:
    """Whether one writes in each step, in the same iterations, what the other reads."""
    step, line, a, b = late.part.step, late.line, late.part.unit, early.part.unit
    if step is None or (step, line, len(a.loops)) != (early.part.step, early.line, len(b.loops)):
        return False
    reads = [
        x.relation.reset_tuple_id(IN) for s in b.statements for x in s.accesses if not x.writes
    ]
    return len(a.loops) > 2 and any(
        x.writes
        and factors_of(x, step) is not None
        and not any(factors_of(x, step) or ())
        and any(x.relation.reset_tuple_id(IN).is_equal(read) for read in reads)
        for s in a.statements
        for x in s.accesses
    )


def _in_order(times: Mapping[str, isl.Map], known: Sequence[Edge]) -> bool:
    return all(
        times[edge.source].lex_ge_map(times[edge.target]).intersect(edge.relation).is_empty()
        for edge in known
        if edge.source in times and edge.target in times
    )


def _lines(strips: Sequence[Strip]) -> Range | None:
    """From the first to the last line of any strip."""
    each: list[isl.Set] = []
    for strip in strips:
        points, count = strip.part.points.reset_tuple_id(), len(strip.part.unit.loops)
        points = points.project_out(SET, strip.line + 1, count - strip.line - 1)
        each.append(points.project_out(SET, 0, strip.line))
    return range_of(reduce(isl.Set.union, each).coalesce(), 0, ["x"])

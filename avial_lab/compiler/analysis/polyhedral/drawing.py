"""The iterations of a nest as points and its dependences as arrows: a sample small enough to draw.

A loop -> Nest: the first iterations of its two outer loops, and which of them need which.

    for t                 t 0   S1  o o o o        arrows from (0, S2, i) to (1, S1, i - 1),
      for i: B[i] = …           S2  o o o o        (1, S1, i) and (1, S1, i + 1)
      for i: A[i] = …     t 1   S1  o o o o
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import islpy as isl
from mlir import ir

from avial_lab.artifact.explanation import Cell, Nest, Order
from avial_lab.artifact.explanation import Dependence as Told
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import (
    IN,
    OUT,
    Dependence,
    DependenceKind,
    dependences,
)
from avial_lab.compiler.analysis.polyhedral.instances import first_of, last_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Scop, Statement
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.planning.task_graph import TaskKind

ROWS, COLUMNS, LINES = 6, 8, 12
"""Iterations drawn of the outer and the inner loop, and rows times lanes at most."""

MOST_PAIRS = 900
"""Pairs of accesses to one array that are looked at; a nest with more is drawn without arrows."""

MOST_ARROWS = 4000

SET = isl.dim_type.set
PARAM = isl.dim_type.param


@dataclass(frozen=True)
class _Window:
    """Which values of the two loops are drawn, from the least ones."""

    rows: range
    columns: range


@dataclass
class _Space:
    """One nest while it is drawn; `loop` is its outermost."""

    scop: Scop
    loop: Loop

    def __post_init__(self) -> None:
        self.statements = [s for s in self.scop.statements if self.loop in s.loops]
        inner = dict.fromkeys(_second(s) for s in self.statements)
        self.lanes = [loop for loop in inner if loop is not None]
        self.flat = not self.lanes
        self.window = self._window()

    def lane(self, statement: Statement) -> int:
        """Its loop's place; what stands beside the loops is with the one before it."""
        earlier = [s for s in self.statements if s.position <= statement.position]
        loops = [loop for loop in map(_second, earlier) if loop is not None]
        inner = _second(statement)
        return self.lanes.index(inner or loops[-1]) if inner or loops else 0

    def _window(self) -> _Window:
        domains = [_projected(s.domain, 1 if self.flat else 2) for s in self.statements]
        step = self.loop.step or 1
        if self.flat:
            low = min((_least(d, 0) for d in domains), default=0)
            return _Window(range(0, 1), range(low, low + step * (COLUMNS + 2), step))
        rows = max(2, min(ROWS, LINES // len(self.lanes)))  # at least one arrow to the next
        first = min(_least(d, 0) for d in domains)
        both = [d for d in domains if d.dim(SET) > 1]
        left = min((_least(d, 1) for d in both), default=0)
        steps = {loop.step for loop in self.lanes}
        across = (steps.pop() or 1) if len(steps) == 1 else 1
        return _Window(
            range(first, first + step * rows, step), range(left, left + across * COLUMNS, across)
        )

    def cells(self) -> list[Cell]:
        found: set[Cell] = set()
        for statement in self.statements:
            depth = 1 if self.flat else 2
            domain = _projected(statement.domain, depth)
            for point in _points(self._cut(domain), COLUMNS * ROWS * 4):
                found.add(self._cell(self.lane(statement), point))
        return sorted(found, key=_by_place)

    def needs(self, dependence: Dependence) -> list[tuple[Cell, Cell]]:
        """The pairs of cells that one dependence puts in order."""
        depth = 1 if self.flat else 2
        pairs = dependence.relation
        for kind in (IN, OUT):
            kept = min(depth, pairs.dim(kind))
            pairs = pairs.project_out(kind, kept, pairs.dim(kind) - kept)
        pairs = pairs.project_out(PARAM, 0, pairs.dim(PARAM))
        pairs = pairs.reset_tuple_id(IN).reset_tuple_id(OUT)
        pairs = pairs.intersect_domain(self._box(pairs.dim(IN)))
        pairs = pairs.intersect_range(self._box(pairs.dim(OUT)))
        first, second = self.lane(dependence.source), self.lane(dependence.target)
        split = pairs.dim(IN)
        return [
            (self._cell(first, point[:split]), self._cell(second, point[split:]))
            for point in _points(pairs.wrap().flatten(), MOST_ARROWS)
        ]

    def _cut(self, domain: isl.Set) -> isl.Set:
        return domain.reset_tuple_id().intersect(self._box(domain.dim(SET)))

    def _box(self, count: int) -> isl.Set:
        """The values that are drawn, of one or both loops."""
        ranges = [self.window.columns] if self.flat else [self.window.rows, self.window.columns]
        dims = [f"d{k}" for k in range(count)]
        inside = [
            f"{values.start} <= {dim} <= {values[-1]}"
            for dim, values in zip(dims, ranges, strict=False)
        ]
        return isl.Set(f"{{ [{', '.join(dims)}] : {' and '.join(inside) or 'true'} }}")

    def _cell(self, lane: int, point: Sequence[int]) -> Cell:
        if self.flat:
            return Cell(None, lane, point[0])
        return Cell(point[0], lane, point[1] if len(point) > 1 else None)


def nest_of(name: str, kind: TaskKind, op: ir.Operation) -> Nest | None:
    """What can be drawn of the nest whose outermost loop is `op`; None where nothing is known of
    its iterations.

    Lanes are named after the tasks and replicates around their loops.
    """
    scop = read_scop(op)
    loops = [loop for loop in scop.loops if loop.op == op]
    if not loops or not scop.statements:
        return None
    space = _Space(scop, loops[0])
    notes: list[str] = []
    found: Sequence[Dependence] = ()
    if _pairs(space.statements) <= MOST_PAIRS:
        found, sharp = direct(dependences(space.statements))
        if not sharp:
            notes.append("some transitive arrows are drawn too: isl gave up removing them")
    else:
        notes.append("it has too many accesses for its dependences to be drawn")
    shown = [(d, _needs(space, d)) for d in found]
    return Nest(
        name=name,
        kind=kind,
        rows=None if space.flat else space.loop.name,
        columns=_column_name(space),
        lanes=_lane_names(space.lanes),
        cells=tuple(limited(space.cells, list[Cell])),
        needs=_distinct((Order(d.kind.value), *pair) for d, pairs in shown for pair in pairs),
        forbidding=frozenset(
            pair for d, pairs in shown if d.carrier == space.loop for pair in pairs
        ),
        dependences=_in_words(found),
        note="; ".join(notes),
        span=space.loop.span,
    )


def _needs(space: _Space, dependence: Dependence) -> list[tuple[Cell, Cell]]:
    pairs = limited(lambda: space.needs(dependence), list[tuple[Cell, Cell]])
    return [(before, after) for before, after in pairs if before != after]


def direct(found: Sequence[Dependence]) -> tuple[list[Dependence], bool]:
    """Of a value that is read the last write of all, of one that is overwritten the first that does
    it: what lies further apart in time follows from these.

    And whether it is these alone: what isl finds too hard keeps some that follow from others.

    Source: P. Feautrier, Dataflow analysis of array and scalar references, IJPP 20 (1991).
    """
    groups: dict[tuple[DependenceKind, str, int], list[Dependence]] = {}
    for each in found:
        flow = each.kind is DependenceKind.FLOW
        statement, access = (
            (each.target, each.target_access) if flow else (each.source, each.source_access)
        )
        groups.setdefault((each.kind, statement.name, id(access)), []).append(each)
    nearest: dict[int, Dependence] = {}
    sharp = True
    for group in groups.values():
        relations = _nearest(group)
        sharp = sharp and all(relation is not None for relation in relations)
        for far, relation in zip(group, relations, strict=True):
            nearest[id(far)] = far if relation is None else replace(far, relation=relation)
    return [near for d in found if not (near := nearest[id(d)]).relation.is_empty()], sharp


def _nearest(group: Sequence[Dependence]) -> list[isl.Map | None]:
    """The pairs of each that are nearest, None where isl finds it too hard; all share the side that
    is not looked for.
    """
    flow = group[0].kind is DependenceKind.FLOW
    sure = [d for d in group if not flow or d.source.must_write(d.source_access)]
    depth = max(len(other.loops) for d in group for other in (d.source, d.target))

    def nearest(times: isl.Map) -> isl.Map:
        return last_of(times) if flow else first_of(times)

    def best() -> isl.Map:
        # Of each dependence first: of all of them at once it is far more work for isl.
        times = (nearest(_pairs_from(d).apply_range(_times(_other(d), depth))) for d in sure)
        return nearest(reduce(isl.Map.union, times))

    if not sure:
        first = None
    elif (first := limited(best, lambda: None)) is None:
        return [None for _ in group]
    exact = {id(d) for d in sure}
    return [
        limited(partial(_kept, d, first if id(d) in exact else None, depth), lambda: None)
        for d in group
    ]


def _kept(d: Dependence, best: isl.Map | None, depth: int) -> isl.Map:
    pairs = _pairs_from(d)
    if best is not None:
        pairs = pairs.intersect(best.apply_range(_times(_other(d), depth).reverse()))
    pairs = last_of(pairs) if d.kind is DependenceKind.FLOW else first_of(pairs)
    return pairs.reverse() if d.kind is DependenceKind.FLOW else pairs


def _pairs_from(d: Dependence) -> isl.Map:
    """From the side that is given to the one that is looked for."""
    return d.relation.reverse() if d.kind is DependenceKind.FLOW else d.relation


def _other(d: Dependence) -> Statement:
    return d.source if d.kind is DependenceKind.FLOW else d.target


def _times(statement: Statement, depth: int) -> isl.Map:
    """When each iteration runs: its schedule, made as long as any."""
    dims = [loop.name for loop in statement.loops]
    times = [str(statement.position[0])]
    for name, place in zip(dims, statement.position[1:], strict=True):
        times += [name, str(place)]
    times += ["0"] * (2 * depth + 1 - len(times))
    return isl.Map(f"{{ {statement.name}[{', '.join(dims)}] -> [{', '.join(times)}] }}")


def _pairs(statements: Sequence[Statement]) -> int:
    """Pairs of accesses to one array, at least one of them a write."""
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    for access in (access for statement in statements for access in statement.accesses):
        count = writes if access.writes else reads
        count[access.array.name] = count.get(access.array.name, 0) + 1
    return sum(n * (n + reads.get(name, 0)) for name, n in writes.items())


def _in_words(found: Iterable[Dependence]) -> tuple[Told, ...]:
    """The dependences in words, each once: flow first."""
    order = list(DependenceKind)
    told = [
        Told(
            Order(d.kind.value),
            str(d.source_access),
            d.source.span.line if d.source.span else None,
            str(d.target_access),
            d.target.span.line if d.target.span else None,
            tuple(loop.name for loop in d.common_loops),
            tuple(
                direction if step is None else str(step)
                for step, direction in zip(d.distance, d.directions, strict=True)
            ),
            d.carrier.name if d.carrier is not None else None,
            d.exact,
        )
        for d in sorted(found, key=lambda d: order.index(d.kind))
    ]
    return tuple(dict.fromkeys(told))


def _column_name(space: _Space) -> str:
    if space.flat:
        return space.loop.name
    return ", ".join(dict.fromkeys(loop.name for loop in space.lanes))


def _lane_names(loops: Sequence[Loop]) -> tuple[str, ...]:
    """The tasks they are in, or where that is one alone, their own names and lines."""
    tasks = [_task_around(loop.op) for loop in loops]
    if len(set(tasks)) == len(loops) > 1 and None not in tasks:
        return tuple(task or "" for task in tasks)
    return tuple(
        f"{loop.name}, line {loop.span.line}" if loop.span is not None else loop.name
        for loop in loops
    ) or ("",)


def _task_around(op: ir.Operation) -> str | None:
    around: ir.Operation | None = op
    while around is not None:
        if around.name in ("avial.task", "avial.replicate"):
            return ir.StringAttr(around.attributes["name"]).value
        around = parent_of(around)
    return None


def _second(statement: Statement) -> Loop | None:
    return statement.loops[1] if len(statement.loops) > 1 else None


def _projected(domain: isl.Set, depth: int) -> isl.Set:
    """Its first dimensions, for any value of the parameters."""
    kept = min(depth, domain.dim(SET))
    domain = domain.project_out(SET, kept, domain.dim(SET) - kept)
    return domain.project_out(PARAM, 0, domain.dim(PARAM))


def _least(domain: isl.Set, dim: int) -> int:
    value = domain.dim_min_val(dim)
    return value.to_python() if value.is_int() else 0


def _points(values: isl.Set, most: int) -> list[tuple[int, ...]]:
    """The points of a bounded set, at most so many."""
    found: list[tuple[int, ...]] = []
    count = values.dim(SET)

    def take(point: isl.Point) -> None:
        if len(found) < most:
            found.append(tuple(point.get_coordinate_val(SET, k).to_python() for k in range(count)))

    values.foreach_point(take)
    return sorted(found)


def _by_place(cell: Cell) -> tuple[int, int, int]:
    return (
        -1 if cell.row is None else cell.row,
        cell.lane,
        -(2**60) if cell.column is None else cell.column,
    )


def _distinct(
    needs: Iterable[tuple[Order, Cell, Cell]],
) -> tuple[tuple[Order, Cell, Cell], ...]:
    """Each pair once, with the strongest of its orders: flow, then anti, then output."""
    strongest: dict[tuple[Cell, Cell], Order] = {}
    ranked = list(Order)
    for order, before, after in needs:
        old = strongest.get((before, after))
        if old is None or ranked.index(order) < ranked.index(old):
            strongest[before, after] = order
    ordered = sorted(strongest, key=lambda pair: (_by_place(pair[0]), _by_place(pair[1])))
    return tuple((strongest[pair], *pair) for pair in ordered)

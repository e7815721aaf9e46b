"""Contractions: sums over a loop of something of a row with something of a column.

Scop, Units -> Contraction, the unit of it that has the form, and what can run before and after.

    for i, j, k:  C[i, j] += alpha * A[i, k] * B[k, j]     rows i, columns j, terms k
                  └ element    └─ left ─┘   └ right ┘

Every left value is used by all columns of its row, every right one by all rows of its column: n³
operations on n² values, which is what makes blocks worth while.

Source: K. Goto, R. van de Geijn, Anatomy of high-performance matrix multiplication, TOMS 34 (2008).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.polyhedral.dependences import Dependence, dependences
from avial_lab.compiler.analysis.polyhedral.ranges import Range, range_of
from avial_lab.compiler.analysis.polyhedral.scop import Access, Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.strides import stride_in_memory
from avial_lab.compiler.analysis.polyhedral.units import Unit, computed_by
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import comes_from, defined_in

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


@dataclass(frozen=True)
class Roles:
    """What each loop of a unit is, by its place: `around` stay outside in their order."""

    around: tuple[int, ...]
    row: int
    column: int
    term: int

    @property
    def order(self) -> tuple[int, ...]:
        return (*self.around, self.row, self.column, self.term)


@dataclass(frozen=True)
class Space:
    """Where the loops of a contraction run, in terms of those around, and of the row or the term
    where the name says so.
    """

    around: tuple[Range, ...]
    rows: Range
    columns: Range
    columns_of_row: Range
    columns_of_term: Range
    terms: Range
    terms_of_row: Range
    rows_of_term: Range | None
    """None where its ends would be fractions."""


NOWHERE = Space((), *[Range((), ())] * 6, rows_of_term=None)
"""Of a contraction whose ranges are not known yet."""


@dataclass(frozen=True)
class Contraction:
    """`element` is loaded, combined by `inner` with values of `left` and `right`, and stored.

    `left` values depend on the row and the term, `right` ones on the term and the column, and
    neither on what the contraction stores. `before` and `after` are the other units of the scop,
    each of which may run as a whole on its side of all of the contraction.
    """

    unit: Unit
    roles: Roles
    space: Space
    element: Statement
    store: Statement
    inner: tuple[ir.Operation, ...]
    left: tuple[ir.Value, ...]
    right: tuple[ir.Value, ...]
    before: tuple[Unit, ...]
    after: tuple[Unit, ...]

    @property
    def stored(self) -> ir.Value:
        return self.store.op.operands[0]


def contraction_in(scop: Scop, units: Sequence[Unit]) -> Contraction | None:
    """The first unit that is one, with everything else of the scop before or after it."""
    candidates = [candidate for unit in units for candidate in candidates_of(scop, unit)]
    if not candidates:
        return None
    known = dependences(scop)
    for candidate in candidates:
        space = space_of(candidate.unit.domain, candidate.unit, candidate.roles)
        sides = _sides(candidate.unit, units, known) if space is not None else None
        if space is not None and sides is not None and _may_be_blocked(candidate, known):
            return replace(candidate, space=space, before=sides[0], after=sides[1])
    return None


# -- form ------------------------------------------------------------------------------------------


def candidates_of(scop: Scop, unit: Unit) -> Iterator[Contraction]:
    """The unit as a contraction, for every choice of roles that has the form; where its loops run,
    and whether they may be moved, is not looked at yet.
    """
    stores = [s for s in unit.statements if any(access.writes for access in s.accesses)]
    if len(unit.loops) < 3 or len(stores) != 1 or stores[0].op.name not in STORES:
        return
    if any(loop.step != 1 for loop in unit.loops):
        return
    store = stores[0]
    element = next((s for s in unit.statements if s != store and _same_place(s, store)), None)
    if element is None or not has_rows_of_elements(store.op.operands[1]):
        return
    for roles in _roles(unit, store):
        split = _Body(scop.op, unit, roles, element).split(store.op)
        if split is not None:
            yield Contraction(unit, roles, NOWHERE, element, store, *split, (), ())


def _same_place(load: Statement, store: Statement) -> bool:
    if load.op.block != store.op.block or load.op.name not in LOADS:
        return False
    mine, other = load.accesses[0], store.accesses[0]
    return mine.array == other.array and bool(
        mine.relation.set_tuple_name(IN, "").is_equal(other.relation.set_tuple_name(IN, ""))
    )


def has_rows_of_elements(array: ir.Value) -> bool:
    """Whether its last dimension lies in memory element by element."""
    kind = ir.MemRefType(array.type)
    strides, _ = kind.get_strides_and_offset()
    return kind.rank > 0 and strides[-1] == 1


def _roles(unit: Unit, store: Statement) -> Iterator[Roles]:
    """The innermost loop that the store does not move with is that of terms; columns walk the array
    by single elements; rows are any other, the innermost first.
    """
    moved = [moves(store.accesses[0], k) for k in range(len(unit.loops))]
    still = [k for k, moving in enumerate(moved) if not moving]
    if not still:
        return
    term = still[-1]
    for column in range(len(unit.loops)):
        if stride_in_memory(store.accesses[0], column) != 1:
            continue
        for row in reversed(range(len(unit.loops))):
            if moved[row] and row != column:
                rest = [k for k in range(len(unit.loops)) if k not in (row, column, term)]
                yield Roles(tuple(rest), row, column, term)


def moves(access: Access, dim: int) -> bool:
    """Whether the element depends on that loop."""
    relation = access.relation
    for place in range(relation.dim(OUT)):
        rest = relation.project_out(OUT, place + 1, relation.dim(OUT) - place - 1)
        rest = rest.project_out(OUT, 0, place)
        if not rest.is_single_valued():
            return True
        for _, aff in isl.PwMultiAff.from_map(rest).get_pw_aff(0).get_pieces():
            if aff.involves_dims(IN, dim, 1):
                return True
    return False


_Split = tuple[tuple[ir.Operation, ...], tuple[ir.Value, ...], tuple[ir.Value, ...]]


class _Body:
    """What is computed for each element and term, and what for rows and columns alone."""

    def __init__(self, root: ir.Operation, unit: Unit, roles: Roles, element: Statement) -> None:
        self.root, self.unit, self.element = root, unit, element
        self.row = unit.loops[roles.row].variable
        self.column = unit.loops[roles.column].variable
        self.known: dict[ir.Value, tuple[bool, bool, bool]] = {}

    def split(self, store: ir.Operation) -> _Split | None:
        """Inner operations in their order, left values, right values; None if it has another
        form.
        """
        inner: dict[ir.Operation, None] = {}
        left: dict[ir.Value, None] = {}
        right: dict[ir.Value, None] = {}
        if not self._gather(store.operands[0], inner, left, right):
            return None
        if not right or not left or not inner:
            return None
        return tuple(inner), tuple(left), tuple(right)

    def _gather(
        self,
        value: ir.Value,
        inner: dict[ir.Operation, None],
        left: dict[ir.Value, None],
        right: dict[ir.Value, None],
    ) -> bool:
        """Put what `value` is made of where it belongs; whether it has a place."""
        of_row, of_column, of_element = self._depends(value)
        if value == self.element.op.results[0] or not defined_in(self.root, value):
            return True
        op = value.owner.operation if isinstance(value.owner, ir.OpView | ir.Operation) else None
        if op is None or not _is_number(value.type):
            return False
        if not of_element and not (of_row and of_column):
            if op.name != "arith.constant":
                (right if of_column else left)[value] = None
            return True
        if not is_elementwise(op):
            return False
        for operand in op.operands:
            if not self._gather(operand, inner, left, right):
                return False
        inner.setdefault(op)
        return True

    def _depends(self, value: ir.Value) -> tuple[bool, bool, bool]:
        """On the row, on the column, on the element as it was."""
        if value in self.known:
            return self.known[value]
        if value == self.element.op.results[0]:
            found = (True, True, True)
        elif isinstance(value.owner, ir.Block):
            found = (value == self.row, value == self.column, False)
        elif not defined_in(self.root, value):
            found = (False, False, False)
        else:
            each = [self._depends(operand) for operand in value.owner.operation.operands]
            found = tuple(any(one[k] for one in each) for k in range(3))
        self.known[value] = found  # pyright: ignore[reportArgumentType]
        return self.known[value]


def is_elementwise(op: ir.Operation) -> bool:
    """Whether it works on vectors as it does on numbers, and on zeros where there is no number."""
    return (
        op.name.startswith(("arith.", "math."))
        and op.name not in ("arith.constant", "arith.index_cast", "arith.index_castui")
        and not op.name.endswith(_TRAPPING)
        and not len(op.regions)
        and all(_is_number(value.type) for value in (*op.operands, *op.results))
    )


_TRAPPING = ("divsi", "divui", "remsi", "remui")
"""Of integers, by zero."""


def _is_number(kind: ir.Type) -> bool:
    return isinstance(kind, ir.FloatType | ir.IntegerType)


def form_of(found: Contraction) -> object:
    """Equal for contractions that compute the same where their rows, columns and terms have the
    same values.
    """
    unit = found.unit
    loops: dict[ir.Value, object] = {loop.variable: k for k, loop in enumerate(unit.loops)}

    def form(value: ir.Value) -> object:
        if value in loops or not defined_in(unit.loops[0].op, value):
            return loops.get(value, value)
        op = value.owner.operation
        return list(op.results).index(value), form_of_op(op)

    def form_of_op(op: ir.Operation) -> object:
        attributes = tuple((name, str(op.attributes[name])) for name in op.attributes)
        return op.name, attributes, *map(form, op.operands)

    return found.roles, form_of_op(found.store.op)


def loops_of_terms(found: Contraction) -> list[Loop]:
    """Those that add up one element, from the outermost on: not one of a single iteration, whose
    variable a subscript has.
    """
    stored, where = found.store.accesses[0], list(found.store.op.operands)[2:]
    return [
        loop
        for k, loop in enumerate(found.unit.loops)
        if not moves(stored, k) and not any(comes_from(each, loop.variable) for each in where)
    ]


# -- space -----------------------------------------------------------------------------------------


def space_of(domain: isl.Set, unit: Unit, roles: Roles) -> Space | None:
    """The ranges of the loops; None where they are not convex, or columns and terms of a row hang
    on each other.
    """
    names = [unit.loops[k].name for k in roles.order]
    points = _permuted(domain, roles.order)
    n = len(roles.around)
    row, column, term = n, n + 1, n + 2
    of_columns = points.project_out(SET, term, 1)
    of_terms = points.project_out(SET, column, 1)
    both = of_columns.add_dims(SET, 1).intersect(of_terms.insert_dims(SET, column, 1))
    if not both.is_equal(points):
        return None
    swapped = _permuted(points, (*range(n), term, column, row)).project_out(SET, n + 2, 1)
    names_swapped = [*names[:n], names[term], names[column]]
    ranges = [
        *(range_of(points, k, names) for k in range(n)),
        range_of(points, row, names),
        range_of(points.project_out(SET, row, 1), n, [*names[:n], names[column]]),
        range_of(of_columns, column, names),
        range_of(swapped, n + 1, names_swapped),
        range_of(of_terms.project_out(SET, row, 1), n, [*names[:n], names[term]]),
        range_of(of_terms, column, [*names[:column], names[term]]),
    ]
    if any(each is None for each in ranges):
        return None
    turned = range_of(_permuted(of_terms, (*range(n), n + 1, n)), n + 1, [*names[:n], names[term]])
    return Space(tuple(ranges[:n]), *ranges[n:], rows_of_term=turned)  # pyright: ignore[reportArgumentType]


def _permuted(points: isl.Set, order: Sequence[int]) -> isl.Set:
    """The same points with their dimensions in another order."""
    dims = ", ".join(f"x{k}" for k in range(len(order)))
    wanted = ", ".join(f"x{k}" for k in order)
    return points.reset_tuple_id().apply(isl.Map(f"{{ [{dims}] -> [{wanted}] }}"))


# -- dependences -----------------------------------------------------------------------------------


def _sides(
    unit: Unit, units: Sequence[Unit], known: Iterable[Dependence]
) -> tuple[tuple[Unit, ...], tuple[Unit, ...]] | None:
    """The units that have to run before, and those that then can run after; None where one is
    both.
    """
    of = {statement.name: each.name for each in units for statement in each.statements}
    edges = {(of[d.source.name], of[d.target.name]) for d in known if _between(d, of)}
    before: set[str] = set()
    todo = [unit.name]
    while todo:
        name = todo.pop()
        for source, target in edges:
            if target == name and source not in before:
                before.add(source)
                todo.append(source)
    if unit.name in before:
        return None
    rest = [each for each in units if each.name != unit.name]
    return (
        tuple(each for each in rest if each.name in before),
        tuple(each for each in rest if each.name not in before),
    )


def _between(dependence: Dependence, of: dict[str, str]) -> bool:
    source, target = of.get(dependence.source.name), of.get(dependence.target.name)
    return source is not None and target is not None and source != target


def _may_be_blocked(found: Contraction, known: Iterable[Dependence]) -> bool:
    """Whether every element still gets its terms in their order, and every left and right value is
    what it was, when for each iteration of the loops around all right values are read first, then
    all left ones before their row is stored.
    """
    inside = {statement.name for statement in (*found.unit.statements, *found.unit.sunk)}
    if not one_element_each(found):
        return False
    accumulates = {found.element.name, found.store.name}
    on_right = statements_behind(found.right, found)
    for each in known:
        if each.source.name not in inside or each.target.name not in inside:
            continue
        same = _same_around(each.relation, found.roles.around)
        if same is None:
            return False
        if same.is_empty() or {each.source.name, each.target.name} <= accumulates:
            continue
        if each.target.name == found.store.name and each.source.name in on_right:
            continue
        return False
    return True


def _same_around(relation: isl.Map, around: Sequence[int]) -> isl.Map | None:
    """The pairs of one iteration of the loops around; None where some go back in these."""
    rest = relation
    for k in around:
        back = rest.intersect(_compared(rest, k, ">"))
        if not back.is_empty():
            return None
        rest = rest.intersect(_compared(rest, k, "="))
    return rest


def _compared(relation: isl.Map, dim: int, sign: str) -> isl.Map:
    """The pairs whose source compares so with their target in one dimension."""
    space = relation.get_space()
    every = isl.Map.universe(space)
    if sign == "=":
        return every.equate(IN, dim, OUT, dim)
    return every.order_gt(IN, dim, OUT, dim)


def one_element_each(found: Contraction) -> bool:
    """Whether two elements are never one place in memory: iterations that differ in more than the
    loops of sums store to different places.
    """
    relation = found.store.accesses[0].relation
    for k in reversed(range(len(found.unit.loops))):
        if not moves(found.store.accesses[0], k):
            relation = relation.project_out(IN, k, 1)
    return bool(relation.is_injective())


def statements_behind(values: Iterable[ir.Value], found: Contraction) -> frozenset[str]:
    """The loads that the values are computed from."""
    at = {s.op: s.name for s in (*found.unit.statements, *found.unit.sunk)}
    todo = [value.owner.operation for value in values]
    seen: set[ir.Operation] = set()
    while todo:
        op = todo.pop()
        if op not in seen:
            seen.add(op)
            todo += computed_by(op)
    return frozenset(at[op] for op in seen if op in at)


def loaded_for(values: Iterable[ir.Value], found: Contraction) -> list[str]:
    """What they are computed from, `A[i, k]`, each once."""
    at = {s.name: s for s in (*found.unit.statements, *found.unit.sunk)}
    names = sorted(statements_behind(values, found))
    return list(dict.fromkeys(str(at[name].accesses[0]) for name in names))

"""Contractions that are products of matrices and nothing else: what BLAS calls gemm.

Contraction -> Products, each a factor, a left and a right matrix; or why it is none.

    for i, j, k:  C[i, j] += alpha * A[i, k] * B[k, j]     left A, right B, factors alpha
    for i, j, k:  C[i, j] -= A[k, i] * B[j, k]             negative; both the other way round

Source: J. Dongarra, J. Du Croz, S. Hammarling, I. Duff, A set of level 3 basic linear algebra
subprograms, TOMS 16 (1990).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from mlir import ir

from avial_lab.compiler.analysis.patterns.contractions import (
    IN,
    OUT,
    Contraction,
    has_rows_of_elements,
    statements_behind,
)
from avial_lab.compiler.analysis.patterns.factorisations import within_ranges
from avial_lab.compiler.analysis.patterns.interchange import OPERATIONS
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.scop import Access, Statement
from avial_lab.compiler.analysis.polyhedral.strides import factors_of, stride_of
from avial_lab.compiler.ir.effects import LOADS
from avial_lab.compiler.ir.nesting import defined_in


class NoProduct(Exception):
    """Why a contraction is no product of matrices; a reason for people."""


@dataclass(frozen=True)
class Product:
    """`factors` are the same for all rows, columns and terms; `left` and `right` are loads, or
    values that snapshots were taken of.
    """

    negative: bool
    factors: tuple[ir.Value, ...]
    left: ir.Value
    right: ir.Value


@dataclass
class _Draft:
    """A product as far as its operands have been looked at."""

    negative: bool
    factors: list[ir.Value] = field(default_factory=list[ir.Value])
    left: ir.Value | None = None
    right: ir.Value | None = None

    def done(self) -> Product:
        if self.left is None or self.right is None:
            raise NoProduct("its terms are not products of two matrices")
        return Product(self.negative, tuple(self.factors), self.left, self.right)


def products_in(
    root: ir.Operation, found: Contraction, kept: Collection[ir.Value] = ()
) -> tuple[Product, ...]:
    """What is added to each element for a term, product by product; `root` is the nest, `kept` are
    values that snapshots were taken of, side by side for each term.

    Rows may have columns of their own, in a triangle, but not terms. Raises NoProduct where it is
    something else, where a matrix has no rows or columns that lie element by element in memory, and
    where one shares elements with what is added to.
    """
    kind = found.stored.type
    if not isinstance(kind, ir.F32Type | ir.F64Type):
        raise NoProduct(f"its elements are {kind}, neither f32 nor f64")
    row = found.unit.loops[found.roles.row].name
    if row in found.space.terms_of_row.names:
        raise NoProduct(f"the range of its terms depends on {row}")
    columns = found.space.columns_of_row
    if not all(_goes_one_way(forms, row) for forms in (columns.lows, columns.highs)):
        raise NoProduct(f"the range of its columns is not monotonic in {row}")
    reader = _Reader(root, found, frozenset(kept))
    products = reader.added()
    if not _is_disjoint(found, frozenset(kept)):
        raise NoProduct("it reads elements that it stores")
    reader.check_elements()
    return products


@dataclass
class _Reader:
    root: ir.Operation
    found: Contraction
    kept: frozenset[ir.Value]

    def __post_init__(self) -> None:
        unit, roles = self.found.unit, self.found.roles
        self.loads = {s.op: s for s in (*unit.statements, *unit.sunk)}
        self.places = {loop.variable: place for place, loop in enumerate(unit.loops)}
        self.of_left = {roles.row, roles.term}
        self.of_right = {roles.term, roles.column}

    def added(self) -> tuple[Product, ...]:
        """The products that lead from the element as it was to what is stored, the first first."""
        value, products = self.found.stored, []
        element = self.found.element.op.results[0]
        while value != element:
            op = _owner(value)
            name = op.name if op is not None else ""
            if op is None or name not in ("math.fma", "arith.addf", "arith.subf"):
                raise NoProduct("its elements are not just sums of products")
            operands = list(op.operands)
            if name == "math.fma":
                value, parts = operands[2], operands[:2]
            elif name == "arith.addf" and not self._hangs_on(operands[0], element):
                value, parts = operands[1], operands[:1]
            else:
                value, parts = operands[0], operands[1:]
            draft = _Draft(negative=name == "arith.subf")
            for part in parts:
                self._times(draft, part)
            products.append(draft.done())
        return tuple(reversed(products))

    def _hangs_on(self, value: ir.Value, other: ir.Value) -> bool:
        op = _owner(value)
        if value == other or op is None or not defined_in(self.root, value):
            return value == other
        return any(self._hangs_on(each, other) for each in op.operands)

    def _times(self, draft: _Draft, value: ir.Value) -> None:
        """Put what `value` is made of where it belongs in the product."""
        op, loops, roles = _owner(value), self._loops(value), self.found.roles
        if not loops & (self.of_left | self.of_right):
            draft.factors.append(value)
        elif value in self.kept or (op is not None and op.name in LOADS):
            self._check_matrix(value)
            if draft.left is None and loops >= self.of_left and roles.column not in loops:
                draft.left = value
            elif draft.right is None and loops >= self.of_right and roles.row not in loops:
                draft.right = value
            else:
                raise NoProduct("its terms are not products of two matrices")
        elif op is not None and op.name == "arith.negf":
            draft.negative = not draft.negative
            self._times(draft, op.operands[0])
        elif op is not None and op.name == "arith.mulf":
            for operand in op.operands:
                self._times(draft, operand)
        else:
            raise NoProduct("its operands are computed, not loaded")

    def _loops(self, value: ir.Value) -> set[int]:
        """The places of the unit's loops that the value depends on."""
        if value in self.places:
            return {self.places[value]}
        if value in self.kept:
            left = value in self.found.left
            return set(self.of_left if left else self.of_right)
        op = _owner(value)
        if not defined_in(self.root, value):
            return set()
        if op is None:
            raise NoProduct("a loop carries a value")
        return set().union(*(self._loops(each) for each in op.operands))

    def _check_matrix(self, value: ir.Value) -> None:
        """Whether one of its two loops goes from each element to the one beside, and the other by
        whole rows.
        """
        if value in self.kept:
            return
        statement = self.loads[value.owner.operation]
        loops = self.of_left if self._loops(value) >= self.of_left else self.of_right
        first, second = (statement.loops.index(self.found.unit.loops[k]) for k in sorted(loops))
        access, array = statement.accesses[0], statement.op.operands[0]
        if not has_rows_of_elements(array) or not any(
            stride_of(access, along) == 1 and _goes_by_rows(access, across)
            for along, across in ((first, second), (second, first))
        ):
            raise NoProduct(f"neither rows nor columns of {access} are contiguous")

    def check_elements(self) -> None:
        """Whether the elements that are added to are rows, too."""
        access, roles = self.found.store.accesses[0], self.found.roles
        if stride_of(access, roles.column) != 1 or not _goes_by_rows(access, roles.row):
            raise NoProduct(f"{access} is not a matrix with contiguous rows")


def _goes_one_way(forms: Sequence[Affine], name: str) -> bool:
    """Whether the forms all grow with that variable, or all shrink, or stay."""
    factors = [factor for form in forms for term, factor in form.terms if term == name]
    return not factors or min(factors) > 0 or max(factors) < 0


def _owner(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _goes_by_rows(access: Access, dim: int) -> bool:
    """Whether that loop goes on by as many rows each time, and stays in its column."""
    factors = factors_of(access, dim)
    return factors is not None and factors[-1] == 0 and min(factors) >= 0 and max(factors) > 0


def _is_disjoint(found: Contraction, kept: frozenset[ir.Value]) -> bool:
    """Whether what is read of the matrices is not stored to for the same values of the loops
    around.
    """
    values = [value for value in (*found.left, *found.right) if value not in kept]
    names = statements_behind(values, found)
    readers = [s for s in found.unit.statements if s.name in names]
    return limited(
        lambda: not any(_meets(each, found) for each in readers), lambda: False, limit=OPERATIONS
    )


def _meets(reader: Statement, found: Contraction) -> bool:
    store = found.store.accesses[0]
    read = next(access for access in reader.accesses if not access.writes)
    if read.array != store.array:
        return False
    points = within_ranges(found)
    read_by, stored_by = (
        access.relation.intersect_domain(points.set_tuple_name(name))
        for access, name in ((read, reader.name), (store, found.store.name))
    )
    pairs = read_by.apply_range(stored_by.reverse())
    for place in found.roles.around:
        pairs = pairs.equate(IN, place, OUT, place)
    return not pairs.is_empty()

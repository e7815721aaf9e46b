"""Short rows that lie one behind the other in memory as one long row.

Functions of loops -> the same operations on every element of memory, in the same order.

Source: the loops of M. Wolfe, High Performance Compilers for Parallel Computing (1996), 9.9,
coalescing, where no subscript has to be divided again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.analysis.accesses.no_alias import functions_and_phases
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among
from avial_lab.compiler.analysis.polyhedral.loop_ends import known_ends
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.loops.unroll_and_jam import variable_of
from avial_lab.compiler.ir.attributes import INDEPENDENT
from avial_lab.compiler.ir.dialects.avial import rebuilt_with
from avial_lab.compiler.ir.effects import is_pure
from avial_lab.compiler.ir.nesting import body_of, parent_of
from avial_lab.compiler.ir.operations import Element, attributes_of, lies_whole, loops_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.compiler.ir.views import DYNAMIC

NAME = "coalesce-loops"
SUMS = "coalesce-reductions"

LONG = 512
"""Elements of a row that lose little at their ends."""


@dataclass(frozen=True)
class CoalesceLoops:
    """One loop over rows and columns where both go through whole rows of all arrays.

    before:  affine.for %i = 0 to %n { affine.for %j = 0 to 7 { B[%i, %j] = f(A[%i, %j]) } }
    after:   affine.for %i = 0 to %n * 7 { B'[%i] = f(A'[%i]) }
             where A' and B' are A and B with their last two dimensions as one

    Vectors go on from one row into the next, where each row left some elements over that run one by
    one. Of several loops inside one another as many as it takes for a long row, and only where no
    two of their iterations meet.
    """

    def __call__(self, module: ir.Operation) -> None:
        _flatten_in(module, NAME, _is_short_row)

    def __str__(self) -> str:
        return NAME


@dataclass(frozen=True)
class CoalesceReductions:
    """The same for what rows and columns add to the same elements, in its order.

    before:  affine.for %i = 0 to 56 { affine.for %j = 0 to 56 { s[%c] += A[%c, %i, %j] } }
    after:   affine.for %i = 0 to 56 * 56 { s[%c] += A'[%c, %i] }

    A sum in vectors has their elements to add up once, and not for each row.
    """

    def __call__(self, module: ir.Operation) -> None:
        _flatten_in(module, SUMS, _is_short_sum)

    def __str__(self) -> str:
        return SUMS


_IsShort = Callable[[ir.Operation], bool]


def _flatten_in(module: ir.Operation, name: str, is_short: _IsShort) -> None:
    with module.context:
        for function, phase in functions_and_phases(module):
            for loop in list(filter(is_short, loops_in(function))):
                names = _flatten(loop, is_short)
                if len(names) > 1:
                    add_remark(
                        phase,
                        name,
                        f"loops {listed(names)} coalesced: their rows are contiguous in memory",
                    )


def _flatten(row: ir.Operation, is_short: _IsShort) -> list[str]:
    """Make one loop of the row and those around it, as long as it is short; their names."""
    names = [loop_name(row)]
    while is_short(row):
        around = parent_of(row)
        assert around is not None, "a loop stands in a function"
        rows = _Rows(around, row)
        if not rows.lie_side_by_side():
            break
        names.append(loop_name(rows.loop))
        row = rows.written()
    return names[::-1]


def _is_short_row(op: ir.Operation) -> bool:
    return INDEPENDENT in op.attributes and _is_short(op)


def _is_short_sum(op: ir.Operation) -> bool:
    """Whether it is one in a loop that stores to the same element in all iterations of both."""
    around = parent_of(op)
    if around is None or around.name != "affine.for" or not _is_short(op):
        return False
    both = [variable_of(each) for each in (around, op)]
    stores = (inner for inner in body_of(op) if inner.name == "affine.store")
    return any(not any(value in both for value in _subscripts(store)) for store in stores)


def _is_short(op: ir.Operation) -> bool:
    count = _columns(op)
    return count is not None and count <= LONG


def _columns(row: ir.Operation) -> int | None:
    """How many, from 0 on; None where that is not known, or it is no innermost loop."""
    if row.name != "affine.for" or len(row.results) or _step(row) != 1:
        return None
    if any(len(op.regions) for op in body_of(row)):
        return None
    lows, highs = known_ends(row)
    return highs[0] if lows == [0] and len(highs) == 1 else None


def _step(loop: ir.Operation) -> int:
    return ir.IntegerAttr(loop.attributes["step"]).value


@dataclass(frozen=True)
class _Rows:
    """A loop, and the row that it ends with."""

    loop: ir.Operation
    row: ir.Operation

    # -- whether they are one row

    def lie_side_by_side(self) -> bool:
        plain = self.loop.name == "affine.for" and not len(self.loop.results)
        if not plain or _step(self.loop) != 1 or body_of(self.loop)[-1] != self.row:
            return False
        if not all(_is_plain(op) for op in (*self._before, *self._body)):
            return False
        in_order = INDEPENDENT not in self.row.attributes
        if self._before and (in_order or not self._runs()):
            return False
        uses = [use.owner.operation for value in self._variables for use in value.uses]
        through = all(
            op in self._body and _is_access(op) and self._shift(op) is not None for op in uses
        )
        return through and (in_order or self._meet_nowhere())

    @cached_property
    def _before(self) -> list[ir.Operation]:
        """What is computed before the row, and is then the same for all of them."""
        return body_of(self.loop)[:-1]

    def _runs(self) -> bool:
        """Whether there is a row for certain."""
        lows, highs = known_ends(self.loop)
        low, high = (ends[0] if len(ends) == 1 else None for ends in (lows, highs))
        return low is not None and high is not None and low < high

    @cached_property
    def _body(self) -> list[ir.Operation]:
        return body_of(self.row)

    @cached_property
    def _variables(self) -> tuple[ir.Value, ir.Value]:
        return variable_of(self.loop), variable_of(self.row)

    def _goes_along(self, op: ir.Operation) -> bool:
        return _is_access(op) and any(value in self._variables for value in _subscripts(op))

    def _shift(self, op: ir.Operation) -> int | None:
        """By how many rows it is away from `array[…, %i, %j]`; None where it is something else."""
        if op.name == "affine.store" and op.operands[0] in self._variables:
            return None
        kind = ir.MemRefType(_array(op).type)
        form, where = ir.AffineMapAttr(op.attributes["map"]).value, _subscripts(op)
        if kind.rank < 2 or kind.shape[-1] != _columns(self.row) or not lies_whole(kind):
            return None
        i, j = self._variables
        if any(value in self._variables for value in where[form.n_dims :]):
            return None
        dims = [ir.AffineExpr.get_dim(k) for k in range(form.n_dims)]
        of_i, of_j = (
            [k for k, value in enumerate(where[: form.n_dims]) if value == v] for v in (i, j)
        )
        if len(of_i) != 1 or len(of_j) != 1:
            return None
        *others, row, column = form.results
        moved = [d + 1 if k in (*of_i, *of_j) else d for k, d in enumerate(dims)]
        symbols = [ir.AffineExpr.get_symbol(k) for k in range(form.n_symbols)]
        after = ir.AffineMap.get(form.n_dims, form.n_symbols, [*moved, *symbols])
        if column != dims[of_j[0]] or any(each.compose(after) != each for each in others):
            return None
        shift = ir.AffineExpr.simplify_affine_expr(row - dims[of_i[0]], form.n_dims, form.n_symbols)
        # It comes as an expression of no kind; those of a map come as what they are.
        (shift,) = ir.AffineMap.get(form.n_dims, form.n_symbols, [shift]).results
        return shift.value if isinstance(shift, ir.AffineConstantExpr) else None

    def _meet_nowhere(self) -> bool:
        scop = read_scop(self.loop)
        (own,) = scop.loops_of(self.loop)
        return not carried_among(own, scop.statements)

    # -- what becomes of them

    def written(self) -> ir.Operation:
        """The one loop, in their place."""
        columns = _columns(self.row)
        assert columns is not None
        for op in self._before:
            op.move_before(self.loop)
        flat = {array: self._flat(array) for array in dict.fromkeys(self._arrays())}
        for op in self._body:
            if self._goes_along(op):
                self._rewrite(op, flat[_array(op)], columns)
            else:
                op.move_before(self.row)
        attributes = attributes_of(self.loop)
        if INDEPENDENT in self.row.attributes:
            attributes[INDEPENDENT] = self.row.attributes[INDEPENDENT]
        for end in ("lowerBoundMap", "upperBoundMap"):
            attributes[end] = _times(self.loop.attributes[end], columns)
        self.row.erase()
        return rebuilt_with(self.loop, list(self.loop.operands), attributes)

    def _arrays(self) -> Iterator[ir.Value]:
        return (_array(op) for op in self._body if self._goes_along(op))

    def _flat(self, array: ir.Value) -> ir.Value:
        """Its last two dimensions as one."""
        kind = ir.MemRefType(array.type)
        *shape, rows, columns = kind.shape
        shape.append(DYNAMIC if rows == DYNAMIC else rows * columns)
        groups = [[k] for k in range(kind.rank - 2)] + [[kind.rank - 2, kind.rank - 1]]
        with _after(array), self.loop.location:
            flat = ir.MemRefType.get(shape, kind.element_type, memory_space=kind.memory_space)
            return memref.CollapseShapeOp(flat, array, groups).result

    def _rewrite(self, op: ir.Operation, flat: ir.Value, columns: int) -> None:
        """Its subscripts without the row's, which is in the column's."""
        shift = self._shift(op)
        assert shift is not None
        form, where = ir.AffineMapAttr(op.attributes["map"]).value, _subscripts(op)
        i, j = self._variables
        row = where.index(i)
        dims: list[ir.AffineExpr] = [ir.AffineExpr.get_dim(k) for k in range(form.n_dims - 1)]
        dims.insert(row, ir.AffineExpr.get_constant(0))
        symbols = [ir.AffineExpr.get_symbol(k) for k in range(form.n_symbols)]
        without = ir.AffineMap.get(form.n_dims - 1, form.n_symbols, [*dims, *symbols])
        *others, _, column = (each.compose(without) for each in form.results)
        place = [*others, column + shift * columns]
        map_ = ir.AffineMap.get(form.n_dims - 1, form.n_symbols, place)
        subscripts = tuple(i if value == j else value for value in where if value != i)
        element = Element(flat, subscripts, ir.AffineMapAttr.get(map_))
        with ir.InsertionPoint(self.row), op.location:
            if op.name == "affine.store":
                element.store(op.operands[0])
            else:
                op.results[0].replace_all_uses_with(element.load())
        op.erase()


def _after(array: ir.Value) -> ir.InsertionPoint:
    """Where it is there for all."""
    owner = array.owner
    if isinstance(owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(owner)
    return ir.InsertionPoint.after(owner)


def _is_plain(op: ir.Operation) -> bool:
    return not len(op.regions) and (_is_access(op) or is_pure(op))


def _is_access(op: ir.Operation) -> bool:
    return op.name in ("affine.load", "affine.store")


def _array(op: ir.Operation) -> ir.Value:
    return op.operands[1 if op.name == "affine.store" else 0]


def _subscripts(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[2 if op.name == "affine.store" else 1 :]


def _times(ends: ir.Attribute, factor: int) -> ir.AffineMapAttr:
    form = ir.AffineMapAttr(ends).value
    results = [each * factor for each in form.results]
    return ir.AffineMapAttr.get(ir.AffineMap.get(form.n_dims, form.n_symbols, results))

"""Values that loops carry become arrays, where that lets the loops be put into a better order.

Functions of loops -> the same values, every element's in the same order. A scalar that is made anew
in every iteration of a loop keeps what is around it from moving; with an element for each of them
nothing does.

Source: M. Wolfe, High performance compilers for parallel computing (1996), section 9.3 (scalar
expansion).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import memref

from avial_lab.passes.arrays_apart import functions_of_arrays_apart
from avial_lab.passes.elements import Element, element_of
from avial_lab.passes.mark_parallel import free_nests
from avial_lab.passes.operations import attributes_of, operations_in
from avial_lab.passes.promote_scalars import LOADS, STORES
from avial_lab.polyhedra import Loop, Scop, Statement, read_scop
from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.nesting import defined_in, parent_of
from avial_lab.polyhedra.orders import better_order
from avial_lab.polyhedra.own_elements import own_elements
from avial_lab.polyhedra.privacy import reads_its_own
from avial_lab.polyhedra.units import Immovable, units_of

FOR = "affine.for"
LOOPS = (FOR, "scf.for", "affine.parallel", "scf.parallel")
MOST_ELEMENTS = 1 << 16
"""Of one array that a scalar becomes: more would push out of the caches what the loops are for."""


@dataclass(frozen=True)
class ExpandScalars:
    """One element for each iteration of the loop around: a row that fits into a cache.

    before:  affine.for %i { affine.for %j { %s = affine.for %k iter_args(%t = %zero) { … C[k, j] }
                                             … %s … C[i, j] … } }
    after:   affine.for %i { affine.for %j { store %zero, %row[j]
                                             affine.for %k { … load, store %row[j] … C[k, j] }
                                             … load %row[j] … C[i, j] … } }

    A value that starts as an element of an array and ends up in it needs no row: the element itself
    holds it meanwhile, where nobody else looks at it. A nest for which order-loops would find
    nothing better then stays exactly as it was.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                for nest in list(free_nests(function)):
                    if nest.name == FOR:
                        _expand(nest)

    def __str__(self) -> str:
        return "expand-scalars"


# -- one nest --------------------------------------------------------------------------------------


def _expand(nest: ir.Operation) -> None:
    cells = _cells(nest)
    if not cells and not any(len(op.results) for op in _loops(nest)[1:]):
        return
    scop = read_scop(nest)
    homes = {cell: home for cell in cells if (home := _home(scop, nest, cell)) is not None}
    with nest.location, ir.InsertionPoint(nest):
        trial = nest.clone().operation
        rows = _Rows(scop, nest, trial)
        done = rows.expand(homes)
        if done and _finds_order(trial):
            for old, new in zip(nest.results, trial.results, strict=True):
                old.replace_all_uses_with(new)
            nest.erase()
            return
        trial.erase()
        for row in rows.made:
            row.erase()


def _finds_order(nest: ir.Operation) -> bool:
    try:
        scop = read_scop(nest)
        return better_order(scop, units_of(scop)) is not None
    except Immovable:
        return False


def _loops(nest: ir.Operation) -> list[ir.Operation]:
    return [op for op in (nest, *operations_in(nest)) if op.name in (FOR, "scf.for")]


def _cells(nest: ir.Operation) -> list[ir.Value]:
    """Memory of one element that is loaded and stored in the nest, and made outside."""
    found = [
        op.operands[op.name in STORES] for op in operations_in(nest) if op.name in (*LOADS, *STORES)
    ]
    return [cell for cell in dict.fromkeys(found) if _is_cell(cell) and not defined_in(nest, cell)]


def _is_cell(memory: ir.Value) -> bool:
    return isinstance(memory.type, ir.MemRefType) and not memory.type.shape


def _home(scop: Scop, nest: ir.Operation, cell: ir.Value) -> ir.Operation | None:
    """The innermost loop around all uses of `cell`, if each of its iterations reads only what it
    wrote there itself, and surely writes it.
    """
    array = next((a for a in scop.arrays if a.value is not None and a.value == cell), None)
    users = [s for s in scop.statements if any(a.array is array for a in s.accesses)]
    if not users or any(op not in {s.op for s in users} for op in _uses_in(nest, cell)):
        return None
    common = _common(users)
    if not common or not all(s.exact for s in users):
        return None
    assert array is not None
    home, depth = common[-1], len(common) - 1
    own = reads_its_own(array, users, {s.name: depth for s in users}, depth)
    first = users[0].op
    sure = first.name in STORES and first.block == home.op.regions[0].blocks[0]
    return home.op if own and sure else None


def _uses_in(nest: ir.Operation, cell: ir.Value) -> list[ir.Operation]:
    return [op for op in operations_in(nest) if cell in list(op.operands)]


def _common(statements: Sequence[Statement]) -> tuple[Loop, ...]:
    common = statements[0].loops
    for statement in statements[1:]:
        length = 0
        for a, b in zip(common, statement.loops, strict=False):
            if a != b:
                break
            length += 1
        common = common[:length]
    return common


class _Rows:
    """Makes the arrays before a nest, and puts them into its copy `trial`."""

    def __init__(self, scop: Scop, nest: ir.Operation, trial: ir.Operation) -> None:
        self.scop = scop
        self.made: list[ir.Operation] = []
        self.of = dict(zip(_loops(nest), _loops(trial), strict=True))
        self.trial = trial

    def expand(self, homes: Mapping[ir.Value, ir.Operation]) -> bool:
        """Whether everything could be given an array."""
        carrying = [loop for loop in self.of if len(loop.results) and self.of[loop] != self.trial]
        at_home = {loop: own_elements(self.scop, loop) for loop in carrying}
        in_rows = [loop for loop in carrying if not all(at_home[loop])]
        wanted = [*homes.values(), *map(parent_loop, in_rows)]
        extents = {home: _extent(self.scop, home) for home in wanted}
        if any(extent is None or extent[1] > MOST_ELEMENTS for extent in extents.values()):
            return False
        if any(loop.name != FOR for loop in carrying):
            return False
        sizes = {home: extent for home, extent in extents.items() if extent is not None}
        for cell, home in homes.items():
            self._replace(cell, home, sizes[home])
        for loop in reversed(carrying):
            self._carry(loop, at_home[loop], sizes)
        return True

    def _row(self, kind: ir.Type, size: int) -> ir.Value:
        with self.trial.location, ir.InsertionPoint(self.trial):
            row = memref.alloca(ir.MemRefType.get([size], kind), [], [])
        self.made.append(row.owner.operation)
        return row

    def _replace(self, cell: ir.Value, home: ir.Operation, extent: tuple[int, int]) -> None:
        """Each use of the cell in the copy becomes one of the row's element; the cell gets the last
        value of every iteration, for whoever reads it later.
        """
        loop = self.of[home]
        element = _of_row(self._row(ir.MemRefType(cell.type).element_type, extent[1]), loop, extent)
        uses = _uses_in(self.trial, cell)
        with loop.location, ir.InsertionPoint.at_block_terminator(loop.regions[0].blocks[0]):
            ir.Operation.create("memref.store", [], [element.load(), cell])
        for op in uses:
            with op.location, ir.InsertionPoint(op):
                if op.name in LOADS:
                    op.results[0].replace_all_uses_with(element.load())
                else:
                    element.store(op.operands[0])
            op.erase()

    def _carry(
        self,
        origin: ir.Operation,
        at_home: Sequence[bool],
        extents: Mapping[ir.Operation, tuple[int, int]],
    ) -> None:
        """The same loop with its carried values in memory: those `at_home` in the elements that
        they come from, the others in rows.
        """
        loop, count = self.of[origin], len(origin.results)
        inits = list(loop.operands)[len(loop.operands) - count :]
        elements: list[Element] = []
        with ir.InsertionPoint(loop), loop.location:
            for init, own in zip(inits, at_home, strict=True):
                if own:
                    elements.append(element_of(init.owner.operation))
                    continue
                home = parent_loop(origin)
                row = self._row(init.type, extents[home][1])
                elements.append(_of_row(row, self.of[home], extents[home]))
                elements[-1].store(init)
            new, body = _without_values(loop)
        old = loop.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(body), loop.location:
            for argument, element in zip(list(old.arguments)[1:], elements, strict=True):
                argument.replace_all_uses_with(element.load())
        old.arguments[0].replace_all_uses_with(body.arguments[0])
        end = body.operations[-1].operation
        *moved, finish = [view.operation for view in old.operations]
        for op in moved:
            op.move_before(end)
        with ir.InsertionPoint(end), loop.location:
            for value, element in zip(finish.operands, elements, strict=True):
                element.store(value)
        with ir.InsertionPoint(new), loop.location:
            last = [element.load() for element in elements]
        for result, value in zip(loop.results, last, strict=True):
            result.replace_all_uses_with(value)
            value.owner.operation.move_after(new)
        loop.erase()


def _of_row(row: ir.Value, loop: ir.Operation, extent: tuple[int, int]) -> Element:
    """The element for each iteration of `loop`."""
    form = ir.AffineMap.get(1, 0, [ir.AffineDimExpr.get(0) - extent[0]])
    variable = loop.regions[0].blocks[0].arguments[0]
    return Element(row, (variable,), ir.AffineMapAttr.get(form))


def parent_loop(loop: ir.Operation) -> ir.Operation:
    """The loop around, which there is."""
    around = parent_of(loop)
    while around is not None and around.name not in LOOPS:
        around = parent_of(around)
    assert around is not None
    return around


def _extent(scop: Scop, loop: ir.Operation) -> tuple[int, int] | None:
    """The first value of the loop's variable and how many there are to its last, where that is
    known for all that is not.
    """
    if loop.name != FOR:
        return None
    (own,) = scop.loops_of(loop)
    known = scop.iterations.get(own)
    if known is None:
        return None

    def ends() -> tuple[int, int] | None:
        values = known.project_out_all_params()
        low, high = values.dim_min_val(own.depth), values.dim_max_val(own.depth)
        if not (low.is_int() and high.is_int()):
            return None
        return low.to_python(), high.to_python() - low.to_python() + 1

    return limited(ends, lambda: None)


def _without_values(loop: ir.Operation) -> tuple[ir.Operation, ir.Block]:
    """A loop over the same range that carries nothing, still empty."""
    attributes = attributes_of(loop)
    lows, highs, carried = ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"])
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([lows, highs, 0])
    operands = list(loop.operands)[: lows + highs]
    assert carried == len(loop.results)
    new = ir.Operation.create(FOR, [], operands, attributes, regions=1)
    variable = loop.regions[0].blocks[0].arguments[0]
    body = new.regions[0].blocks.append(variable.type, arg_locs=[variable.location])
    with ir.InsertionPoint(body):
        ir.Operation.create("affine.yield")
    return new, body

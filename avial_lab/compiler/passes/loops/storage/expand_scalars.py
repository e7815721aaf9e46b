"""Values that loops carry become arrays, where that lets the loops be put into a better order.

Functions of loops -> the same values, every element's in the same order. A scalar that is made anew
in every iteration of a loop keeps what is around it from moving; with an element for each of them
nothing does. Where that makes a contraction of it, which goes in blocks, there is an element for
each iteration of all loops around.

Source: M. Wolfe, High performance compilers for parallel computing (1996), section 9.3 (scalar
expansion).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.loop_carried import own_elements
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests
from avial_lab.compiler.analysis.parallelism.privatisation import reads_its_own
from avial_lab.compiler.analysis.patterns.contractions import contraction_in
from avial_lab.compiler.analysis.patterns.interchange import OPERATIONS, better_order
from avial_lab.compiler.analysis.patterns.split_reductions import pieced_sum_in
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.loop_ends import FOR, extent_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Scop, Statement
from avial_lab.compiler.analysis.polyhedral.units import Immovable, units_of
from avial_lab.compiler.ir.effects import ACCESSES, LOADS, STORES
from avial_lab.compiler.ir.nesting import defined_in, handed_through, inits_of, parent_of
from avial_lab.compiler.ir.operations import (
    LOOPS,
    Element,
    attributes_of,
    element_of,
    loops_in,
    operations_in,
)

MOST_ELEMENTS = 1 << 16
"""Of a row that a scalar becomes: more would push out of the caches what the loops are for."""


@dataclass(frozen=True)
class ExpandScalars:
    """One element for each iteration of the loop around: a row that fits into a cache. With
    `blocks`, for each of all loops around where that gives block-contractions a contraction; with
    `sums`, merge-split-reductions one to make of its pieces.

    before:  affine.for %i { affine.for %j { %s = affine.for %k iter_args(%t = %zero) { … C[k, j] }
                                             … %s … C[i, j] … } }
    after:   affine.for %i { affine.for %j { store %zero, %row[j]
                                             affine.for %k { … load, store %row[j] … C[k, j] }
                                             … load %row[j] … C[i, j] … } }

    A value that starts as an element of an array and ends up in it needs no row: the element itself
    holds it meanwhile, where nobody else looks at it. One that several loops hand through, as a sum
    over two dimensions, has one element. A nest for which interchange-loops would find nothing
    better then stays exactly as it was.
    """

    blocks: bool = False
    sums: bool = False

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for nest in list(free_nests(function)):
                    if nest.name == FOR:
                        _expand(nest, blocks=self.blocks, sums=self.sums)

    def __str__(self) -> str:
        given = [f"{name}=true" for name in ("blocks", "sums") if getattr(self, name)]
        options = " ".join(given)
        return f"expand-scalars{{{options}}}" if given else "expand-scalars"


# -- one nest --------------------------------------------------------------------------------------


def _expand(nest: ir.Operation, *, blocks: bool, sums: bool) -> None:
    cells = _cells(nest)
    carrying = [loop for loop in _loops(nest)[1:] if len(loop.results)]
    if not cells and not carrying:
        return
    scop = read_scop(nest)
    homes = {cell: home for cell in cells if (home := _home(scop, nest, cell)) is not None}
    wide = blocks and any(parent_loop(loop) != nest for loop in carrying)
    most = most_elements(scop) if wide else 0
    is_better = _finds_sum if sums else finds_contraction
    if not (most and _try(scop, nest, homes, is_better, whole=most)):
        _try(scop, nest, homes, _finds_order)


def _try(
    scop: Scop,
    nest: ir.Operation,
    homes: Mapping[ir.Value, ir.Operation],
    is_better: Callable[[ir.Operation], bool],
    *,
    whole: int = 0,
) -> bool:
    """Whether the nest is better with arrays in it, and has been replaced by that."""
    with nest.location, ir.InsertionPoint(nest):
        trial = nest.clone().operation
        rows = _Rows(scop, nest, trial, whole)
        if rows.expand(homes) and is_better(trial):
            for old, new in zip(nest.results, trial.results, strict=True):
                old.replace_all_uses_with(new)
            nest.erase()
            return True
        trial.erase()
        for row in reversed(rows.made):
            row.erase()
    return False


def most_elements(scop: Scop) -> int:
    """Of an array of the nest: what is made for it is to be no larger than what there is."""
    known = [[n for n in array.shape if n is not None] for array in scop.arrays]
    each = zip(scop.arrays, known, strict=True)
    return max((prod(sizes) for array, sizes in each if len(sizes) == array.rank), default=0)


def finds_contraction(nest: ir.Operation) -> bool:
    try:
        scop = read_scop(nest)
        units = units_of(scop, apart=True)
    except Immovable:
        return False
    return limited(lambda: contraction_in(scop, units), lambda: None, limit=OPERATIONS) is not None


def _finds_sum(nest: ir.Operation) -> bool:
    """Whether there is a contraction, or one will be made of the pieces of a sum."""
    return finds_contraction(nest) or pieced_sum_in(read_scop(nest)) is not None


def _finds_order(nest: ir.Operation) -> bool:
    try:
        scop = read_scop(nest)
        return better_order(scop, units_of(scop)) is not None
    except Immovable:
        return False


def _loops(nest: ir.Operation) -> list[ir.Operation]:
    return [op for op in (nest, *loops_in(nest)) if op.name in (FOR, "scf.for")]


def _cells(nest: ir.Operation) -> list[ir.Value]:
    """Memory of one element that is loaded and stored in the nest, and made outside."""
    found = [op.operands[op.name in STORES] for op in operations_in(nest) if op.name in ACCESSES]
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
    if any(cell not in list(s.op.operands) for s in users):
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
    """Makes the arrays before a nest, and puts them into its copy `trial`.

    They have an element for each iteration of the loop around; with `whole` of all loops around, if
    that makes no more elements than so many.
    """

    def __init__(self, scop: Scop, nest: ir.Operation, trial: ir.Operation, whole: int) -> None:
        self.scop = scop
        self.whole = whole
        self.made: list[ir.Operation] = []
        self.of = dict(zip(_loops(nest), _loops(trial), strict=True))
        # Carried values by their loop and number: the one that a value is there for another loop.
        self.leaders: dict[tuple[ir.Operation, int], tuple[ir.Operation, int]] = {}
        self.elements: dict[tuple[ir.Operation, int], Element] = {}
        self.nest, self.trial = nest, trial

    def expand(self, homes: Mapping[ir.Value, ir.Operation]) -> bool:
        """Whether everything could be given an array."""
        carrying = [loop for loop in self.of if len(loop.results) and self.of[loop] != self.trial]
        at_home = {loop: own_elements(self.scop, loop) for loop in carrying}
        for loop in carrying:
            for number in range(len(loop.results)):
                inner = handed_through(loop, number)
                if inner is not None:
                    self.leaders[inner] = loop, number
        in_rows = [
            loop
            for loop in carrying
            if not all(own or (loop, k) in self.leaders for k, own in enumerate(at_home[loop]))
        ]
        wanted = dict.fromkeys([*homes.values(), *map(parent_loop, in_rows)])
        axes = {home: each for home in wanted if (each := self._axes(home)) is not None}
        if len(axes) < len(wanted) or any(loop.name != FOR for loop in carrying):
            return False
        for cell, home in homes.items():
            self._replace(cell, axes[home])
        for loop in reversed(carrying):
            self._carry(loop, at_home, axes)
        return True

    def _axes(self, home: ir.Operation) -> _Axes | None:
        """The loops around, with the extents of their variables; None where these are not known, or
        too large.
        """
        loops = [home]
        while self.whole and loops[0] != self.nest:
            loops.insert(0, parent_loop(loops[0]))
        extents = [extent_of(self.scop, loop) for loop in loops]
        known = [extent for extent in extents if extent is not None]
        sizes = tuple(size for _, size in known)
        if len(known) < len(loops) or prod(sizes) > (self.whole or MOST_ELEMENTS):
            return None
        return _Axes(tuple(self.of[loop] for loop in loops), tuple(low for low, _ in known), sizes)

    def _row(self, kind: ir.Type, axes: _Axes) -> Element:
        """New memory's element for an iteration of these loops."""
        made = ir.MemRefType.get(axes.sizes, kind)
        with self.trial.location, ir.InsertionPoint(self.trial):
            row = _heap(made) if self.whole else memref.alloca(made, [], [])
        self.made.append(row.owner.operation)
        if self.whole:
            with self.trial.location, ir.InsertionPoint.after(self.trial):
                self.made.append(memref.DeallocOp(row).operation)
        return axes.element(row)

    def _replace(self, cell: ir.Value, axes: _Axes) -> None:
        """Each use of the cell in the copy becomes one of the row's element; the cell gets the last
        value of every iteration, for whoever reads it later.
        """
        loop = axes.loops[-1]
        element = self._row(ir.MemRefType(cell.type).element_type, axes)
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

    def _element(
        self,
        origin: ir.Operation,
        number: int,
        at_home: Mapping[ir.Operation, Sequence[bool]],
        axes: Mapping[ir.Operation, _Axes],
    ) -> Element:
        """Where that carried value lives, once for all loops that hand it through."""
        place = origin, number
        if place not in self.elements:
            init = inits_of(self.of[origin])[number]
            if place in self.leaders:
                self.elements[place] = self._element(*self.leaders[place], at_home, axes)
            elif at_home[origin][number]:
                self.elements[place] = element_of(init.owner.operation)
            else:
                self.elements[place] = self._row(init.type, axes[parent_loop(origin)])
        return self.elements[place]

    def _carry(
        self,
        origin: ir.Operation,
        at_home: Mapping[ir.Operation, Sequence[bool]],
        axes: Mapping[ir.Operation, _Axes],
    ) -> None:
        """The same loop with its carried values in memory: those `at_home` in the elements that
        they come from, the others in rows.
        """
        loop = self.of[origin]
        inits = inits_of(loop)
        elements = [self._element(origin, k, at_home, axes) for k in range(len(inits))]
        old = loop.regions[0].blocks[0]
        *moved, finish = [view.operation for view in old.operations]
        through = {number for around, number in self.leaders.values() if around == origin}
        own = [k for k in range(len(inits)) if k not in through]
        with ir.InsertionPoint(loop), loop.location:
            for k, (init, element) in enumerate(zip(inits, elements, strict=True)):
                if not at_home[origin][k] and (origin, k) not in self.leaders:
                    element.store(init)
            new, body = _without_values(loop)
        with ir.InsertionPoint.at_block_begin(body), loop.location:
            for k in own:
                old.arguments[1 + k].replace_all_uses_with(elements[k].load())
        old.arguments[0].replace_all_uses_with(body.arguments[0])
        end = body.operations[-1].operation
        for op in moved:
            op.move_before(end)
        with ir.InsertionPoint(end), loop.location:
            for k in own:
                elements[k].store(finish.operands[k])
        for k, (init, result) in enumerate(zip(inits, loop.results, strict=True)):
            if (origin, k) in self.leaders:
                result.replace_all_uses_with(init)
                continue
            with ir.InsertionPoint.after(new), loop.location:
                result.replace_all_uses_with(elements[k].load())
        loop.erase()


@dataclass(frozen=True)
class _Axes:
    """Loops of the copy, the first values of their variables, and how many there are of each."""

    loops: tuple[ir.Operation, ...]
    first: tuple[int, ...]
    sizes: tuple[int, ...]

    def element(self, memory: ir.Value) -> Element:
        """That of an iteration."""
        forms = [ir.AffineDimExpr.get(k) - low for k, low in enumerate(self.first)]
        variables = tuple(loop.regions[0].blocks[0].arguments[0] for loop in self.loops)
        return Element(
            memory, variables, ir.AffineMapAttr.get(ir.AffineMap.get(len(forms), 0, forms))
        )


def _heap(kind: ir.MemRefType) -> ir.Value:
    """Memory that may be larger than a stack, and begins where a line of the cache does."""
    return memref.alloc(kind, [], [], alignment=64)


def parent_loop(loop: ir.Operation) -> ir.Operation:
    """The loop around, which there is."""
    around = parent_of(loop)
    while around is not None and around.name not in LOOPS:
        around = parent_of(around)
    assert around is not None
    return around


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

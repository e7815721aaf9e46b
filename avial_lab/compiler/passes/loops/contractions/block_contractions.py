"""Contractions in blocks that fit caches and registers, packed and as vector code.

Functions of loops -> the same values, every element's terms added in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests, may_run_at_once
from avial_lab.compiler.analysis.patterns.contractions import (
    Contraction,
    contraction_in,
    loaded_for,
    statements_behind,
)
from avial_lab.compiler.analysis.patterns.factorisations import Elimination, elimination_in
from avial_lab.compiler.analysis.patterns.interchange import OPERATIONS
from avial_lab.compiler.analysis.patterns.interval_dp import Table, table_in
from avial_lab.compiler.analysis.patterns.matrix_products import Product
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.loop_ends import extent_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.strides import move_of
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.analysis.polyhedral.units import Immovable, Unit, units_of
from avial_lab.compiler.codegen.contractions.block_sizes import BlockSizes, described, itemsize_in
from avial_lab.compiler.codegen.contractions.blocked_nest import (
    FEWEST,
    NARROWER,
    SHARED_AROUND,
    BlockCode,
)
from avial_lab.compiler.codegen.contractions.fused_terms import (
    joined_columns,
    joined_terms,
)
from avial_lab.compiler.codegen.contractions.interval_dp import TableCode
from avial_lab.compiler.codegen.contractions.panel_solve import LINES, StripCode
from avial_lab.compiler.codegen.contractions.panels import NAME
from avial_lab.compiler.codegen.contractions.register_tiles import Tiles
from avial_lab.compiler.codegen.loops.outlined_code import SharedCode
from avial_lab.compiler.codegen.loops.unroll_and_jam import MOST_VECTORS
from avial_lab.compiler.ir.attributes import PARALLEL
from avial_lab.compiler.ir.nesting import FORS
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name
from avial_lab.machine.cpu import Cpu, this_cpu

STEPS = 128
"""Of one block of a factorisation: terms enough that its updates pay for the packing."""

BATCH = 32
"""Iterations of a loop around contractions, from which on threads share those, and not blocks."""

FEWEST_OF_EACH = 8
"""Rows, columns and terms of a contraction that is worth its packing; columns that fill a vector
are as well.
"""

FEW_PRODUCTS = 1 << 18
"""Of a contraction whose arrays stay in a core's caches: loops take no longer for them."""


@dataclass(frozen=True)
class BlockContractions:
    """Split contractions off their nests, and write each as blocks of register tiles.

    before:  affine.for %i { affine.for %j { affine.for %k { C[i, j] += A[i, k] * B[k, j] } } }
    after:   pack B into panels; for blocks of terms, for blocks of rows: pack A; for panels, for
             tiles of rows: vectors of C in registers += broadcasts of A * vectors of B

    Factorisations become blocks of `steps`, each of which updates what is left by contractions; and
    so on in smaller blocks; in the smallest, lines beyond a block's own are strips that threads
    share. (Of panels without smaller blocks the first ones are narrower, if there are few.)
    `terms` and `block` are those of `BlockSizes`.

    With `blas` contractions that are products of matrices call a BLAS in place of that, where no
    loop around is divided among threads.
    """

    terms: int = 0
    block: int = 0
    steps: int = STEPS
    blas: bool = False
    cpu: Cpu = field(default_factory=this_cpu, repr=False)

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            shared = SharedCode()
            for function in functions_without_aliases(module):
                for loop in list(free_nests(function)):
                    self._nest(loop, self.steps, shared)

    def __str__(self) -> str:
        options = (("terms", self.terms, 0), ("block", self.block, 0), ("steps", self.steps, STEPS))
        given = [f"{name}={value}" for name, value, usual in options if value != usual]
        given += ["blas=true"] * self.blas
        return f"{NAME}{{{' '.join(given)}}}" if given else NAME

    @property
    def _sizes(self) -> BlockSizes:
        return BlockSizes(self.cpu, self.terms, self.block)

    def _nest(
        self, loop: ir.Operation, width: int, shared: SharedCode, *, inside: bool = False
    ) -> bool:
        """The nest, or else those inside; eliminations in blocks of so many steps. Whether anything
        was put into blocks. `inside`: a loop around is divided among threads already.
        """
        depth = _depth(loop)
        rest = self._split(loop, width, shared, inside=inside) if depth >= 3 else None
        if rest is not None:
            for each, narrower in rest:
                self._nest(each, narrower, shared, inside=inside)
            return True
        if depth <= 3:
            return False
        outer = not inside and _keeps_threads_busy(loop)
        nests = list(free_nests(loop))
        found = [self._nest(each, width, shared, inside=inside or outer) for each in nests]
        if outer and any(found):
            add_remark(
                loop,
                NAME,
                f"iterations of {loop_name(loop)} run in parallel, each with its own blocks",
            )
            loop.attributes[PARALLEL] = ir.UnitAttr.get()
        return any(found)

    def _split(
        self,
        loop: ir.Operation,
        width: int,
        shared: SharedCode,
        *,
        inside: bool,
        joined: bool = False,
    ) -> list[tuple[ir.Operation, int]] | None:
        """The loops of what is left of a nest that was taken apart, and of how many steps their
        blocks are; None where it stays as it was.
        """
        try:
            scop = read_scop(loop)
            units = units_of(scop, apart=True)
        except Immovable as reason:
            add_remark(loop, NAME, f"no contraction found in loop {loop_name(loop)}: {reason}")
            return None
        found = limited(lambda: contraction_in(scop, units), lambda: None, limit=OPERATIONS)
        for copy in self._joined(loop, scop, found):
            rest = self._split(copy, width, shared, inside=inside, joined=True)
            (copy if rest is None else loop).erase()
            if rest is not None:
                return rest
        alone = False
        code = BlockCode(self._sizes, loop, scop, shared, inside, self.blas)
        if found is not None and (why := self._too_small(found, joined=joined)):
            add_remark(loop, NAME, f"{_summed(found)}, is not blocked: {why}")
            alone, found = not (found.before or found.after), None
        if found is not None:
            self._add_remarks(loop, found, code.products(found, ()), self._sizes.tiles(found))
            return [(each, width) for each in code.split_off(found)]
        # Blocks of terms of what is too small as a whole would be none the better.
        steps = None if alone else _blocked(scop, units, width, self.cpu)
        if steps is None:
            if width == self.steps and not inside and self._table(loop, shared):
                return []
            if width == self.steps:
                add_remark(loop, NAME, f"no contraction in loop {loop_name(loop)}")
            return None
        remark = f"blocks of {steps.width} steps"
        if steps.updates:
            remark += ", each followed by contractions that update the remaining part"
        add_remark(loop, f"{NAME}{{steps={steps.width}}}", remark)
        for update in steps.updates:
            saved = [value for snapshot in update.snapshots for value in snapshot.values]
            found = update.contraction
            self._add_remarks(loop, found, code.products(found, saved), self._sizes.tiles(found))
        # Panels that are read as they change have rows to go along; the others walk down columns.
        with_snapshots = any(update.snapshots for update in steps.updates)
        return [(each, 0 if with_snapshots else width // NARROWER) for each in code.steps(steps)]

    def _joined(
        self, loop: ir.Operation, scop: Scop, found: Contraction | None
    ) -> Iterator[ir.Operation]:
        """Copies of the nest in which terms, or too few columns, are those of several loops."""
        if found is None:
            return
        copy = joined_terms(loop, scop, found)
        if copy is not None:
            yield copy
        if most_iterations(found.unit.domain, found.roles.column) < self._fewest_columns(found):
            copy = joined_columns(loop, scop, found)
            if copy is not None:
                yield copy

    def _fewest_columns(self, found: Contraction) -> int:
        return min(FEWEST_OF_EACH, self.cpu.lanes(itemsize_in(found)))

    def _table(self, loop: ir.Operation, shared: SharedCode) -> bool:
        """Whether the nest became tiles of a table."""
        try:
            scop = read_scop(loop)
            units = units_of(scop)
        except Immovable:
            return False
        table = self._tiled(scop, units)
        if table is None:
            return False
        by_name = {unit.name: unit for unit in units}
        tiles = self._sizes.tiles(table.far, widest=True)
        code = TableCode(loop, by_name, table, tiles, shared)
        if not code.write(scop):
            return False
        remark = f"tiles of {table.width} × {table.width}, each beginning with a contraction of the"
        add_remark(loop, f"{NAME}{{steps={table.width}}}", f"{remark} tiles before it")
        self._add_remarks(loop, table.far, SHARED_AROUND if self.blas else "", tiles)
        loop.erase()
        return True

    def _tiled(self, scop: Scop, units: Sequence[Unit]) -> Table | None:
        firsts = scop.free_name("row"), scop.free_name("column")
        find = partial(table_in, scop, units, width_of=self._width, firsts=firsts)
        return limited(find, lambda: None, limit=OPERATIONS) if self.steps >= FEWEST else None

    def _width(self, found: Contraction) -> int:
        """Of the tiles of a table: about `steps`, in whole register tiles."""
        columns = self._sizes.tiles(found, widest=True).columns
        return self.steps - self.steps % columns if self.steps > columns else self.steps

    def blocks(self, loop: ir.Operation) -> Elimination | None:
        """The blocks of steps that a factorisation would become; None where the nest is none.

        Raises Immovable as `units_of` does.
        """
        scop = read_scop(loop)
        return _blocked(scop, units_of(scop, apart=True), self.steps, self.cpu)

    def _add_remarks(
        self,
        loop: ir.Operation,
        found: Contraction,
        products: Sequence[Product] | str,
        tiles: Tiles,
    ) -> None:
        """In which blocks it is, or how a BLAS has it; a text says why none is called."""
        summed = _summed(found)
        if not isinstance(products, str):
            routine = f"cblas_{'d' if isinstance(found.stored.type, ir.F64Type) else 's'}gemm"
            calls = f"{len(products)} calls" if len(products) > 1 else "a call"
            add_remark(
                loop, f"{NAME}{{blas=true}}", f"{summed}: {calls} of {routine}, in its own order"
            )
            return
        if products:
            add_remark(loop, f"{NAME}{{blas=true}}", f"{summed}: not passed to a BLAS: {products}")
        sized = replace(self, terms=tiles.terms, block=tiles.block, blas=False)
        add_remark(loop, sized, f"{summed}, {described(found, tiles)}")

    def _too_small(self, found: Contraction, *, joined: bool) -> str:
        """Why packing would not pay: each value that it moves is used once for each row, or column,
        and each element it loads and stores is for so many terms. Who names sizes or a BLAS knows.
        """
        if self.terms or self.block or self.blas:
            return ""
        roles, product = found.roles, 1
        for what, place, fewest in (
            ("terms", roles.term, FEWEST_OF_EACH),
            ("rows", roles.row, FEWEST_OF_EACH),
            ("columns", roles.column, self._fewest_columns(found)),
        ):
            count = most_iterations(found.unit.domain, place)
            product *= count
            if count < fewest:
                return f"only {count} {what}"
        if not joined and self._is_for_registers(found):
            return "its rows fit in registers, and its operands in L2"
        # Loops in loops of a few iterations would be neither short nor vectors.
        return f"only {product:,} products" if product <= FEW_PRODUCTS and not joined else ""

    def _is_for_registers(self, found: Contraction) -> bool:
        """Whether its rows are as short as those that jam-in-registers keeps in registers, which
        loads the right values from where they are.
        """
        roles, item = found.roles, itemsize_in(found)
        columns = most_iterations(found.unit.domain, roles.column)
        nbytes = columns * most_iterations(found.unit.domain, roles.term) * item
        if columns > MOST_VECTORS * self.cpu.lanes(item) or nbytes > self.cpu.l2_bytes // 2:
            return False
        along = found.unit.loops[roles.column]
        right = statements_behind(found.right, found)
        all_of_it = (*found.unit.statements, *found.unit.sunk)
        rows = [s for s in all_of_it if s.name in right or s == found.element]
        return all(
            along in s.loops and move_of(s.accesses[0], s.loops.index(along)) == 1 for s in rows
        )


def _blocked(scop: Scop, units: Sequence[Unit], width: int, cpu: Cpu) -> Elimination | None:
    find = partial(elimination_in, scop, units, width=width, first=scop.free_name("first"))
    found = limited(find, lambda: None, limit=OPERATIONS) if width >= FEWEST else None
    return found if found is None or found.updates or _fits(scop.op, found, cpu) else None


def _fits(loop: ir.Operation, found: Elimination, cpu: Cpu) -> bool:
    """Whether a vector of lines that every step goes through stays in L2."""
    codes = (StripCode(loop, each, found.first, found.width, "", LINES) for each in found.strips[1])
    return all(code.turned and code.line_bytes * cpu.lanes(4) <= cpu.l2_bytes for code in codes)


def _summed(found: Contraction) -> str:
    """In one line: what is summed."""
    sides = [listed(names) for v in (found.left, found.right) if (names := loaded_for(v, found))]
    term = found.unit.loops[found.roles.term].name
    what = " with ".join(sides) or "numbers"
    return f"{found.element.accesses[0]}, summed over {term} from {what}"


def _keeps_threads_busy(loop: ir.Operation) -> bool:
    """Whether its iterations may run at the same time, and are more than a few."""
    if loop.name == "affine.for":
        extent = extent_of(read_scop(loop), loop)
        if extent is not None and extent[1] < BATCH:
            return False
    return may_run_at_once(loop)


def _depth(loop: ir.Operation) -> int:
    """How many loops stand inside of each other."""
    inner = [
        _depth(view.operation)
        for region in loop.regions
        for block in region.blocks
        for view in block.operations
    ]
    return (loop.name in FORS) + max(inner, default=0)

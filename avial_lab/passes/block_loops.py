"""Contractions in blocks that fit caches and registers, packed and as vector code.

Functions of loops -> the same values, every element's terms added in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import islpy as isl
from mlir import ir
from mlir.dialects import memref

from avial_lab.cpu import Cpu, this_cpu
from avial_lab.passes.arrays_apart import functions_of_arrays_apart
from avial_lab.passes.ast_loops import AstLoops
from avial_lab.passes.contraction_code import ContractionCode, Kept, Place, Values
from avial_lab.passes.expand_scalars import extent_of
from avial_lab.passes.gemm_calls import GemmCalls
from avial_lab.passes.index_code import (
    affine_loop,
    at_most,
    every,
    high_of,
    less,
    low_of,
    minus,
    most,
    parameter_values,
    when,
)
from avial_lab.passes.join_terms import joined_terms
from avial_lab.passes.mark_parallel import ORDERED, PARALLEL, free_nests, may_run_at_once
from avial_lab.passes.notes import listed, loop_name, tell
from avial_lab.passes.operations import itemsize_of
from avial_lab.passes.panels import Panels
from avial_lab.passes.register_tiles import Tiles
from avial_lab.passes.reorder_sums import most_iterations, note_terms
from avial_lab.passes.shared_code import SharedCode
from avial_lab.passes.strip_code import LINES, StripCode
from avial_lab.passes.table_code import TableCode
from avial_lab.polyhedra import Scop, read_scop
from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.contractions import Contraction, contraction_in, statements_behind
from avial_lab.polyhedra.eliminations import Elimination, elimination_in, starts
from avial_lab.polyhedra.orders import OPERATIONS
from avial_lab.polyhedra.parts import Part, shorter, times_of, together
from avial_lab.polyhedra.products import NoProduct, Product, products_in
from avial_lab.polyhedra.saves import Save, Update
from avial_lab.polyhedra.tables import Table, table_in
from avial_lab.polyhedra.units import Immovable, Unit, units_of

LOOPS = ("affine.for", "scf.for")
NAME = "block-loops"

STEPS = 128
"""Of one block of a factorisation: terms enough that its updates pay for the packing."""

NARROWER = 4
"""Times a block of the blocks in a panel."""

BATCH = 32
"""Iterations of a loop around contractions, from which on threads share those, and not blocks."""

FEWEST = 16
"""Steps, below which a block is left to its own loops."""


FEWEST_OF_EACH = 8
"""Rows, columns and terms of a contraction that is worth its packing."""

FEW_PRODUCTS = 1 << 18
"""Of a contraction whose arrays stay in a core's caches: loops take no longer for them."""


@dataclass(frozen=True)
class BlockLoops:
    """Split contractions off their nests, and write each as blocks of register tiles.

    before:  affine.for %i { affine.for %j { affine.for %k { C[i, j] += A[i, k] * B[k, j] } } }
    after:   pack B into panels; for blocks of terms, for blocks of rows: pack A; for panels, for
             tiles of rows: vectors of C in registers += broadcasts of A * vectors of B

    Factorisations become blocks of `steps`, each of which updates what is left by contractions; and
    so on in smaller blocks; in the smallest, lines beyond a block's own are strips that threads
    share. (Of panels without smaller blocks the first ones are narrower, if there are few.)
    `terms` and `block` are those of `Tiles`; 0: as the caches of `cpu` ask for.

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
            for function in functions_of_arrays_apart(module):
                for loop in list(free_nests(function)):
                    self._nest(loop, self.steps, shared)

    def __str__(self) -> str:
        options = (("terms", self.terms, 0), ("block", self.block, 0), ("steps", self.steps, STEPS))
        given = [f"{name}={value}" for name, value, usual in options if value != usual]
        given += ["blas=true"] * self.blas
        return f"{NAME}{{{' '.join(given)}}}" if given else NAME

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
            tell(loop, NAME, f"iterations of {loop_name(loop)} with blocks of their own")
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
            tell(loop, NAME, f"no contraction is known in loop {loop_name(loop)}: {reason}")
            return None
        found = limited(lambda: contraction_in(scop, units), lambda: None, limit=OPERATIONS)
        copy = None if found is None else joined_terms(loop, scop, found)
        if copy is not None:
            rest = self._split(copy, width, shared, inside=inside, joined=True)
            (copy if rest is None else loop).erase()
            if rest is not None:
                return rest
        writer = _Writer(self, loop, scop, shared, inside)
        if found is not None and (why := self._too_small(found, joined=joined)):
            tell(loop, NAME, f"{_summed(found)}, stays as it is: {why}")
            found = None
        if found is not None:
            self._tell(loop, found, (), inside=inside)
            return [(each, width) for each in writer.apart(found)]
        steps = _blocked(scop, units, width, self.cpu)
        if steps is None:
            if width == self.steps and not inside and self._table(loop, shared):
                return []
            if width == self.steps:
                tell(loop, NAME, f"there is no contraction in loop {loop_name(loop)}")
            return None
        told = f"blocks of {steps.width} steps"
        if steps.updates:
            told += ", each of which updates what is left by contractions"
        tell(loop, f"{NAME}{{steps={steps.width}}}", told)
        for update in steps.updates:
            saved = [value for save in update.saves for value in save.values]
            self._tell(loop, update.contraction, saved, inside=inside)
        # Panels that are read as they change have rows to go along; the others walk down columns.
        saving = any(update.saves for update in steps.updates)
        return [(each, 0 if saving else width // NARROWER) for each in writer.steps(steps)]

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
        code = TableCode(loop, by_name, table, self.tiles(table.far), shared)
        if not code.write(scop):
            return False
        told = f"tiles of {table.width} × {table.width}, each of which begins with a contraction of"
        tell(loop, f"{NAME}{{steps={table.width}}}", f"{told} those before it")
        self._tell(loop, table.far, (), inside=True)
        loop.erase()
        return True

    def _tiled(self, scop: Scop, units: Sequence[Unit]) -> Table | None:
        firsts = scop.free_name("row"), scop.free_name("column")
        find = partial(table_in, scop, units, width_of=self._width, firsts=firsts)
        return limited(find, lambda: None, limit=OPERATIONS) if self.steps >= FEWEST else None

    def _width(self, found: Contraction) -> int:
        """Of the tiles of a table: about `steps`, in whole register tiles."""
        columns = self.tiles(found).columns
        return self.steps - self.steps % columns if self.steps > columns else self.steps

    def blocks(self, loop: ir.Operation) -> Elimination | None:
        """The blocks of steps that a factorisation would become; None where the nest is none.

        Raises Immovable as `units_of` does.
        """
        scop = read_scop(loop)
        return _blocked(scop, units_of(scop, apart=True), self.steps, self.cpu)

    def _tell(
        self, loop: ir.Operation, found: Contraction, saved: Collection[ir.Value], *, inside: bool
    ) -> None:
        summed, products = _summed(found), self.products(loop, found, saved, inside=inside)
        if not isinstance(products, str):
            routine = f"cblas_{'d' if isinstance(found.stored.type, ir.F64Type) else 's'}gemm"
            calls = f"{len(products)} calls" if len(products) > 1 else "a call"
            tell(loop, f"{NAME}{{blas=true}}", f"{summed}: {calls} of {routine}, in its own order")
            return
        if products:
            tell(loop, f"{NAME}{{blas=true}}", f"{summed}: no BLAS is called, {products}")
        tiles = self.tiles(found)
        sized = replace(self, terms=tiles.terms, block=tiles.block, blas=False)
        tell(loop, sized, f"{summed}, {_described(found, tiles)}")

    def _too_small(self, found: Contraction, *, joined: bool) -> str:
        """Why packing would not pay: each value that it moves is used once for each row, or column,
        and each element it loads and stores is for so many terms. Who names sizes or a BLAS knows.
        """
        if self.terms or self.block or self.blas:
            return ""
        roles, product = found.roles, 1
        for what, place in (("terms", roles.term), ("rows", roles.row), ("columns", roles.column)):
            count = most_iterations(found.unit.domain, place)
            product *= count
            if count < FEWEST_OF_EACH:
                return f"only {count} {what}"
        # Loops in loops of a few iterations would be neither short nor vectors.
        return f"only {product:,} products" if product <= FEW_PRODUCTS and not joined else ""

    def products(
        self, root: ir.Operation, found: Contraction, saved: Collection[ir.Value], *, inside: bool
    ) -> tuple[Product, ...] | str:
        """What a BLAS is called for; else why not, empty where nobody asked for one."""
        if not self.blas:
            return ""
        if inside:
            return "threads share a loop around"
        try:
            return products_in(root, found, saved)
        except NoProduct as reason:
            return str(reason)

    def tiles(self, found: Contraction) -> Tiles:
        """Register tiles as the registers allow; blocks as the caches do: a right panel is as
        large as L1, through which it goes again for each tile of a block of rows; all of a block's
        left panels fill a quarter of L2, so that the right ones have room beside them.
        """
        item = _itemsize(found)
        lanes = self.cpu.lanes(item)
        # Three vectors of a right panel, one spread left value, and the elements themselves.
        rows, columns = 8 if self.cpu.vector_registers >= 32 else 4, 3 * lanes
        right_bytes = columns * item * len(found.right)
        terms = self.terms or max(64, self.cpu.l1_bytes // right_bytes)
        nbytes = item * len(found.left)
        block = self.block or max(rows, self.cpu.l2_bytes // 4 // (terms * nbytes))
        return Tiles(rows, columns, lanes, terms, -(-block // rows) * rows)

    def lines(self, code: StripCode) -> int:
        """Of a strip at a time, so that they take a quarter of L2: what they are combined with goes
        by there as well.
        """
        lanes = self.cpu.lanes(4)
        most = self.cpu.l2_bytes // 4 // max(code.line_bytes, 1)
        return min(LINES, max(lanes, most // lanes * lanes))


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
    at = {s.name: s for s in (*found.unit.statements, *found.unit.sunk)}
    sides = (
        listed(dict.fromkeys(str(at[name].accesses[0]) for name in sorted(names)))
        for values in (found.left, found.right)
        if (names := statements_behind(values, found))
    )
    term = found.unit.loops[found.roles.term].name
    what = " with ".join(sides) or "numbers"
    return f"{found.element.accesses[0]}, summed over {term} from {what}"


def _described(found: Contraction, tiles: Tiles) -> str:
    """In which blocks."""
    nbytes, right_bytes = (
        tiles.terms * _itemsize(found) * len(values) for values in (found.left, found.right)
    )
    return (
        f"in register tiles of {tiles.rows} × {tiles.columns}; blocks of {tiles.terms} terms "
        f"({_kib(right_bytes * tiles.columns)} of right values a panel, through L1) and "
        f"{tiles.block} rows ({_kib(nbytes * tiles.block)} of them, in L2)"
    )


def _itemsize(found: Contraction) -> int:
    """Bytes of the largest values that its tiles hold."""
    return max(itemsize_of(v.type) for v in (*found.left, *found.right, found.stored))


def _kib(nbytes: int) -> str:
    return f"{nbytes / 1024:.3g} KiB"


def _keeps_threads_busy(loop: ir.Operation) -> bool:
    """Whether its iterations may run at the same time, and are more than a few."""
    if loop.name == "affine.for":
        extent = extent_of(read_scop(loop), loop)
        if extent is not None and extent[1] < BATCH:
            return False
    return may_run_at_once(loop)


def _outermost(op: ir.Operation) -> list[ir.Operation]:
    """The loop that it is, or those in its branches."""
    if op.name in LOOPS:
        return [op]
    blocks = [block for region in op.regions for block in region.blocks]
    return [each for block in blocks for view in block for each in _outermost(view.operation)]


def _depth(loop: ir.Operation) -> int:
    """How many loops stand inside of each other."""
    inner = [
        _depth(view.operation)
        for region in loop.regions
        for block in region.blocks
        for view in block.operations
    ]
    return (loop.name in LOOPS) + max(inner, default=0)


@dataclass(frozen=True)
class _Writer:
    """Puts the parts of a nest in front of `loop`, and takes that away; each method returns the
    loops of what is left. `inside`: they are all for one thread.
    """

    sizes: BlockLoops
    loop: ir.Operation
    scop: Scop
    shared: SharedCode
    inside: bool

    def apart(self, found: Contraction) -> list[ir.Operation]:
        """A contraction, and the rest before and after it."""
        made: list[ir.Operation] = []
        with self.loop.location, ir.InsertionPoint(self.loop):
            values = parameter_values(self.scop)
            made += self._units([Part(unit, unit.domain) for unit in found.before], values)
            self._contraction(ContractionCode(self.loop, found, self.shared), values)
            made += self._units([Part(unit, unit.domain) for unit in found.after], values)
        self.loop.erase()
        return made

    def steps(self, found: Elimination) -> list[ir.Operation]:
        """Blocks of steps; in each the panel, and then what it does to the others."""
        with self.loop.location, ir.InsertionPoint(self.loop):
            values = parameter_values(self.scop)
            with affine_loop(found.steps, values, step=found.width) as first:
                values[found.first] = first
                codes = [self._saving(found, update, values) for update in found.updates]
                both = zip(found.updates, codes, strict=True)
                saves = [(save, code) for update, code in both for save in update.saves]
                leaf = not found.updates or (not saves and found.width // NARROWER < FEWEST)
                core, strips = self._leaf(found) if leaf else (found.panel, [])
                made = self._units(core, values, saves, found.firsts)
                for code in strips:
                    self._strips(code, values, found.firsts)
                for loop in made if found.updates else ():  # step by step is the order for them
                    loop.attributes[ORDERED] = ir.UnitAttr.get()
                for update, code in zip(found.updates, codes, strict=True):
                    self._update(update, code, first, values)
                for kept in (each for code in codes for each in code.kept.values()):
                    memref.DeallocOp(kept.memory)
        self.loop.erase()
        return made

    def _leaf(self, found: Elimination) -> tuple[Sequence[Part], list[StripCode]]:
        """What is left of a panel, and strips that threads can share."""
        core, groups = found.strips
        low = f"{found.first}_line"
        made = [
            StripCode(self.loop, group, found.first, found.width, low, LINES) for group in groups
        ]
        if any(code.turned is None for code in made):
            return found.panel, []
        made = [replace(code, lines=self.sizes.lines(code)) for code in made]
        for code in made:
            what = f"lines of {code.name} wait for a block's own and for no other"
            tell(self.loop, NAME, f"{what}: {code.lines} at a time")
        return core, made

    def _strips(self, code: StripCode, values: Mapping[str, ir.Value], firsts: isl.Set) -> None:
        extent = code.strips.extent
        known = self.scop.context.intersect(firsts).intersect(starts(code.low, extent))
        shared = code.share(values, self.scop.context.intersect(firsts))
        with affine_loop(extent, values, step=code.lines) as low:
            loop = low.owner.owner.operation
            loop.attributes[ORDERED if self.inside else PARALLEL] = ir.UnitAttr.get()
            code.write({**values, code.low: low}, known, shared)
        for memory in shared.values():
            memref.DeallocOp(memory)

    def _contraction(self, code: ContractionCode, values: Values) -> None:
        found, kept = code.found, list(code.kept)
        products = self.sizes.products(code.root, found, kept, inside=self.inside)
        if isinstance(products, str):
            Panels(code, self.sizes.tiles(found), parallel=not self.inside).write(values)
            return
        GemmCalls(code, products).write(values)
        # A factor is one more rounding, that stands elsewhere in the program's order.
        more = sum(len(product.factors) for product in products)
        terms = most_iterations(found.unit.domain, found.roles.term)
        note_terms(self.loop, len(products) * terms + more)

    def _update(
        self, update: Update, code: ContractionCode, first: ir.Value, values: Values
    ) -> None:
        if update.firsts is None:
            self._contraction(code, values)
            return
        low, high = low_of(update.firsts, values), high_of(update.firsts, values)
        with when(every(at_most(low, first), less(first, high))):
            self._contraction(code, values)

    def _saving(self, found: Elimination, update: Update, values: Values) -> ContractionCode:
        """The update's code, with memory for what is saved for it."""
        loops, term = update.contraction.unit.loops, update.contraction.roles.term
        kept: dict[ir.Value, Kept] = {}
        for save in update.saves:
            low = low_of(save.extent, values)
            count = most(minus(high_of(save.extent, values), low), 0)
            of_term = Place(loops[term].name, values[found.first])
            of_other = Place(loops[save.other].name, low)
            for value in save.values:
                shape = [found.width, ir.ShapedType.get_dynamic_size()]
                memory = memref.AllocOp(ir.MemRefType.get(shape, value.type), [count], []).result
                kept[value] = Kept(memory, of_term, of_other)
        return ContractionCode(self.loop, update.contraction, self.shared, kept)

    def _units(
        self,
        parts: Sequence[Part],
        values: dict[str, ir.Value],
        saves: Sequence[tuple[Save, ContractionCode]] = (),
        where: isl.Set | None = None,
    ) -> list[ir.Operation]:
        """The loops that were written for these instances of units, and for saving; `where`: what
        is known of parameters.
        """
        if not parts:
            return []
        block = ir.InsertionPoint.current.block
        before = [view.operation for view in block.operations]
        times, _ = shorter(
            together([*times_of(parts).values(), *(save.times for save, _ in saves)])
        )
        known = self.scop.context if where is None else self.scop.context.intersect(where)
        ast = isl.AstBuild.from_context(known).node_from_schedule_map(times)
        leaves = {save.name: partial(code.keep, save.values) for save, code in saves}
        AstLoops(
            self.loop, {part.unit.name: part.unit for part in parts}, dict(values), leaves=leaves
        ).write(ast)
        now = [view.operation for view in block.operations]
        return [each for op in now if op not in before for each in _outermost(op)]

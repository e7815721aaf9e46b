"""A nest that was taken apart, as code: contractions, blocks of steps, and what is left as loops.

Contraction or Elimination of a nest -> loops and vector operations in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import islpy as isl
from mlir import ir
from mlir.dialects import memref

from avial_lab.compiler.analysis.patterns.contractions import Contraction
from avial_lab.compiler.analysis.patterns.factorisations import Elimination, starts
from avial_lab.compiler.analysis.patterns.matrix_products import NoProduct, Product, products_in
from avial_lab.compiler.analysis.patterns.panel_snapshots import Snapshot, Update
from avial_lab.compiler.analysis.polyhedral.instances import (
    UnitInstances,
    shorter,
    times_of,
    together,
)
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.trip_counts import most_iterations
from avial_lab.compiler.codegen.contractions.blas_calls import GemmCalls
from avial_lab.compiler.codegen.contractions.block_sizes import BlockSizes
from avial_lab.compiler.codegen.contractions.contraction import ContractionCode, Kept, Place, Values
from avial_lab.compiler.codegen.contractions.panel_solve import LINES, StripCode
from avial_lab.compiler.codegen.contractions.panels import NAME, Panels
from avial_lab.compiler.codegen.loops.index_arithmetic import (
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
from avial_lab.compiler.codegen.loops.isl_ast import AstLoops
from avial_lab.compiler.codegen.loops.outlined_code import SharedCode
from avial_lab.compiler.ir.attributes import ORDERED, PARALLEL
from avial_lab.compiler.ir.nesting import FORS
from avial_lab.compiler.ir.remarks import add_remark, note_terms

NARROWER = 4
"""Times a block of the blocks in a panel."""

FEWEST = 16
"""Steps, below which a block is left to its own loops."""

SHARED_AROUND = "an enclosing loop is divided among threads"
"""Why no BLAS is called."""


@dataclass(frozen=True)
class BlockCode:
    """Puts the parts of a nest in front of `loop`, and takes that away; each method returns the
    loops of what is left. `inside`: they are all for one thread. `blas`: it may be called.
    """

    sizes: BlockSizes
    loop: ir.Operation
    scop: Scop
    shared: SharedCode
    inside: bool
    blas: bool

    def split_off(self, found: Contraction) -> list[ir.Operation]:
        """A contraction, and the rest before and after it."""
        made: list[ir.Operation] = []
        with self.loop.location, ir.InsertionPoint(self.loop):
            values = parameter_values(self.scop)
            made += self._units([UnitInstances(unit, unit.domain) for unit in found.before], values)
            self._contraction(ContractionCode(self.loop, found, self.shared), values)
            made += self._units([UnitInstances(unit, unit.domain) for unit in found.after], values)
        self.loop.erase()
        return made

    def steps(self, found: Elimination) -> list[ir.Operation]:
        """Blocks of steps; in each the panel, and then what it does to the others."""
        with self.loop.location, ir.InsertionPoint(self.loop):
            values = parameter_values(self.scop)
            with affine_loop(found.steps, values, step=found.width) as first:
                values[found.first] = first
                codes = [self._with_snapshots(found, update, values) for update in found.updates]
                both = zip(found.updates, codes, strict=True)
                snapshots = [
                    (snapshot, code) for update, code in both for snapshot in update.snapshots
                ]
                leaf = not found.updates or (not snapshots and found.width // NARROWER < FEWEST)
                core, strips = self._leaf(found) if leaf else (found.panel, [])
                made = self._units(core, values, snapshots, found.firsts)
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

    def products(
        self, found: Contraction, saved: Collection[ir.Value]
    ) -> tuple[Product, ...] | str:
        """What a BLAS is called for; else why not, empty where nobody asked for one."""
        if not self.blas:
            return ""
        if self.inside:
            return SHARED_AROUND
        try:
            return products_in(self.loop, found, saved)
        except NoProduct as reason:
            return str(reason)

    def _leaf(self, found: Elimination) -> tuple[Sequence[UnitInstances], list[StripCode]]:
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
            what = f"lines of {code.name} depend on their own block only"
            add_remark(self.loop, NAME, f"{what}: {code.lines} at a time")
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
        products = self.products(found, kept)
        if isinstance(products, str):
            room = self.sizes.cpu.last_bytes
            Panels(code, self.sizes.tiles(found), not self.inside, room).write(values)
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

    def _with_snapshots(
        self, found: Elimination, update: Update, values: Values
    ) -> ContractionCode:
        """The update's code, with memory for its snapshots."""
        loops, term = update.contraction.unit.loops, update.contraction.roles.term
        kept: dict[ir.Value, Kept] = {}
        for snapshot in update.snapshots:
            low = low_of(snapshot.extent, values)
            count = most(minus(high_of(snapshot.extent, values), low), 0)
            of_term = Place(loops[term].name, values[found.first])
            of_other = Place(loops[snapshot.other].name, low)
            for value in snapshot.values:
                shape = [found.width, ir.ShapedType.get_dynamic_size()]
                memory = memref.AllocOp(ir.MemRefType.get(shape, value.type), [count], []).result
                kept[value] = Kept(memory, of_term, of_other)
        return ContractionCode(self.loop, update.contraction, self.shared, kept)

    def _units(
        self,
        parts: Sequence[UnitInstances],
        values: dict[str, ir.Value],
        snapshots: Sequence[tuple[Snapshot, ContractionCode]] = (),
        where: isl.Set | None = None,
    ) -> list[ir.Operation]:
        """The loops that were written for these instances of units, and for snapshots; `where`:
        what is known of parameters.
        """
        if not parts:
            return []
        block = ir.InsertionPoint.current.block
        before = {view.operation for view in block.operations}
        times, _ = shorter(
            together([*times_of(parts).values(), *(snapshot.times for snapshot, _ in snapshots)])
        )
        known = self.scop.context if where is None else self.scop.context.intersect(where)
        ast = isl.AstBuild.from_context(known).node_from_schedule_map(times)
        leaves = {
            snapshot.name: partial(code.keep, snapshot.values) for snapshot, code in snapshots
        }
        AstLoops(
            self.loop, {part.unit.name: part.unit for part in parts}, dict(values), leaves=leaves
        ).write(ast)
        now = [view.operation for view in block.operations]
        return [each for op in now if op not in before for each in _outermost(op)]


def _outermost(op: ir.Operation) -> list[ir.Operation]:
    """The loop that it is, or those in its branches."""
    if op.name in FORS:
        return [op]
    blocks = [block for region in op.regions for block in region.blocks]
    return [each for block in blocks for view in block for each in _outermost(view.operation)]

"""Contractions in blocks that fit caches and registers, packed and as vector code.

Functions of loops -> the same values, every element's terms added in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import islpy as isl
from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.cpu import Cpu, this_cpu
from avial_lab.passes.ast_loops import AstLoops
from avial_lab.passes.contraction_code import ContractionCode
from avial_lab.passes.notes import listed, loop_name, tell
from avial_lab.passes.operations import itemsize_of, operations_in
from avial_lab.passes.panels import Panels
from avial_lab.passes.register_tiles import Tiles
from avial_lab.polyhedra import Scop, read_scop
from avial_lab.polyhedra.budget import limited
from avial_lab.polyhedra.contractions import Contraction, contraction_in, statements_behind
from avial_lab.polyhedra.orders import OPERATIONS
from avial_lab.polyhedra.units import Immovable, Unit, units_of

LOOPS = ("affine.for", "scf.for")
NAME = "block-loops"


@dataclass(frozen=True)
class BlockLoops:
    """Split contractions off their nests, and write each as blocks of register tiles.

    before:  affine.for %i { affine.for %j { affine.for %k { C[i, j] += A[i, k] * B[k, j] } } }
    after:   pack B into panels; for blocks of terms, for blocks of rows: pack A; for panels, for
             tiles of rows: vectors of C in registers += broadcasts of A * vectors of B

    `terms` and `block` are those of `Tiles`; 0: as the caches of `cpu` ask for.
    """

    terms: int = 0
    block: int = 0
    cpu: Cpu = field(default_factory=this_cpu, repr=False)

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in [op for op in operations_in(module) if op.name == "func.func"]:
                self._in(function)

    def __str__(self) -> str:
        given = [f"{name}={value}" for name in ("terms", "block") if (value := getattr(self, name))]
        return f"{NAME}{{{' '.join(given)}}}" if given else NAME

    def _in(self, op: ir.Operation) -> None:
        """The nests in the body of `op`."""
        for region in op.regions:
            for block in region.blocks:
                for inner in [view.operation for view in block.operations]:
                    if inner.name not in LOOPS or not self._split(inner):
                        self._in(inner)

    def _split(self, loop: ir.Operation) -> bool:
        """Whether the nest was taken apart: its rest has been looked through as well."""
        if _depth(loop) < 3:
            return False
        try:
            scop = read_scop(loop)
            units = units_of(scop)
        except Immovable as reason:
            tell(loop, NAME, f"no contraction is known in loop {loop_name(loop)}: {reason}")
            return False
        found = limited(lambda: contraction_in(scop, units), lambda: None, limit=OPERATIONS)
        if found is None:
            tell(loop, NAME, f"there is no contraction in loop {loop_name(loop)}")
            return False
        tiles = self.tiles(found)
        taken = replace(self, terms=tiles.terms, block=tiles.block)
        tell(loop, taken, _described(found, tiles))
        rest = self._write(loop, scop, found)
        for each in rest:
            self._in_nest(each)
        return True

    def _in_nest(self, loop: ir.Operation) -> None:
        if loop.name not in LOOPS or not self._split(loop):
            self._in(loop)

    def _write(self, loop: ir.Operation, scop: Scop, found: Contraction) -> list[ir.Operation]:
        """Put the parts in front of `loop`, and take that away; the loops of what is left."""
        block = loop.block
        before = [view.operation for view in block.operations]
        made: list[ir.Operation] = []
        with loop.location, ir.InsertionPoint(loop):
            values = _values(scop)
            made += _written(loop, scop, found.before, values, before)
            now = [view.operation for view in block.operations]
            Panels(ContractionCode(loop, found), self.tiles(found)).write(values)
            blocked = [v.operation for v in block.operations if v.operation not in now]
            made += _written(loop, scop, found.after, values, [*before, *made, *blocked])
        loop.erase()
        return [op for op in made if op.name in LOOPS]

    def tiles(self, found: Contraction) -> Tiles:
        """Register tiles as the registers allow; blocks as the caches do: a panel of each side in
        half of L1, a block of rows in half of L2.
        """
        item = max(itemsize_of(v.type) for v in (*found.left, *found.right, found.stored))
        lanes = self.cpu.lanes(item)
        vectors = 3
        rows = 8 if self.cpu.vector_registers >= 32 else 4
        terms = self.terms or 256
        block = self.block or 96
        return Tiles(rows, vectors * lanes, lanes, terms, -(-block // rows) * rows)


def _described(found: Contraction, tiles: Tiles) -> str:
    """In one line: what is summed, and in which blocks."""
    at = {s.name: s for s in (*found.unit.statements, *found.unit.sunk)}
    sides = (
        listed(dict.fromkeys(str(at[name].accesses[0]) for name in sorted(names)))
        for values in (found.left, found.right)
        if (names := statements_behind(values, found))
    )
    item = max(itemsize_of(v.type) for v in (*found.left, *found.right, found.stored))
    term = found.unit.loops[found.roles.term].name
    return (
        f"{found.element.accesses[0]}, summed over {term} from {' with '.join(sides)}, in register "
        f"tiles of {tiles.rows} × {tiles.columns}; blocks of {tiles.terms} terms "
        f"({_kib(tiles.terms * tiles.columns * item)} a panel, for L1) and {tiles.block} rows "
        f"({_kib(tiles.terms * tiles.block * item)}, for L2)"
    )


def _kib(nbytes: int) -> str:
    return f"{nbytes / 1024:.3g} KiB"


def _depth(loop: ir.Operation) -> int:
    """How many loops stand inside of each other."""
    inner = [
        _depth(view.operation)
        for region in loop.regions
        for block in region.blocks
        for view in block.operations
    ]
    return (loop.name in LOOPS) + max(inner, default=0)


def _values(scop: Scop) -> dict[str, ir.Value]:
    """What the parameters stand for; sizes are asked of their arrays."""
    values = {name: value for name, value in scop.parameters.items() if value is not None}
    for name, (array, dimension) in scop.sizes.items():
        if name not in values:
            place = arith.ConstantOp(ir.IndexType.get(), dimension).result
            values[name] = memref.DimOp(array, place).result
    return values


def _written(
    loop: ir.Operation,
    scop: Scop,
    units: tuple[Unit, ...],
    values: dict[str, ir.Value],
    old: list[ir.Operation],
) -> list[ir.Operation]:
    """These units in their own order; what was written for them."""
    if not units:
        return []
    schedule = isl.UnionMap("{ }")
    for unit in units:
        time = unit.statements[-1].schedule.set_tuple_name(isl.dim_type.in_, unit.name)
        schedule = schedule.union(isl.UnionMap.from_map(time))
    ast = isl.AstBuild.from_context(scop.context).node_from_schedule_map(schedule)
    AstLoops(loop, {unit.name: unit for unit in units}, dict(values)).write(ast)
    return [view.operation for view in loop.block.operations if view.operation not in old]

"""Tables in tiles as code: waves of tiles, and in each a contraction before all else.

Table, values of names -> loops at the insertion point.

    for wave:  for tile:  {avial.parallel}       tile ──►  wave 0   1   2
                 the contraction                            1   2   3
                 what is left, in its order                 2   3   4
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import islpy as isl
from mlir import ir
from mlir.dialects import affine

from avial_lab.compiler.analysis.patterns.interval_dp import Table
from avial_lab.compiler.analysis.polyhedral.affine import Affine
from avial_lab.compiler.analysis.polyhedral.instances import shorter
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.units import Unit
from avial_lab.compiler.codegen.contractions.contraction import ContractionCode
from avial_lab.compiler.codegen.contractions.panels import Panels
from avial_lab.compiler.codegen.contractions.register_tiles import Tiles
from avial_lab.compiler.codegen.loops.index_arithmetic import parameter_values
from avial_lab.compiler.codegen.loops.isl_ast import AstLoops, written_before
from avial_lab.compiler.codegen.loops.outlined_code import SharedCode
from avial_lab.compiler.ir.attributes import ORDERED, PARALLEL


@dataclass(frozen=True)
class TableCode:
    """`units` of the nest `root`, in the tiles of `table`; `tiles` are those of registers."""

    root: ir.Operation
    units: Mapping[str, Unit]
    table: Table
    tiles: Tiles
    shared: SharedCode

    def write(self, scop: Scop) -> bool:
        """Whether it could be written, before `root`; if not, nothing is left of it."""
        return written_before(self.root, lambda: self._write(parameter_values(scop)))

    def _write(self, values: Mapping[str, ir.Value]) -> None:
        table = self.table
        with self._tiles_of(values) as firsts:
            known = dict(values) | dict(zip(table.firsts, firsts, strict=True))
            code = ContractionCode(self.root, table.far, self.shared)
            Panels(code, self.tiles, parallel=False).write(known)
            build = isl.AstBuild.from_context(table.known)
            near = build.node_from_schedule_map(shorter(table.near)[0])
            block = ir.InsertionPoint.current.block
            before = len(block.operations)
            AstLoops(self.root, self.units, known).write(near)
            for view in list(block.operations)[before:]:
                if view.operation.name == "affine.for":
                    view.operation.attributes[ORDERED] = ir.UnitAttr.get()

    @contextmanager
    def _tiles_of(self, values: Mapping[str, ir.Value]) -> Iterator[tuple[ir.Value, ir.Value]]:
        """The loops over waves and over their tiles, and in them, the first row and column."""
        names = sorted({name for extent in self.table.extents for name in extent.names})
        dims = {name: ir.AffineDimExpr.get(k) for k, name in enumerate(names)}
        given = [values[name] for name in names]
        lows = [_expression(extent.lows[0], dims) for extent in self.table.extents]
        highs = [_expression(extent.highs[0], dims) for extent in self.table.extents]
        rows, columns = (
            ir.AffineExpr.get_ceil_div(high - low, self.table.width)
            for low, high in zip(lows, highs, strict=True)
        )
        zero = ir.AffineConstantExpr.get(0)
        wave, tile = (ir.AffineDimExpr.get(len(names) + k) for k in (0, 1))
        with _loop([zero], [rows + columns - 1], given) as of_wave:
            ends = [zero, wave - columns + 1], [rows, wave + 1]
            with _loop(*ends, [*given, of_wave], marked=True) as of_tile:
                both = [*given, of_wave, of_tile]
                places = (
                    lows[0] + tile * self.table.width,
                    lows[1] + (wave - tile) * self.table.width,
                )
                first = [
                    affine.AffineApplyOp(ir.AffineMap.get(len(both), 0, [place]), both).result
                    for place in places
                ]
                yield first[0], first[1]


def _expression(form: Affine, dims: Mapping[str, ir.AffineExpr]) -> ir.AffineExpr:
    total: ir.AffineExpr = ir.AffineConstantExpr.get(form.constant)
    for name, factor in form.terms:
        total = dims[name] * factor + total
    return total


@contextmanager
def _loop(
    lows: list[ir.AffineExpr],
    highs: list[ir.AffineExpr],
    operands: list[ir.Value],
    *,
    marked: bool = False,
) -> Iterator[ir.Value]:
    """An affine.for between the greatest of `lows` and the least of `highs`, and in it, its
    variable; `marked`: its iterations may run at the same time.
    """
    low, high = (ir.AffineMap.get(len(operands), 0, each) for each in (lows, highs))
    made = affine.AffineForOp(
        low, high, 1, iter_args=[], lower_bound_operands=operands, upper_bound_operands=operands
    )
    if marked:
        made.operation.attributes[PARALLEL] = ir.UnitAttr.get()
    with ir.InsertionPoint(made.operation.regions[0].blocks[0]):
        yield made.induction_variable
        affine.AffineYieldOp([])

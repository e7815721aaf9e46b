"""Nests whose own loops give no threads, in an order that does.

A loop that runs in order -> before it, in its place, loops whose inner ones are free.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.patterns.wavefronts import fronts
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.instances import shorter
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.units import Immovable, units_of
from avial_lab.compiler.codegen.loops.isl_ast import AstLoops, written_before
from avial_lab.compiler.codegen.loops.kernel_bodies import are_launched_from_host, has_free_loops
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import operations_in


def put_in_fronts(loop: ir.Operation) -> bool:
    """Whether it is gone, and loops stand there that can be launched."""
    scop = read_scop(loop)
    try:
        units = units_of(scop)
        times = fronts(scop, units)
    except Immovable:
        return False
    if times is None:
        return False
    build = isl.AstBuild.from_context(scop.context)
    ast = limited(lambda: build.node_from_schedule_map(shorter(times)[0]), lambda: None)
    around = parent_of(loop)
    if ast is None or around is None:
        return False
    known = {name: value for name, value in scop.parameters.items() if value is not None}
    before = [view.operation for view in loop.block.operations]
    loops = AstLoops(loop, {unit.name: unit for unit in units}, known)
    if not written_before(loop, lambda: loops.write(ast)):
        return False
    written = [view.operation for view in loop.block.operations if view.operation not in before]
    # Of the nest as it was nothing is read: it is asked what the new loops alone do.
    inside = read_scop(around)
    gains = are_launched_from_host(written, inside) and has_free_loops(written, inside)
    if gains:
        _name_fronts(written)
    for op in [loop] if gains else reversed(written):
        op.erase()
    return gains


def _name_fronts(written: Sequence[ir.Operation]) -> None:
    """Variables of loops that are none of the nest's own."""
    for op in (inner for each in written for inner in (each, *operations_in(each))):
        if op.name == "affine.for":
            (variable,) = op.regions[0].blocks[0].arguments
            if not name_of(variable.location):
                variable.set_location(ir.Location.name("front", op.location))

"""Triangular solves in blocks of rows, so that threads share all but a triangle of each block.

Functions of loops -> the same values, every element's terms added in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import free_nests, nearest_loops
from avial_lab.compiler.analysis.parallelism.sums import longest_of
from avial_lab.compiler.analysis.patterns.interchange import OPERATIONS
from avial_lab.compiler.analysis.patterns.triangular_solves import (
    FEWEST,
    Substitution,
    substitution_in,
)
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.instances import (
    UnitInstances,
    shorter,
    times_of,
    together,
)
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.analysis.polyhedral.units import Immovable, units_of
from avial_lab.compiler.codegen.loops.index_arithmetic import affine_loop, parameter_values
from avial_lab.compiler.codegen.loops.isl_ast import AstLoops, written_before
from avial_lab.compiler.ir.attributes import ORDERED
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.nesting import parent_of
from avial_lab.compiler.ir.operations import LOOPS, operations_in
from avial_lab.compiler.ir.program import is_strict
from avial_lab.compiler.ir.remarks import add_remark, loop_name, note_terms

NAME = "block-triangular-solves"
ROWS = 64
"""In a block: little is left for one thread, and others are not woken too often."""


@dataclass(frozen=True)
class BlockTriangularSolves:
    """Of each block of rows first what waits for earlier blocks only.

    before:  affine.for %i { affine.for %j = 0 to %i { x[i] -= L[i, j] * x[j] }; x[i] /= L[i, i] }
    after:   affine.for %first = 0 to %n step 64 {
               affine.for %i = %first to %first + 64 {            threads may share these
                 affine.for %j = 0 to %first { x[i] -= L[i, j] * x[j] } }
               affine.for %i = %first to %first + 64 {
                 affine.for %j = %first to %i { x[i] -= L[i, j] * x[j] }; x[i] /= L[i, i] } }
    """

    rows: int = ROWS

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                self._in(function, strict=is_strict(module))

    def __str__(self) -> str:
        return NAME if self.rows == ROWS else f"{NAME}{{rows={self.rows}}}"

    def _in(self, op: ir.Operation, *, strict: bool) -> None:
        """The nests of two loops in `op`."""
        for loop in list(free_nests(op)):
            if ORDERED not in loop.attributes and not (
                _may_wait(loop) and self._block(loop, strict=strict)
            ):
                self._in(loop, strict=strict)

    def _block(self, loop: ir.Operation, *, strict: bool) -> bool:
        """Whether the nest is in blocks now."""
        try:
            scop = read_scop(loop)
            units = units_of(scop)
        except Immovable:
            return False
        first = scop.free_name("first")
        find = partial(substitution_in, scop, units, width=self.rows, first=first)
        found = limited(find, lambda: None, limit=OPERATIONS)
        if found is None:
            return False
        terms = _terms(loop)
        if terms < (FEWEST - 1) * self.rows or not _write(loop, scop, found):
            return False
        remark = f"rows of {loop_name(loop)} depend on those before: {self.rows} at a time, "
        add_remark(loop, self, f"{remark}the diagonal triangle on one thread")
        if not strict:  # a sum is cut in two, and both of its parts may be in any order
            note_terms(loop, terms)
        loop.erase()
        return True


def _terms(loop: ir.Operation) -> int:
    """The most iterations of a loop in it, wherever loops around are at."""
    outermost = loop
    while (around := parent_of(outermost)) is not None and around.name in LOOPS:
        outermost = around
    scop = read_scop(outermost)
    inner = (each for row in nearest_loops(loop) for each in scop.loops_of(row))
    return max(longest_of(each, scop) for each in inner)


def _may_wait(loop: ir.Operation) -> bool:
    """Whether it holds loops, but none in those, and one of them reads what `loop` writes
    elsewhere.
    """
    inner = list(nearest_loops(loop))
    if loop.name != "affine.for" or any(True for row in inner for _ in nearest_loops(row)):
        return False
    lows = ir.DenseI32ArrayAttr(loop.attributes["operandSegmentSizes"])[0]
    if any(map(_counts, list(loop.operands)[:lows])):
        return False  # blocks would begin elsewhere in each iteration of the loops around
    written: dict[ir.Value, list[Place]] = {}
    for op in operations_in(loop):
        if op.name in STORES:
            written.setdefault(op.operands[1], []).append(_place(op, 2))
    return any(
        any(_place(op, 1) != place for place in written.get(op.operands[0], ()))
        for row in inner
        for op in operations_in(row)
        if op.name in LOADS
    )


def _counts(value: ir.Value) -> bool:
    """Whether it is the variable of a loop."""
    owner = value.owner
    return isinstance(owner, ir.Block) and owner.owner.operation.name in LOOPS


Place = tuple[object, ...]


def _place(op: ir.Operation, first: int) -> Place:
    """The subscripts of an access, which are its operands from the `first` on."""
    return (str(op.attributes["map"]) if "map" in op.attributes else "", *list(op.operands)[first:])


Nests = tuple[tuple[Sequence[UnitInstances], isl.AstNode], ...]
"""Parts, and loops in which they are in the order of the program."""


def _nests(scop: Scop, found: Substitution) -> Nests:
    """What is done in a block; nothing where isl gives up."""
    build = isl.AstBuild.from_context(scop.context.intersect(found.firsts))

    def made() -> Nests:
        parts = (found.early, found.late)
        return tuple(
            (each, build.node_from_schedule_map(shorter(together(times_of(each).values()))[0]))
            for each in parts
        )

    return limited(made, tuple)


def _write(loop: ir.Operation, scop: Scop, found: Substitution) -> bool:
    """Whether the blocks are there, before `loop`: isl and affine may not be able to say them."""
    nests = _nests(scop, found)

    def write() -> None:
        values = parameter_values(scop)
        with affine_loop(found.rows, values, step=found.width) as start:
            values[found.first] = start
            for parts, nest in nests:
                units = {part.unit.name: part.unit for part in parts}
                AstLoops(loop, units, dict(values)).write(nest)
            for made in nearest_loops(start.owner.owner):
                made.attributes[ORDERED] = ir.UnitAttr.get()

    return bool(nests) and written_before(loop, write)

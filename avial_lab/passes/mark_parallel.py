"""Which loops may run their iterations at the same time.

Functions of loops -> the same, with `avial.parallel` on the outermost loops of each nest whose
iterations do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from avial_lab.passes.arrays_apart import functions_of_arrays_apart
from avial_lab.passes.operations import operations_in
from avial_lab.polyhedra import Scop, read_scop
from avial_lab.polyhedra.dependences import carried_among

PARALLEL = "avial.parallel"
"""On a loop: its iterations may run at the same time, in any order."""

LOOPS = ("affine.for", "affine.parallel", "scf.for", "scf.parallel")
DECLARED = ("affine.parallel", "scf.parallel")


@dataclass(frozen=True)
class MarkParallel:
    """Mark a loop that carries no dependence; where it carries one, look at the loops inside.

    before:  affine.for %t … { affine.for %i … { affine.for %j … { B[i, j] = A[i, j - 1] + … } } }
    after:   affine.for %t … { affine.for %i … { … } {avial.parallel} }

    Only in functions whose arrays share no memory, as far as anyone knows (`avial.apart`). A nest
    in which some loop is marked already is left to the pass that marked it.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                for loop in nearest_loops(function):
                    if not is_marked(loop):
                        _mark(loop)

    def __str__(self) -> str:
        return "mark-parallel"


def is_marked(nest: ir.Operation) -> bool:
    """Whether a pass before wrote the nest as it wants to have it: nobody else moves it."""
    return any(PARALLEL in op.attributes for op in (nest, *operations_in(nest)))


def nearest_loops(op: ir.Operation) -> Iterator[ir.Operation]:
    """The loops in `op` with no other between."""
    for region in op.regions:
        for block in region.blocks:
            for inner in [view.operation for view in block.operations]:
                if inner.name in LOOPS:
                    yield inner
                else:
                    yield from nearest_loops(inner)


def _mark(loop: ir.Operation, scop: Scop | None = None) -> None:
    if loop.name in DECLARED:
        loop.attributes[PARALLEL] = ir.UnitAttr.get()
        return
    scop = scop if scop is not None else read_scop(loop)
    if _is_parallel(loop, scop):
        loop.attributes[PARALLEL] = ir.UnitAttr.get()
        return
    for inner in nearest_loops(loop):
        _mark(inner, scop)


def _is_parallel(op: ir.Operation, scop: Scop) -> bool:
    # What a call does to the world nobody has looked at.
    if any(inner.name.endswith(".call") for inner in operations_in(op)):
        return False
    return not any(carried_among(loop, scop.statements) for loop in scop.loops_of(op))

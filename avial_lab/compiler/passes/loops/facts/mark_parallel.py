"""Which loops may run their iterations at the same time.

Functions of loops -> the same, with `avial.parallel` on the outermost loops of each nest whose
iterations do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.accesses.no_alias import functions_without_aliases
from avial_lab.compiler.analysis.parallelism.marked_loops import (
    columns_of,
    free_nests,
    nearest_loops,
    order_of,
)
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.ir.attributes import DECLARED, PARALLEL, SLICED
from avial_lab.compiler.ir.effects import LOADS, STORES
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name

NAME = "mark-parallel"


@dataclass(frozen=True)
class MarkParallel:
    """Mark a loop that carries no dependence; where it carries one, look at the loops inside.

    before:  affine.for %t … { affine.for %i … { affine.for %j … { B[i, j] = A[i, j - 1] + … } } }
    after:   affine.for %t … { affine.for %i … { … } {avial.parallel} }

    Where elements depend on those of their own column alone, the loop is `avial.sliced`; others
    that change what it reads, or read what it changes, are so then too.

    Only in functions whose arrays do not alias (`avial.no_alias`). A nest in which some loop is
    marked already is left to the pass that marked it.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_without_aliases(module):
                for loop in list(free_nests(function)):
                    _mark(loop)
                _keep_columns(function)

    def __str__(self) -> str:
        return NAME


def _mark(loop: ir.Operation, scop: Scop | None = None) -> None:
    if loop.name in DECLARED:
        loop.attributes[PARALLEL] = ir.UnitAttr.get()
        return
    scop = scop if scop is not None else read_scop(loop)
    why_not = order_of(loop, scop)
    if why_not is None:
        loop.attributes[PARALLEL] = ir.UnitAttr.get()
        add_remark(loop, NAME, f"iterations of {loop_name(loop)} may run in parallel")
        return
    add_remark(loop, NAME, f"iterations of {loop_name(loop)} run in order: {why_not}")
    columns = columns_of(loop, scop)
    if columns:
        loop.attributes[SLICED] = ir.UnitAttr.get()
        names = listed(dict.fromkeys(map(loop_name, columns)))
        add_remark(
            loop, NAME, f"parts of {names} may run in parallel, each with all of {loop_name(loop)}"
        )
    for inner in columns:
        inner.attributes[PARALLEL] = ir.UnitAttr.get()
    if not columns:
        for inner in nearest_loops(loop):
            _mark(inner, scop)


def _keep_columns(function: ir.Operation) -> None:
    """Slice nests that go through the columns of sliced ones: what a thread changed is in the cache
    of its core, and rows would be gathered from all of them.
    """
    nests = list(_marked(function))
    sliced = [nest for nest in nests if SLICED in nest.attributes]
    for nest in nests:
        if nest in sliced or not any(_hand_on(nest, other) for other in sliced):
            continue
        columns = columns_of(nest, read_scop(nest))
        if not columns:
            continue
        del nest.attributes[PARALLEL]
        nest.attributes[SLICED] = ir.UnitAttr.get()
        for inner in columns:
            inner.attributes[PARALLEL] = ir.UnitAttr.get()
        names = listed(dict.fromkeys(map(loop_name, columns)))
        add_remark(nest, NAME, f"each thread runs all of {loop_name(nest)} for its part of {names}")


def _marked(op: ir.Operation) -> Iterator[ir.Operation]:
    """The outermost marked loops."""
    for loop in nearest_loops(op):
        if SLICED in loop.attributes or PARALLEL in loop.attributes:
            yield loop
        else:
            yield from _marked(loop)


def _hand_on(nest: ir.Operation, other: ir.Operation) -> bool:
    """Whether one of them changes an array that the other uses."""
    (read, written), (others_read, others_written) = map(_used, (nest, other))
    return bool(written & others_read or read & others_written)


def _used(nest: ir.Operation) -> tuple[set[ir.Value], set[ir.Value]]:
    """The arrays that are read and those that are written."""
    ops = list(operations_in(nest))
    read = {op.operands[0] for op in ops if op.name in LOADS}
    return read, {op.operands[1] for op in ops if op.name in STORES}

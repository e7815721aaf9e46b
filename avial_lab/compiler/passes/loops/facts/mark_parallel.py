"""Which loops may run their iterations at the same time.

Functions of loops -> the same, with `avial.parallel` on the outermost loops of each nest whose
iterations do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl
from mlir import ir

from avial_lab.compiler.analysis.accesses.memory import LOADS, STORES
from avial_lab.compiler.analysis.polyhedral import ArrayKind, Dependence, Scop, read_scop
from avial_lab.compiler.analysis.polyhedral.budget import limited
from avial_lab.compiler.analysis.polyhedral.dependences import carried_among, dependences
from avial_lab.compiler.ir.nesting import defined_in, holds
from avial_lab.compiler.ir.operations import LOOPS, loops_in, operations_in, operations_named
from avial_lab.compiler.ir.remarks import listed, loop_name, tell
from avial_lab.compiler.passes.loops.facts.no_alias import functions_of_arrays_apart

NAME = "mark-parallel"
PARALLEL = "avial.parallel"
"""On a loop: its iterations may run at the same time, in any order."""

SLICED = "avial.sliced"
"""On a loop whose iterations depend on each other, but only within a column: the marked loops
inside may be cut into slices, and each slice may go through all iterations beside the others.

    for i, for j:  y[j] += A[i, j] * x[i]        columns j
"""

DECLARED = ("affine.parallel", "scf.parallel")


@dataclass(frozen=True)
class MarkParallel:
    """Mark a loop that carries no dependence; where it carries one, look at the loops inside.

    before:  affine.for %t … { affine.for %i … { affine.for %j … { B[i, j] = A[i, j - 1] + … } } }
    after:   affine.for %t … { affine.for %i … { … } {avial.parallel} }

    Where elements depend on those of their own column alone, the loop is `avial.sliced`; others
    that change what it reads, or read what it changes, are so then too.

    Only in functions whose arrays share no memory, as far as anyone knows (`avial.apart`). A nest
    in which some loop is marked already is left to the pass that marked it.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for function in functions_of_arrays_apart(module):
                for loop in list(free_nests(function)):
                    _mark(loop)
                _keep_columns(function)

    def __str__(self) -> str:
        return NAME


ORDERED = "avial.ordered"
"""On loops whose order a pass has chosen already."""


def free_nests(op: ir.Operation) -> Iterator[ir.Operation]:
    """The outermost loops in `op` that hold no marked one. A marked loop is as the pass that marked
    it wants to have it, and nobody looks into it.
    """
    for loop in nearest_loops(op):
        if PARALLEL in loop.attributes:
            continue
        if any(PARALLEL in inner.attributes for inner in operations_named(loop, *LOOPS)):
            yield from free_nests(loop)
        else:
            yield loop


def kept_nests(op: ir.Operation) -> Iterator[ir.Operation]:
    """The free nests, and in marked loops those whose order is chosen already (`avial.ordered`):
    what a single loop of them does may be done better.
    """
    yield from free_nests(op)
    found: dict[ir.Operation, None] = {}
    for loop in (each for each in loops_in(op) if PARALLEL in each.attributes):
        found |= {inner: None for inner in loops_in(loop) if ORDERED in inner.attributes}
    yield from found


def nearest_loops(op: ir.Operation) -> Iterator[ir.Operation]:
    """The loops in `op` with no other between."""
    for region in op.regions:
        for block in region.blocks:
            for inner in [view.operation for view in block.operations]:
                if not len(inner.regions):
                    continue
                if inner.name in LOOPS:
                    yield inner
                else:
                    yield from nearest_loops(inner)


def may_run_at_once(loop: ir.Operation) -> bool:
    """Whether no iteration of `loop` depends on another."""
    return loop.name in DECLARED or _order_of(loop, read_scop(loop)) is None


def _mark(loop: ir.Operation, scop: Scop | None = None) -> None:
    if loop.name in DECLARED:
        loop.attributes[PARALLEL] = ir.UnitAttr.get()
        return
    scop = scop if scop is not None else read_scop(loop)
    why_not = _order_of(loop, scop)
    if why_not is None:
        loop.attributes[PARALLEL] = ir.UnitAttr.get()
        tell(loop, NAME, f"iterations of {loop_name(loop)} may run at the same time")
        return
    tell(loop, NAME, f"iterations of {loop_name(loop)} in order: {why_not}")
    columns = columns_of(loop, scop)
    if columns:
        loop.attributes[SLICED] = ir.UnitAttr.get()
        names = listed(dict.fromkeys(map(loop_name, columns)))
        tell(loop, NAME, f"all of {loop_name(loop)} may run for parts of {names} at the same time")
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
        tell(nest, NAME, f"all of {loop_name(nest)} for the parts of {names} that a thread has")


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


def _order_of(op: ir.Operation, scop: Scop) -> str | None:
    """What keeps the iterations in order; None where nothing does."""
    if _calls(op):
        return "what a call in it does to the world nobody has looked at"
    carried = [each for loop in scop.loops_of(op) for each in carried_among(loop, scop.statements)]
    if not carried:
        return None
    first = carried[0]
    if first.array.kind is ArrayKind.VALUE:
        return "each hands a value on to the next"
    return f"{first.target_access} meets {first.source_access} of an earlier one"


def _calls(op: ir.Operation) -> bool:
    """Whether there is a call in it: what that does to the world nobody has looked at."""
    return any(inner.name.endswith(".call") for inner in operations_in(op))


def columns_of(nest: ir.Operation, scop: Scop) -> list[ir.Operation]:
    """The innermost loops of `nest`, if they may be cut into slices; else none.

    All that is written is written in them, their bounds are the same in every iteration, and what
    is ordered has the same value of their variables.
    """
    if _calls(nest) or len(nest.results):
        return []
    rows = {op: None for op in loops_in(nest) if not any(nearest_loops(op))}
    if not rows or not all(_may_be_cut(row, nest) for row in rows):
        return []
    statements = [s for s in scop.statements if holds(nest, s.op)]
    written = {a.array for s in statements for a in s.accesses if a.writes}
    for s in statements:
        outside = s.loops[-1].op not in rows
        if outside and any(access.array in written for access in s.accesses):
            return []
    ordered = [d for d in dependences(statements) if d.carrier is None or holds(nest, d.carrier.op)]
    if not limited(lambda: all(map(_in_one_column, ordered)), lambda: False):
        return []
    return list(rows)


def _may_be_cut(row: ir.Operation, nest: ir.Operation) -> bool:
    single = row.name == "affine.for" and ir.IntegerAttr(row.attributes["step"]).value == 1
    return single and not len(row.results) and not any(defined_in(nest, v) for v in row.operands)


def _in_one_column(dependence: Dependence) -> bool:
    source, target = (len(s.loops) - 1 for s in (dependence.source, dependence.target))
    pairs = dependence.relation
    return pairs.is_subset(pairs.equate(isl.dim_type.in_, source, isl.dim_type.out, target))

"""Stencils that repeat, on several ranks: wider halos, and several steps of time between exchanges.

Module of replicates and converges, placed on ranks -> the same, where a converge around phases that
a halo serves is a loop over blocks of steps.

A rank that is given a wide halo makes what its neighbours make next to it a second time, a little
less of it with every step, and asks for nothing until the block of steps is over:

    step 0   ···[=====|=======part=======|=====]···     = made twice, by a neighbour too
    step 1   ······[==|==================|==]······
    step 2   ·········[==================]·········

The same operations make an element wherever it is made, so it has the same bits. What a rank made
beyond its part is forgotten: the ownership directory has it as the neighbour's.

Source: C. Ding, Y. He, A ghost cell expansion method for reducing communications in solving PDE
problems, SC 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import affine, arith

from avial_lab.compiler.analysis.parallelism.marked_loops import constant_in
from avial_lab.compiler.analysis.patterns.time_tiling import Cone, cone
from avial_lab.compiler.analysis.polyhedral.units import Immovable
from avial_lab.compiler.ir.attributes import FUSED, HALO, LEAN, SPLIT
from avial_lab.compiler.ir.effects import STORES, text_attribute
from avial_lab.compiler.ir.nesting import FORS, body_of, parent_of
from avial_lab.compiler.ir.operations import operations_in
from avial_lab.compiler.ir.phases import (
    alone_in,
    as_one,
    on_cpu,
    phases_in,
    reduced_arrays,
    split_dimensions,
    split_loops,
)
from avial_lab.compiler.ir.remarks import add_remark, listed, loop_name

MOST_STEPS = 64
"""In a block: more save few messages, and tiles in time are seldom higher."""

LEAST_PARTS = 12
"""Of a rank's slabs at most one in so many is made a second time, on the average of the steps."""

_OTHER_DIVISIONS = ("avial.block", "avial.columns", "avial.ranks", "avial.weights")


@dataclass(frozen=True)
class WidenHalos:
    """Exchange halos once in several steps.

    before:  avial.converge { affine.for %t = 0 to 500 {
               avial.replicate { affine.for %i {S1} }  avial.replicate { affine.for %i {S2} } } }
    after:   avial.converge { affine.for %block = 0 to 16 {
               avial.replicate { affine.for %step = 0 to 31 {
                 affine.for %i {S1} {avial.lean = [61, 61, 2, 2]}
                 affine.for %i {S2} {avial.lean = [60, 60, 2, 2]} } } {avial.halo = [61, 61]} }
               affine.for %t = 496 to 500 { … } }

    `steps` in a block; 0: as many as cost little on so many `ranks`.
    """

    ranks: int = 2
    steps: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            if alone_in(module) is not None:
                return
            for op in [op for op in operations_in(module) if op.name == "avial.converge"]:
                self._widen(op)

    def __str__(self) -> str:
        option = f"steps={self.steps}" if self.steps else f"ranks={self.ranks}"
        return f"widen-halos{{{option}}}"

    def _widen(self, converge: ir.Operation) -> None:
        phases = phases_in(converge)
        time = _loop_around(phases, converge)
        if time is None or not all(_in_blocks(op) for op in phases):
            return
        one = as_one(converge, phases, "avial.replicate")
        inner = next(op for op in operations_in(one) if op.name == time.name)
        for sweep in [view.operation for view in inner.regions[0].blocks[0].operations]:
            _go_over_rows(sweep)
        try:
            found = cone(inner)
            steps = self._steps(found)
        except Immovable as reason:
            one.erase()
            name = loop_name(time)
            add_remark(
                converge, "widen-halos", f"loop {name} exchanges halos after each step: {reason}"
            )
            return
        taken = WidenHalos(self.ranks, steps)
        what = f"halos are exchanged once every {steps} steps of {loop_name(time)}"
        add_remark(converge, taken, what)
        _write(one, phases, found, steps)
        _block(time, one, found, steps)

    def _steps(self, found: Cone) -> int:
        """Of a block; raises Immovable where that is one."""
        if any(0 not in split_dimensions(_slabs(sweep.loops)) for sweep in found.sweeps):
            raise Immovable("ranks divide loops other than those over rows")
        if not any(max(found.reach(2, number)) for number in range(len(found.sweeps))):
            raise Immovable("no rank reads what another one computes")
        most = self.steps or min(MOST_STEPS, self._cheap(found))
        if min(most, found.extents.steps) < 2:
            raise Immovable("a rank has too few rows, compared with those that two steps would add")
        if self.steps:
            return min(most, found.extents.steps)
        return found.extents.steps // -(-found.extents.steps // most)

    def _cheap(self, found: Cone) -> int:
        """Steps whose halos are small beside a rank's part."""
        slabs = found.extents.slabs(0) // self.ranks
        together = max if self.ranks == 2 else sum
        each = together(found.leans)
        if each:
            return 1 + 2 * slabs // (LEAST_PARTS * each)
        # No step reaches farther than the one before.
        reach = max(together(found.reach(1, number)) for number in range(len(found.sweeps)))
        return MOST_STEPS if slabs >= LEAST_PARTS * reach else 1


def _slabs(loops: Sequence[ir.Operation | None]) -> ir.Operation:
    assert loops[0] is not None, "every sweep of a cone goes over slabs"
    return loops[0]


def _loop_around(phases: Sequence[ir.Operation], converge: ir.Operation) -> ir.Operation | None:
    """The loop whose body the phases are, where it is all that the converge does."""
    around = {parent_of(op) for op in phases}
    loop = around.pop() if len(around) == 1 else None
    if loop is None or loop.name not in FORS or parent_of(loop) != converge:
        return None
    return loop


def _in_blocks(op: ir.Operation) -> bool:
    """Whether all ranks have a block of it each, along one loop, and nothing is summed up."""
    return (
        op.name == "avial.replicate"
        and on_cpu(op)
        and not reduced_arrays(op)
        and not any(name in op.attributes for name in _OTHER_DIVISIONS)
        and all(loop.name == "affine.for" for loop in split_loops(op))
        and not split_loops(op, 1)
    )


def _go_over_rows(sweep: ir.Operation) -> None:
    """A sweep over a single row of what it writes becomes one over rows, from that to the next.

    before:  affine.for %j { affine.store %s, %A[0, %j] } {avial.split = 0}
    after:   affine.for %i = 0 to 1 { affine.for %j { affine.store %s, %A[%i, %j] } }
             {avial.split = 0}
    """
    stores = _stores_in(sweep)
    row = _row_of(stores) if sweep.name in FORS and SPLIT in sweep.attributes else None
    if row is None:
        return
    with sweep.location, ir.InsertionPoint(sweep):
        rows = affine.AffineForOp(row, row + 1)
        with ir.InsertionPoint(rows.body):
            end = affine.AffineYieldOp([])
    rows.operation.attributes[SPLIT] = sweep.attributes[SPLIT]
    del sweep.attributes[SPLIT]
    sweep.move_before(end.operation)
    for op in stores:
        _store_in_row(op, rows.induction_variable)


def _stores_in(op: ir.Operation) -> list[ir.Operation]:
    return [inner for inner in operations_in(op) if inner.name in STORES]


def _row_of(stores: Sequence[ir.Operation]) -> int | None:
    """The only row that they store to."""
    if any(op.name != "affine.store" for op in stores):
        return None
    forms = [ir.AffineMapAttr(op.attributes["map"]).value.results for op in stores]
    found = {constant_in(form[0]) if len(form) > 1 else None for form in forms}
    return found.pop() if len(found) == 1 else None


def _store_in_row(op: ir.Operation, row: ir.Value) -> None:
    value, array, *indices = op.operands
    form = ir.AffineMapAttr(op.attributes["map"]).value
    dims = form.n_dims
    results = [ir.AffineDimExpr.get(dims), *list(form.results)[1:]]
    where = ir.AffineMap.get(dims + 1, form.n_symbols, results)
    with ir.InsertionPoint(op), op.location:
        operands = [value, array, *indices[:dims], row, *indices[dims:]]
        ir.Operation.create(op.name, [], operands, {"map": ir.AffineMapAttr.get(where)})
    op.erase()


# Writing ------------------------------------------------------------------------------------------


def _write(one: ir.Operation, phases: Sequence[ir.Operation], found: Cone, steps: int) -> None:
    """What is kept on the replicate and its loops."""
    reaches = [found.reach(steps, number) for number in range(len(found.sweeps))]
    for sweep, reach in zip(found.sweeps, reaches, strict=True):
        lean = ir.DenseI64ArrayAttr.get([*reach, *found.leans])
        _slabs(sweep.loops).attributes[LEAN] = lean
    below, above = (max(ends) for ends in zip(*reaches, strict=True))
    names = [text_attribute(op, "name") for op in phases]
    why = (
        f"{listed(names)} take {steps} steps between two exchanges: each rank computes up to "
        f"{max(below, above)} rows of its neighbours a second time"
    )
    low = min(ends[0][0] for ends in found.extents.space)
    high = max(ends[0][1] for ends in found.extents.space) + 1
    one.attributes["avial.why"] = ir.ArrayAttr.get([ir.StringAttr.get(why)])
    one.attributes[FUSED] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
    one.attributes[HALO] = ir.DenseI64ArrayAttr.get([below, above])
    one.attributes["avial.bounds0"] = ir.DenseI64ArrayAttr.get([low, high, 1])
    by_rows = [op for op in phases if _row_of(_stores_in(op)) is None]
    owned = {str(op.attributes["avial.owned0"]) if "avial.owned0" in op.attributes else ""
             for op in by_rows}  # fmt: skip
    if len(owned) == 1 and owned != {""}:
        one.attributes["avial.owned0"] = by_rows[0].attributes["avial.owned0"]


def _block(time: ir.Operation, one: ir.Operation, found: Cone, steps: int) -> None:
    """The time loop as blocks of steps, each of which is `one`, and what is left of it."""
    first, last = found.extents.time
    blocks = found.extents.steps // steps
    with ir.InsertionPoint(time), time.location:
        around = affine.AffineForOp(0, blocks)
        with ir.InsertionPoint(around.body):
            end = affine.AffineYieldOp([])
    one.move_before(end.operation)
    inner = next(op for op in operations_in(one) if op.name == time.name)
    with ir.InsertionPoint(inner), inner.location:
        within = affine.AffineForOp(0, steps)
    number = inner.regions[0].blocks[0].arguments[0]
    with ir.InsertionPoint(within.body), inner.location:
        if any(True for _ in number.uses):
            block, step = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(1)
            form = ir.AffineMap.get(2, 0, [block * steps + step + first])
            values = [around.induction_variable, within.induction_variable]
            number.replace_all_uses_with(affine.AffineApplyOp(form, values).result)
        end = affine.AffineYieldOp([])
    within.induction_variable.set_location(number.location)
    for op in body_of(inner):
        op.move_before(end.operation)
    inner.erase()
    _start_at(time, first + blocks * steps, last + 1)


def _start_at(time: ir.Operation, first: int, stop: int) -> None:
    """The loop from there on; gone where nothing is left of it."""
    if first == stop:
        time.erase()
    elif time.name == "scf.for":
        with ir.InsertionPoint(time), time.location:
            time.operands[0] = arith.constant(ir.IndexType.get(), first)
    else:
        time.attributes["lowerBoundMap"] = ir.AffineMapAttr.get(ir.AffineMap.get_constant(first))

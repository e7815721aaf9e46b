"""Sums of rows for a GPU: who adds up a column does it alone, in the order of the rows.

Module of replicates that add rows to the same array -> divided by columns, where that can be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.parallelism.marked_loops import columns_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.codegen.loops.kernel_nests import (
    hand_on_nothing,
    keep_only,
    parts_of,
    turn_inside_out,
)
from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.dialects.avial import SEGMENTS, buffer_of, operand_segments, rebuilt
from avial_lab.compiler.ir.effects import LOADS, STORES, is_pure
from avial_lab.compiler.ir.nesting import body_of, defined_in
from avial_lab.compiler.ir.operations import loops_in, operations_in, operations_named
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.compiler.ir.remarks import loop_name
from avial_lab.compiler.ir.views import is_memref, view_chain
from avial_lab.compiler.passes.placement.target_devices import stays_for
from avial_lab.machine.devices import kind_for

_OF_ROWS = ("avial.reduced", "avial.reordered", "avial.owned0", "avial.weights", "avial.bounds0")
"""What was written on the replicate for its division by rows."""


@dataclass(frozen=True)
class ColumnsFirst:
    """Neighbours along memory are neighbouring threads, and nobody's sums have to be combined.

    before:  avial.replicate { affine.for %i { t[i] = …
                                               affine.for %j { y[j] += A[i, j] * t[i] } } }
    after:   avial.replicate { affine.for %i { t[i] = … } }
             avial.replicate { affine.for %j { affine.for %i { y[j] += A[i, j] * t[i] } } }

    Of loops right inside of each other, beside loads, whose innermost goes over columns. What else
    a row does, and touches nothing that is added to, comes before it, in a replicate of its own:
    rows wait for each other only where they add.
    """

    on: str = "gpu"

    def __call__(self, module: ir.Operation) -> None:
        if kind_for(self.on).family != "gpu":
            return
        with module.context:
            for op in operations_named(module, "avial.replicate"):
                if reduced_arrays(op) and not stays_for(op, self.on):
                    _part(op)
            for op in operations_named(module, "avial.replicate"):
                nest = _nest_of(op) if reduced_arrays(op) and not stays_for(op, self.on) else []
                if len(nest) > 1 and columns_of(nest[0], read_scop(op)) == [nest[-1]]:
                    _turn(op, nest)

    def __str__(self) -> str:
        return f"columns-first{{on={self.on}}}"


def _nest_of(replicate: ir.Operation) -> list[ir.Operation]:
    """The divided loop, and the one in each; none where there is more than loads beside them."""
    nest: list[ir.Operation] = []
    around = replicate
    while True:
        others = [op for op in body_of(around) if not is_pure(op) and op.name not in LOADS]
        if len(others) != 1 or others[0].name != "affine.for" or len(others[0].results):
            return nest if nest and SPLIT in nest[0].attributes else []
        (around,) = others
        nest.append(around)


def _part(replicate: ir.Operation) -> None:
    """Put what comes before the part that adds into a replicate of its own."""
    loops = [op for op in body_of(replicate) if not is_pure(op)]
    if len(loops) != 1 or loops[0].name != "affine.for" or len(loops[0].results):
        return
    (loop,) = loops
    parts, reduced = parts_of(loop), set(reduced_arrays(replicate))
    adding = [k for k, part in enumerate(parts) if reduced & _touched(part)]
    if len(parts) < 2 or adding != [len(parts) - 1] or not hand_on_nothing(parts):
        return
    (row,) = parts[-1][-1:]
    if row.name != "affine.for" or len(parts[-1]) > 1 or any(loops_in(row)):
        return
    stored = {view_chain(op.operands[1])[-1] for op in operations_in(row) if op.name in STORES}
    if stored - reduced or any(defined_in(loop, operand) for operand in row.operands):
        return
    body = body_of(loop)
    last = {body.index(op) for op in parts[-1]}
    name = ir.StringAttr(replicate.attributes["name"]).value
    first = replicate.clone(ip=ir.InsertionPoint(replicate)).operation
    keep_only(set(range(len(body))) - last, _loop_in(first))
    keep_only(last, loop)
    for attribute in _OF_SUMS:
        if attribute in first.attributes:
            del first.attributes[attribute]
    first.attributes["name"] = ir.StringAttr.get(f"{name}_rows")
    why = f"iterations of {loop_name(loop)} are independent"
    first.attributes["avial.why"] = ir.ArrayAttr.get([ir.StringAttr.get(why)])
    for each in (first, replicate):
        _only_used(each)


_OF_SUMS = ("avial.reduced", "avial.reordered")


def _loop_in(replicate: ir.Operation) -> ir.Operation:
    return next(op for op in body_of(replicate) if not is_pure(op))


def _touched(ops: Iterable[ir.Operation]) -> set[ir.Value]:
    inside = (each for op in ops for each in (op, *operations_in(op)))
    return {view_chain(v)[-1] for op in inside for v in op.operands if is_memref(v)}


def _only_used(replicate: ir.Operation) -> None:
    """Its reads and writes are those of what it does now."""
    ops = list(operations_in(replicate))
    loaded = {view_chain(op.operands[0])[-1] for op in ops if op.name in LOADS}
    stored = {view_chain(op.operands[1])[-1] for op in ops if op.name in STORES}
    _, reads, writes, after = operand_segments(replicate)
    target, *handles = list(replicate.operands)
    groups = handles[:reads], handles[reads : reads + writes], handles[reads + writes :]
    kept = [
        [each for each in group if buffer_of(each) in used]
        for group, used in zip(groups, (loaded, stored), strict=False)
    ]
    reduced = set(reduced_arrays(replicate))
    made = rebuilt(
        replicate,
        [target, *kept[0], *kept[1], *groups[2]],
        {SEGMENTS: ir.DenseI32ArrayAttr.get([1, len(kept[0]), len(kept[1]), after])},
    )
    if reduced:
        first = 1 + len(kept[0])
        places = [first + k for k, each in enumerate(kept[1]) if buffer_of(each) in reduced]
        made.attributes["avial.reduced"] = ir.DenseI64ArrayAttr.get(places)


def _turn(replicate: ir.Operation, nest: list[ir.Operation]) -> None:
    column = nest[-1]
    why = f"iterations of {loop_name(column)} are independent: each adds up what is its own"
    turn_inside_out(nest)
    column.attributes[SPLIT] = nest[0].attributes[SPLIT]
    del nest[0].attributes[SPLIT]
    for name in _OF_ROWS:
        if name in replicate.attributes:
            del replicate.attributes[name]
    replicate.attributes["avial.why"] = ir.ArrayAttr.get([ir.StringAttr.get(why)])

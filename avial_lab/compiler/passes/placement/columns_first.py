"""Sums of rows for a GPU: who adds up a column does it alone, in the order of the rows.

Module of replicates that add rows to the same array -> divided by columns, where that can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.parallelism.marked_loops import columns_of
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Scop
from avial_lab.compiler.codegen.loops.kernel_nests import (
    is_taken_apart,
    keep_only,
    may_come_before,
    turn_inside_out,
    with_stores,
)
from avial_lab.compiler.ir.attributes import SPLIT
from avial_lab.compiler.ir.dialects.avial import SEGMENTS, buffer_of, operand_segments, rebuilt
from avial_lab.compiler.ir.effects import LOADS, STORES, is_pure
from avial_lab.compiler.ir.nesting import body_of
from avial_lab.compiler.ir.operations import operations_in, operations_named
from avial_lab.compiler.ir.phases import reduced_arrays
from avial_lab.compiler.ir.remarks import loop_name
from avial_lab.compiler.ir.views import view_chain
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
    a row does, before the sums or beside them, comes before them, in a replicate of its own: rows
    wait for each other only where they add. So do sums of several loops, in one for each.
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
    nest = _nest_from(replicate)[1:]
    return nest if nest and SPLIT in nest[0].attributes else []


def _nest_from(around: ir.Operation) -> list[ir.Operation]:
    """It, and the loop in each, down to what is not just one loop beside loads."""
    nest = [around]
    while True:
        others = [op for op in body_of(nest[-1]) if not is_pure(op) and op.name not in LOADS]
        if len(others) != 1 or others[0].name != "affine.for" or len(others[0].results):
            return nest
        nest += others


def _part(replicate: ir.Operation) -> None:
    """Put what does not add, and each row of sums, into replicates of their own; only where all of
    these rows then are columns, and what they read is not changed before.
    """
    loops = [op for op in body_of(replicate) if not is_pure(op)]
    if len(loops) != 1 or loops[0].name != "affine.for" or len(loops[0].results):
        return
    (loop,) = loops
    groups = _groups(loop, set(reduced_arrays(replicate)))
    *adding, rest = groups
    if len(adding) + bool(rest) < 2 or not is_taken_apart(loop):
        return
    scop = read_scop(replicate)
    if rest and not all(may_come_before(loop, group, scop) for group in adding):
        return
    made = [with_stores(group, loop.clone(ip=ir.InsertionPoint(loop))) for group in adding]
    scop = read_scop(replicate)
    if not all(_is_by_columns(each, scop) for each in made):
        for each in made:
            each.erase()
        return
    parts = [*([with_stores(rest, loop)] if rest else []), *made]
    if not rest:
        loop.erase()
    _apart(replicate, parts, has_rest=bool(rest))


def _groups(loop: ir.Operation, reduced: set[ir.Value]) -> list[list[int]]:
    """The stores in the loop by their numbers: those that add, by the row that they stand in, and
    last all others.
    """
    adding: dict[ir.Block, list[int]] = {}
    rest: list[int] = []
    for k, op in enumerate(operations_in(loop)):
        if op.name in STORES:
            is_added = view_chain(op.operands[1])[-1] in reduced
            (adding.setdefault(op.block, []) if is_added else rest).append(k)
    return [*adding.values(), rest]


def _is_by_columns(loop: ir.Operation, scop: Scop) -> bool:
    nest = _nest_from(loop)
    return len(nest) > 1 and columns_of(loop, scop) == [nest[-1]]


def _apart(replicate: ir.Operation, parts: Sequence[ir.Operation], *, has_rest: bool) -> None:
    """A replicate for each of the loops in it, in this order."""
    body, name = body_of(replicate), ir.StringAttr(replicate.attributes["name"]).value
    numbers = [body.index(part) for part in parts]
    for k, number in enumerate(numbers):
        is_rest, is_last = has_rest and k == 0, k == len(parts) - 1
        copy = replicate
        if not is_last:
            copy = replicate.clone(ip=ir.InsertionPoint(replicate)).operation
            copy.attributes["name"] = ir.StringAttr.get(f"{name}_{'rows' if is_rest else k}")
        keep_only({number}, copy)
        if is_rest:
            _without_sums(copy, parts[0])
        _only_used(copy)


def _without_sums(replicate: ir.Operation, loop: ir.Operation) -> None:
    for attribute in _OF_SUMS:
        if attribute in replicate.attributes:
            del replicate.attributes[attribute]
    why = f"iterations of {loop_name(loop)} are independent"
    replicate.attributes["avial.why"] = ir.ArrayAttr.get([ir.StringAttr.get(why)])


_OF_SUMS = ("avial.reduced", "avial.reordered")


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

"""Stores that go past the caches, and where they pay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from avial_lab.compiler.codegen.vectors.row_vectors import is_cleared, operands_in
from avial_lab.compiler.ir.locations import name_of
from avial_lab.compiler.ir.nesting import FORS, body_of, parent_of
from avial_lab.compiler.ir.operations import arrays_of, lies_whole, nbytes_of
from avial_lab.compiler.ir.remarks import listed

MORE_THAN_LAST = 2
"""All arrays of a phase are so many times as large as the last cache, or larger: of what it writes
little would be there when the next phase asks for it.
"""

SEQ_CST = 7
"""The number that LLVM's dialect has for the order that includes such stores."""


def stores_past_caches(
    loop: ir.Operation, function: ir.Operation, last: int, times: int = MORE_THAN_LAST
) -> list[ir.Operation]:
    """The stores of `loop` that fill a large array, where all arrays of `function` are `times` as
    large as the last cache, or larger.
    """
    whole = [kind for kind in arrays_of(function) if kind.has_static_shape]
    if sum(map(nbytes_of, whole)) < times * last:
        return []
    return [
        op
        for op in body_of(loop)
        if op.name == "affine.store"
        and not is_cleared(op)
        and _is_only_written(op.operands[1], function)
        and nbytes_of(ir.MemRefType(op.operands[1].type)) * 2 >= last
        and _fills(op)
    ]


def remark_of(stores: Sequence[ir.Operation]) -> str:
    """The remark on them."""
    names = listed(dict.fromkeys(name_of(op.operands[1].location) or "it" for op in stores))
    return f"{names} is stored past the caches, which are too small for it"


def wait_for_memory() -> None:
    """Until what went past the caches is visible to other threads, which are synchronised by
    later stores.
    """
    ordering = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), SEQ_CST)
    ir.Operation.create("llvm.fence", attributes={"ordering": ordering})


def _is_only_written(array: ir.Value, function: ir.Operation) -> bool:
    """Whether it is given to the function, whole and with extents that are known, and all that
    happens to it there are stores.
    """
    kind = ir.MemRefType(array.type)
    return (
        array in function.regions[0].blocks[0].arguments
        and kind.has_static_shape
        and lies_whole(kind)
        and all(
            use.owner.operation.name == "affine.store" and use.operand_number == 1
            for use in array.uses
        )
    )


def _fills(store: ir.Operation) -> bool:
    """Whether no loop around comes back to the same elements, and together they go along all
    dimensions of the array.
    """
    _, array, *places = store.operands
    form = ir.AffineMapAttr(store.attributes["map"]).value
    taken = [_loops_in([places[k] for k in operands_in(each, form)]) for each in form.results]
    extents = ir.MemRefType(array.type).shape
    along = all(loops for loops, extent in zip(taken, extents, strict=True) if extent > 1)
    return along and set(_loops_around(store)) <= set().union(*taken)


def _loops_in(values: list[ir.Value]) -> set[ir.Operation]:
    """The loops whose variables these are computed of; also those that another loop's range is
    taken from.
    """
    loops: set[ir.Operation] = set()
    seen: set[ir.Value] = set()
    while values:
        value = values.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if not isinstance(owner, ir.Block):
            values += owner.operation.operands
            continue
        around = owner.owner.operation
        if around.name in FORS:
            loops.add(around)
            values += around.operands
    return loops


def _loops_around(op: ir.Operation) -> Iterator[ir.Operation]:
    around = parent_of(op)
    while around is not None and around.name != "func.func":
        if len(around.regions) and around.name not in ("affine.if", "scf.if"):
            yield around
        around = parent_of(around)

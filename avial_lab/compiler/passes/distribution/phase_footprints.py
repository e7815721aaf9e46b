"""What a phase touches, written as a function of the part of it that a rank is given.

A replicate or task of the program, or one element between them -> its `touches` function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, memref

from avial_lab.compiler.analysis.polyhedral.footprints import TouchKind, touched_boxes
from avial_lab.compiler.analysis.polyhedral.reading import read_scop
from avial_lab.compiler.analysis.polyhedral.scop import Loop, Scop
from avial_lab.compiler.ir.attributes import SPLIT, SPLIT_DIMENSIONS
from avial_lab.compiler.ir.phases import halo_of, reduced_arrays, split_dimensions
from avial_lab.compiler.passes.distribution.footprint_functions import write_touches


@dataclass(frozen=True)
class PhaseTouches:
    """The function's `symbol`; `parameters[k]` is word k of what it is given."""

    symbol: str
    parameters: tuple[ir.Value, ...]


def phase_touches(
    op: ir.Operation, symbol: str, before: ir.Operation, numbers: Mapping[ir.Value, int]
) -> PhaseTouches:
    """The function for a replicate or task, put before the function `before`.

    `numbers` has the number of each array; sizes it needs are computed before `op`.
    """
    scop = read_scop(op, from_outside=True)
    first, second = (_divided(scop, dimension) for dimension in range(SPLIT_DIMENSIONS))
    values = reduced_arrays(op)
    reduced = [a for a in scop.arrays if a.value is not None and a.value in values]

    boxes = partial(touched_boxes, scop, loops=first, second=second, reduced=reduced)
    touches = boxes()
    if (halo := halo_of(op)) is not None:
        # What it makes beyond its part is its own affair: another rank makes it for everybody.
        reads = (touch for touch in boxes(beyond=halo) if touch.kind is TouchKind.READ)
        touches = (*reads, *(touch for touch in touches if touch.kind is not TouchKind.READ))
    written = write_touches(before, symbol, scop, touches, numbers)
    with ir.InsertionPoint(op), op.location:
        return PhaseTouches(symbol, tuple(map(_value, written.parameters)))


def _divided(scop: Scop, dimension: int) -> Sequence[Loop]:
    """The loops that are divided along that dimension of the grid."""
    return [
        loop
        for loop in scop.loops
        if SPLIT in loop.op.attributes and split_dimensions(loop.op)[loop.dimension] == dimension
    ]


def _module(function: ir.Operation) -> ir.Operation:
    assert function.parent is not None, "a function stands in a module"
    return function.parent.operation


def _value(source: ir.Value | tuple[ir.Value, int]) -> ir.Value:
    """A parameter where the phase stands: itself, or the size of an array."""
    if isinstance(source, ir.Value):
        return source
    array, dimension = source
    return memref.dim(array, arith.constant(ir.IndexType.get(), dimension))


def element_touches(
    before: ir.Operation, symbol: str, number: int, rank: int, *, writes: bool
) -> PhaseTouches:
    """The function for one element of array `number`, whose indices are the parameters."""
    lines: list[str] = []
    for d in range(rank):
        lines += [
            f"%from{d} = llvm.getelementptr %params[{d}] : (!llvm.ptr) -> !llvm.ptr, i64",
            f"%low{d} = llvm.load %from{d} : !llvm.ptr -> i64",
            f"%high{d} = arith.addi %low{d}, %one : i64",
            f"%first{d} = llvm.getelementptr %box[{d}] : (!llvm.ptr) -> !llvm.ptr, i64",
            f"llvm.store %low{d}, %first{d} : i64, !llvm.ptr",
            f"%last{d} = llvm.getelementptr %box[{rank + d}] : (!llvm.ptr) -> !llvm.ptr, i64",
            f"llvm.store %high{d}, %last{d} : i64, !llvm.ptr",
        ]
    kind, more, exact = ("write", ", i64", ", %one") if writes else ("read", "", "")
    text = f"""
      func.func private @avial_{kind}(i64, !llvm.ptr{more})
      func.func private @{symbol}(%params: !llvm.ptr, %range: !llvm.ptr) {{
        %one = arith.constant 1 : i64
        %words = arith.constant {max(1, 2 * rank)} : i64
        %array = arith.constant {number} : i64
        %box = llvm.alloca %words x i64 : (i64) -> !llvm.ptr
        {" ".join(lines)}
        func.call @avial_{kind}(%array, %box{exact}) : (i64, !llvm.ptr{more}) -> ()
        return
      }}"""
    known = {
        ir.StringAttr(view.operation.attributes["sym_name"]).value
        for view in _module(before).regions[0].blocks[0].operations
        if "sym_name" in view.operation.attributes
    }
    for view in ir.Module.parse(text, before.context).body.operations:
        if ir.StringAttr(view.operation.attributes["sym_name"]).value not in known:
            view.operation.clone(ip=ir.InsertionPoint(before))
    return PhaseTouches(symbol, ())

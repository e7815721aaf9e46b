"""Loops count in `index`: front ends count in the integers of their language.

Module with scf.for over i32 -> module with scf.for over index.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from avial_lab.compiler.ir.operations import operations_in


@dataclass(frozen=True)
class IndexLoops:
    """Cast the bounds instead of what is computed from the counter.

    before:  scf.for %i = %low to %high step %step : i32 { … }
    after:   scf.for %k = %low_index to %high_index step %step_index {
               %i = arith.index_cast %k : index to i32 … }

    A loop that compares as unsigned stays: an index is signed. (The front end leaves none.)
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in list(operations_in(module)):
                if op.name == "scf.for" and isinstance(op.operands[0].type, ir.IntegerType):
                    _count_in_index(op)

    def __str__(self) -> str:
        return "index-loops"


def _count_in_index(loop: ir.Operation) -> None:
    kind = ir.IntegerType(loop.operands[0].type)
    if kind.width > 64 or "unsignedCmp" in loop.attributes:
        return
    index = ir.IndexType.get()
    with ir.InsertionPoint(loop), loop.location:
        bounds = [arith.index_cast(index, loop.operands[k]) for k in range(3)]
    counter = loop.regions[0].blocks[0].arguments[0]
    for k, bound in enumerate(bounds):
        loop.operands[k] = bound
    counter.set_type(index)
    with ir.InsertionPoint.at_block_begin(loop.regions[0].blocks[0]), counter.location:
        narrow = arith.index_cast(kind, counter)
    counter.replace_all_uses_except(narrow, narrow.owner.operation)

"""How each replicate is divided, written on it.

Module with replicates whose split loops are known, a Division -> the same with its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.passes.operations import operations_in
from avial_lab.passes.phases import split_loops


@dataclass(frozen=True)
class DivideReplicates:
    """Block-cyclic with `block` > 0; a grid of `columns` where two loops are split; else blocks.

    before:  avial.replicate %cpu, %a {…}
    after:   avial.replicate %cpu, %a {…} {avial.block = 16}
    """

    block: int = 0
    columns: int = 0

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            i64 = ir.IntegerType.get_signless(64)
            for op in operations_in(module):
                if op.name != "avial.replicate":
                    continue
                if self.block:
                    op.attributes["avial.block"] = ir.IntegerAttr.get(i64, self.block)
                if self.columns > 1 and split_loops(op, 1):
                    op.attributes["avial.columns"] = ir.IntegerAttr.get(i64, self.columns)

    def __str__(self) -> str:
        return f"divide-replicates{{block={self.block} columns={self.columns}}}"

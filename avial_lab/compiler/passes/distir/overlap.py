"""Overlap: sums of partial results move while devices compute what does not wait for them.

Step on placed tensors -> the same, with a mark that `lower-placements` follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.ir.attributes import OVERLAP
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.placements import MOVES, meshes_in, placement_of
from avial_lab.compiler.ir.program import program_function
from avial_lab.core.errors import ScheduleError


@dataclass(frozen=True)
class Overlap:
    """Tasks end where partial results of `bucket_bytes` are there; their sums begin, and are waited
    for a task later.

    before:  S1 (the way back, all gradients)  R1 R2 R3 (their sums)     S2 (the updates)
    after:   S1 (the gradient of w3)  S2 (w2's)  R1 (w3's sum)  S3 (w1's)  R2  R3    S4
                      message of w3's part  ─────▶

    What a sum reads of another device is sent before S2 is computed and waited for behind it; each
    further hop of a ring waits for another task. A bucket of 0 bytes is each partial result.
    """

    bucket_bytes: int = 0

    def __call__(self, module: ir.Operation) -> None:
        function = program_function(module)
        meshes = meshes_in(module)
        sums = 0
        for view in function.regions[0].blocks[0].operations:
            op = view.operation
            if op.name in MOVES:
                have = placement_of(op.operands[0].type, meshes)
                # (What turns add up is there when the last of them is over: nothing is left then.)
                sums += have is not None and have.is_partial and not have.mesh.turns
        if not sums:
            raise ScheduleError(
                "no sum of partial results could move while something is computed",
                span=span_of(function.location),
                hint="write it behind what divides a batch: data 2, overlap. A pipeline's sums are "
                "complete after its last micro-batch; its other messages are begun early as it is",
            )
        with module.context:
            i64 = ir.IntegerType.get_signless(64)
            function.attributes[OVERLAP] = ir.IntegerAttr.get(i64, self.bucket_bytes)

    def __str__(self) -> str:
        return f"overlap{{bucket-bytes={self.bucket_bytes}}}" if self.bucket_bytes else "overlap"

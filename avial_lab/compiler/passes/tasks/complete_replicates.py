"""Replicates as people write them: which loop is split, and that it may be.

Module with `avial.replicate` -> the same with what the lowering needs to know on each; VerifyError
where the split loop carries a dependence.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.parallelism.partition import Scalar, Split, partition
from avial_lab.compiler.codegen.describe_split import describe_split
from avial_lab.compiler.ir.attributes import AS_WRITTEN
from avial_lab.compiler.ir.locations import span_of
from avial_lab.compiler.ir.operations import operations_named
from avial_lab.compiler.ir.phases import split_loops
from avial_lab.core.errors import VerifyError


@dataclass(frozen=True)
class CompleteReplicates:
    """Find the loop that a replicate splits, and prove that its iterations are independent.

    before:  avial.replicate %cpu, %a { scf.parallel %i … }
    after:   avial.replicate %cpu, %a { scf.parallel %i … {avial.split = 0} } {avial.owned0 = …}

    Tasks beside them are marked: their bodies are as they were written.
    """

    grid: bool = False

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in operations_named(module, "avial.replicate", "avial.task"):
                if op.name == "avial.task":
                    op.attributes[AS_WRITTEN] = ir.UnitAttr.get()
                elif not split_loops(op):
                    with op.location:
                        _complete(op, grid=self.grid)

    def __str__(self) -> str:
        return "complete-replicates{grid=true}" if self.grid else "complete-replicates"


def _complete(op: ir.Operation, *, grid: bool) -> None:
    nodes = [node for node in partition(op) if not isinstance(node, Scalar)]
    if len(nodes) != 1:
        raise VerifyError(
            "a replicate holds one loop nest, and this one holds "
            + ("none" if not nodes else f"{len(nodes)}"),
            span=span_of(op.location),
            hint="write a replicate for each nest",
        )
    (node,) = nodes
    if isinstance(node, Split) and any(loop.op == node.op for loop in node.loops):
        describe_split(node, op, grid=grid)
        return
    reasons = getattr(node, "reasons", ()) or ("its outermost loop cannot be split",)
    raise VerifyError(
        f"the iterations of this replicate depend on each other: {reasons[0]}",
        span=span_of(node.op.location),
        hint="; ".join(reasons[1:]) or "use avial.task, or split another loop",
    )

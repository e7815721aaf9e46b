"""Loops that do several things are taken apart where that leaves something to split.

Function of loops -> the same values, computed by more loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from avial_lab.compiler.analysis.parallelism.loop_distribution import (
    Group,
    distribution,
    recomputable,
)
from avial_lab.compiler.analysis.parallelism.partition import unsplit
from avial_lab.compiler.analysis.parallelism.splits import LoopNest
from avial_lab.compiler.ir.operations import operations_in

MOST = 64
"""Loops of one function that are taken apart at most."""


@dataclass(frozen=True)
class DistributeLoops:
    """One loop for what can be split, another for what cannot.

    before:  affine.for %i { store %a, %A[%i]  store %sum, %C[%i] }     C[%i] from C[%i - 1]
    after:   affine.for %i { store %a, %A[%i] }  affine.for %i { store %sum, %C[%i] }

    What only computes, or reads memory that the loop does not write, is repeated where it is
    needed. A loop that can be split as it is stays whole.
    """

    def __call__(self, module: ir.Operation) -> None:
        with module.context:
            for op in [op for op in operations_in(module) if op.name == "func.func"]:
                if [len(region.blocks) for region in op.regions] == [1]:
                    _distribute_all(op)

    def __str__(self) -> str:
        return "distribute-loops"


def _distribute_all(function: ir.Operation) -> None:
    for _ in range(MOST):
        if not _distribute_one(function):
            return


def _distribute_one(function: ir.Operation) -> bool:
    """Take the first loop apart that can be; whether there was one."""
    for nest, splitter in unsplit(function):
        groups = distribution(nest, splitter)
        if groups:
            _distribute(nest, groups)
            return True
    return False


def _distribute(nest: LoopNest, groups: tuple[Group, ...]) -> None:
    body = nest.op.regions[0].blocks[0]
    operations = [view.operation for view in body.operations]
    repeated = {k for k, op in enumerate(operations) if recomputable(op, nest)}
    for group in groups:
        kept = repeated | {operations.index(op) for op in group} | {len(operations) - 1}
        copy = nest.op.clone(ip=ir.InsertionPoint(nest.op))
        copies = [view.operation for view in copy.regions[0].blocks[0].operations]
        for k in reversed(range(len(copies))):
            unused = not any(True for result in copies[k].results for _ in result.uses)
            if k not in kept or (k in repeated and unused):
                copies[k].erase()
    nest.op.erase()
